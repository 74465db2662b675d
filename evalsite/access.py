"""Access checks: the only way to an object is a function here, or in a package's access.py, which returns it or raises.

Someone who is no member of a project must not learn that it exists (404); a member without the role
gets 403.
"""

from __future__ import annotations

from enum import StrEnum

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest

from evalsite.accounts.models import Membership, Project, Role, User

VIEW_AS = "view_as"  # session key: the role that a local visitor tries on


class May(StrEnum):
    """What someone may do in a project; spec: people, "Who may do what"."""

    SEE = "see"
    UPLOAD = "upload"
    METRICS = "metrics"
    RUN = "run"
    RATE = "rate"
    READ_JUDGEMENTS = "read judgements"
    REVIEW = "review"
    USE_ENDPOINTS = "use endpoints"
    MANAGE = "manage"


_OF_ROLE: dict[str, frozenset[May]] = {
    Role.ANALYST: frozenset(
        {May.SEE, May.UPLOAD, May.METRICS, May.RUN, May.READ_JUDGEMENTS, May.USE_ENDPOINTS}
    ),
    Role.RATER: frozenset({May.SEE, May.RATE}),
    Role.REVIEWER: frozenset({May.SEE, May.READ_JUDGEMENTS, May.REVIEW}),
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
    """Those that lists and menus show: without the archived ones."""
    return projects_of(user).filter(archived_at=None)


def signed_in(request: HttpRequest) -> User:
    """Who asks; only for views behind `login_required`."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def may_view_as(request: HttpRequest) -> bool:
    """Can this visitor view the site as other roles? In local mode, superusers can."""
    return settings.LOCAL_MODE and bool(getattr(request.user, "is_superuser", False))


def manages_site(request: HttpRequest) -> bool:
    """Site administrators, except while they view the site as another role."""
    return bool(getattr(request.user, "is_superuser", False)) and request.session.get(VIEW_AS) not in _OF_ROLE


def permissions(request: HttpRequest, project: Project) -> frozenset[May]:
    """What this request's user may do in a project, as the role that a local visitor tries on, if any; read once."""
    known: dict[int, frozenset[May]] = request.__dict__.setdefault("permissions_known", {})
    if project.pk not in known:
        known[project.pk] = _permissions(request, project)
    return known[project.pk]


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
    """The projects in which the request's user may do `may`: what `permissions` says, for all at once."""
    user, tried = request.user, request.session.get(VIEW_AS)
    allowed = [role for role, permitted in _OF_ROLE.items() if may in permitted]
    if not isinstance(user, User):
        return Project.objects.none()
    known = projects_of(user) if may in _OF_ARCHIVED else open_projects_of(user)
    if user.is_superuser:
        refused = tried in _OF_ROLE and tried not in allowed
        return Project.objects.none() if refused else known
    return known.filter(memberships__user=user, memberships__role__in=allowed).distinct()


def get_project(request: HttpRequest, slug: str, may: May) -> Project:
    """The project called `slug`, if the request's user may do `may` there; also `request.project` from then on.

    Raises Http404 for someone who is no member, PermissionDenied for a member without that permission.
    """
    project = projects_of(request.user).filter(slug=slug).first()
    if project is None:
        raise Http404
    request.project = project  # type: ignore[attr-defined]  # the page's frame shows where one is (context.py)
    if may not in permissions(request, project):
        raise PermissionDenied
    return project
