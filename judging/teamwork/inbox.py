"""Notifications about mentions in comments, about assignments, and about webhooks that were turned off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from evalsite.accounts.models import Membership, Project, Role, User
from evalsite.links import absolute_url
from evalsite.mail.models import Kind
from evalsite.mail.outgoing import mail_user
from evalsite.mail.services import with_link
from evalsite.webhooks.events import emit
from evalsite.webhooks.kinds import Event
from evalsite.webhooks.models import Webhook
from judging.teamwork.models import Comment, Notice, ReviewAction

_READERS = (Role.ANALYST, Role.REVIEWER, Role.ADMIN)
_REVIEWERS = (Role.REVIEWER, Role.ADMIN)


def readers_of(project: Project) -> QuerySet[User]:
    """Users who may read judgements and be mentioned, by name. Annotates `reviews`: whether they may review."""
    readers = User.objects.filter(_with_roles(project, _READERS), is_active=True)
    return readers.annotate(reviews=_with_roles(project, _REVIEWERS)).order_by("username")


def reviewers_of(project: Project) -> QuerySet[User]:
    """Possible assignees: members who may review, and superusers."""
    return readers_of(project).filter(_with_roles(project, _REVIEWERS))


def _with_roles(project: Project, roles: Iterable[str]) -> Q:
    members = Membership.objects.filter(project=project, role__in=roles).values("user")
    return Q(pk__in=members) | Q(is_superuser=True)


def notify_assigned(action: ReviewAction) -> None:
    """Create one notice, however many answers are assigned; none for self-assignment."""
    if action.user is not None and action.user != action.by:
        Notice.objects.create(user=action.user, project=action.run.project, action=action)


def notify_mentioned(comment: Comment, mentioned: Iterable[User]) -> None:
    """Notify each mentioned user once. Deletes unread notices of mentions that were edited away."""
    notified = dict(comment.notices.values_list("user", "pk"))
    recipients = {user.pk: user for user in mentioned if user.pk != comment.author_id}
    project, new = comment.run.project, [user for pk, user in recipients.items() if pk not in notified]
    Notice.objects.bulk_create(Notice(user=user, project=project, comment=comment) for user in new)
    _tell_of_mentions(comment, new)
    comment.notices.filter(read_at=None, user__in=set(notified) - set(recipients)).delete()


def _tell_of_mentions(comment: Comment, users: Sequence[User]) -> None:
    """Webhooks, and those who want mail; neither gets the comment's text."""
    run = comment.run
    place = (run.project.slug, run.pk, comment.run_metric_id, comment.response_id)
    url = absolute_url("runs:at", *place)
    emit(Event.MENTION, run.project, pk=comment.pk, name=run.name, state="new", url=url, times=len(users))

    def compose() -> tuple[str, str]:
        values = {"name": comment.author.username, "run": run.name}
        text = _("%(name)s mentioned you in %(run)s") % values
        return text, with_link(text, url)

    for user in users:
        mail_user(Kind.MENTIONS, user, compose)


def notify_webhook_off(webhook: Webhook) -> None:
    """Tell a project's administrators that a webhook was turned off after days of failures."""
    Notice.objects.bulk_create(
        Notice(user=user, project=webhook.project, webhook=webhook)
        for user in User.objects.filter(
            is_active=True, memberships__project=webhook.project, memberships__role=Role.ADMIN
        )
    )


def unread_of(user: User, projects: QuerySet[Project]) -> QuerySet[Notice]:
    """A user's unread notices in these projects."""
    return notices_of(user, projects).filter(read_at=None)


def notices_of(user: User, projects: QuerySet[Project]) -> QuerySet[Notice]:
    """A user's notices in these projects, newest first, with their comment or action."""
    parts = ("project", "comment__author", "comment__run", "action__run", "action__by", "webhook")
    watched = "watch__licence__metric_version__metric"
    notices = Notice.objects.filter(user=user, project__in=projects.values("pk"))
    return notices.select_related(*parts, watched).order_by("-pk")


def mark_read(user: User, only: int | None = None) -> int:
    """Mark all of a user's notices, or only the one with this id, as read. Returns the number changed."""
    unread = Notice.objects.filter(user=user, read_at=None)
    return (unread if only is None else unread.filter(pk=only)).update(read_at=timezone.now())
