"""Notices: of comments that mention a user, and of what was assigned to them."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Q, QuerySet
from django.utils import timezone

from evalsite.accounts.models import Membership, Project, Role, User
from judging.runs.teamwork.models import Comment, Notice, ReviewAction

MOST_COUNTED = 100
_READERS = (Role.ANALYST, Role.REVIEWER, Role.ADMIN)
_REVIEWERS = (Role.REVIEWER, Role.ADMIN)


def readers_of(project: Project) -> QuerySet[User]:
    """Members who may read judgements, by name; a comment can mention them. `reviews`: may they review?"""
    found = User.objects.filter(_with_roles(project, _READERS), is_active=True)
    return found.annotate(reviews=_with_roles(project, _REVIEWERS)).order_by("username")


def reviewers_of(project: Project) -> QuerySet[User]:
    """Possible assignees: members who may review, and superusers, who may do everything."""
    return readers_of(project).filter(_with_roles(project, _REVIEWERS))


def _with_roles(project: Project, roles: Iterable[str]) -> Q:
    members = Membership.objects.filter(project=project, role__in=roles).values("user")
    return Q(pk__in=members) | Q(is_superuser=True)


def notify_assigned(action: ReviewAction) -> None:
    """One notice, however many are assigned; none if users assign to themselves."""
    if action.user is not None and action.user != action.by:
        Notice.objects.create(user=action.user, project=action.run.project, action=action)


def notify_mentioned(comment: Comment, mentioned: Iterable[User]) -> None:
    """Each once. An unread notice of a mention that was edited away is deleted."""
    known = dict(comment.notices.values_list("user", "pk"))
    wanted = {one.pk: one for one in mentioned if one.pk != comment.author_id}
    project = comment.run.project
    Notice.objects.bulk_create(
        [Notice(user=one, project=project, comment=comment) for pk, one in wanted.items() if pk not in known]
    )
    comment.notices.filter(read_at=None, user__in=set(known) - set(wanted)).delete()


def unread_of(user: User, projects: QuerySet[Project]) -> QuerySet[Notice]:
    """Unread notices of these projects."""
    return notices_of(user, projects).filter(read_at=None)


def notices_of(user: User, projects: QuerySet[Project]) -> QuerySet[Notice]:
    """All their notices of these projects, newest first, with the comment or action."""
    parts = ("project", "comment__author", "comment__run", "action__run", "action__by")
    found = Notice.objects.filter(user=user, project__in=projects.values("pk"))
    return found.select_related(*parts).order_by("-pk")


def mark_read(user: User, only: int | None = None) -> int:
    """Of all of a user's notices, or of the one with this id. Returns how many."""
    found = Notice.objects.filter(user=user, read_at=None)
    return (found if only is None else found.filter(pk=only)).update(read_at=timezone.now())
