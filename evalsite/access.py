"""Access checks: every view gets its objects from a function here or in an app's access.py.

Users who are not members of a project must not learn that it exists (404); members without the role get 403.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from evalsite.accounts.models import ApiToken, Membership, Project, Role, User

Loaded = TypeVar("Loaded", bound=Model)
VIEW_AS = "view_as"  # session key: the role as which a local user views the site


class May(StrEnum):
    """Permissions in a project; spec: people, "Who may do what"."""

    SEE = "see"
    UPLOAD = "upload"
    METRICS = "metrics"
    RUN = "run"
    RATE = "rate"
    READ_JUDGEMENTS = "read judgements"
    REVIEW = "review"
    LOOK = "look"
    USE_ENDPOINTS = "use endpoints"
    MANAGE = "manage"


_OF_ROLE: dict[str, frozenset[May]] = {
    Role.ANALYST: frozenset(
        {May.SEE, May.UPLOAD, May.METRICS, May.RUN, May.READ_JUDGEMENTS, May.LOOK, May.USE_ENDPOINTS}
    ),
    Role.RATER: frozenset({May.SEE, May.RATE}),
    Role.REVIEWER: frozenset({May.SEE, May.READ_JUDGEMENTS, May.REVIEW, May.LOOK}),
    Role.ADMIN: frozenset(May),
}
# Permissions that remain in an archived project.
_OF_ARCHIVED = frozenset({May.SEE, May.READ_JUDGEMENTS, May.MANAGE})


def projects_of(user: User | AnonymousUser) -> QuerySet[Project]:
    """The projects that a user can see, including archived ones, by name."""
    if not isinstance(user, User) or not user.is_active:
        return Project.objects.none()
    everything = Project.objects.order_by("name", "pk")
    return everything if user.is_superuser else everything.filter(memberships__user=user).distinct()


def open_projects_of(user: User | AnonymousUser) -> QuerySet[Project]:
    """Projects for lists and menus, without archived ones."""
    return projects_of(user).filter(archived_at=None)


def visible_projects(request: HttpRequest) -> QuerySet[Project]:
    """The projects that a request may see: the user's, or the one of its token."""
    projects, token = projects_of(request.user), token_of(request)
    return projects if token is None or token.project_id is None else projects.filter(pk=token.project_id)


def token_of(request: HttpRequest) -> ApiToken | None:
    """The access token that authenticated the request, if any."""
    return getattr(request, "token", None)


def signed_in(request: HttpRequest) -> User:
    """The signed-in user; only for views behind `login_required`."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def may_view_as(request: HttpRequest) -> bool:
    """Whether the user can view the site as other roles: superusers in local mode."""
    return settings.LOCAL_MODE and bool(getattr(request.user, "is_superuser", False))


def manages_site(request: HttpRequest) -> bool:
    """Whether the user is a site administrator, not viewing the site as another role, without a project's token."""
    token = token_of(request)
    if token is not None and token.project_id is not None:
        return False
    return bool(getattr(request.user, "is_superuser", False)) and request.session.get(VIEW_AS) not in _OF_ROLE


def permissions(request: HttpRequest, project: Project) -> frozenset[May]:
    """The user's permissions in a project, respecting the role they view the site as; cached per request."""
    by_project: dict[int, frozenset[May]] = request.__dict__.setdefault("permissions_known", {})
    if project.pk not in by_project:
        by_project[project.pk] = _permissions(request, project)
    return by_project[project.pk]


def _permissions(request: HttpRequest, project: Project) -> frozenset[May]:
    user = request.user
    if not isinstance(user, User) or not user.is_active:
        return frozenset()
    roles = set(Membership.objects.filter(user=user, project=project).values_list("role", flat=True))
    if user.is_superuser:
        roles.add(Role.ADMIN)
    tried = request.session.get(VIEW_AS)
    if tried in _OF_ROLE and user.is_superuser:
        roles = {tried}
    allowed = frozenset[May]().union(*(_OF_ROLE[role] for role in roles))
    return allowed & _OF_ARCHIVED if project.archived_at else allowed


def projects_where(request: HttpRequest, may: May) -> QuerySet[Project]:
    """The projects in which the user has the permission; consistent with `permissions`."""
    user, tried = request.user, request.session.get(VIEW_AS)
    allowed = [role for role, permitted in _OF_ROLE.items() if may in permitted]
    if not isinstance(user, User):
        return Project.objects.none()
    visible = projects_of(user) if may in _OF_ARCHIVED else open_projects_of(user)
    if user.is_superuser:
        refused = tried in _OF_ROLE and tried not in allowed
        return Project.objects.none() if refused else visible
    return visible.filter(memberships__user=user, memberships__role__in=allowed).distinct()


def get_project(request: HttpRequest, slug: str, may: May) -> Project:
    """Return the project if the user has the permission, and set `request.project`.

    Raises Http404 for users who are not members, PermissionDenied for members without the permission.
    """
    project = get_object_or_404(visible_projects(request), slug=slug)
    loaded(request, project)
    request.project = project  # type: ignore[attr-defined]  # the page's frame shows where one is (context.py)
    if may not in permissions(request, project):
        raise PermissionDenied
    return project


def loaded(request: HttpRequest, thing: Loaded) -> Loaded:
    """Note that the request is about this object; returns it."""
    request.__dict__.setdefault("loaded_things", []).append(thing)
    return thing


def was_deleted(request: HttpRequest) -> bool:
    """Whether an object that the request is about was deleted after it was loaded."""
    things: list[Model] = request.__dict__.get("loaded_things", [])
    return not all(type(thing)._default_manager.filter(pk=thing.pk).exists() for thing in things)
