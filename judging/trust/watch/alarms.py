"""An alarm of a watch: it suspends the licence, and tells people and webhooks."""

from __future__ import annotations

from django.db.models import Q
from django.utils.translation import gettext as _

from evalsite.accounts.models import Role, User
from evalsite.audit import Action, record
from evalsite.links import absolute_url
from evalsite.mail.models import Kind
from evalsite.mail.outgoing import mail_user
from evalsite.mail.services import with_link
from evalsite.webhooks.events import emit
from evalsite.webhooks.kinds import Event
from judging.teamwork.models import Notice
from judging.trust.models import Cause
from judging.trust.services import licence_suspend
from judging.trust.watch.models import Watch, WatchState


def alarm_raise(watch: Watch, check: int) -> None:
    """Suspend the licence of a watch whose check with this number found a change, and tell of it. Call in the
    transaction that stores the check."""
    metric = watch.licence.metric_version.metric
    project = metric.project
    licence_suspend(licence=watch.licence, cause=Cause.ALARM)
    Watch.objects.filter(pk=watch.pk).update(state=WatchState.ALARM)
    record(Action.WATCH_ALARM, project=project, thing=metric, check=check)
    url = absolute_url("trust:watch", project.slug, watch.pk)
    emit(Event.WATCH_ALARM, project, pk=watch.pk, name=metric.name, state=str(WatchState.ALARM), url=url)

    def compose() -> tuple[str, str]:
        values = {"metric": metric.name, "project": project.name}
        subject = _("The judge of %(metric)s in %(project)s has changed") % values
        text = _(
            "The watch raised an alarm: the judge's verdicts on the sentinel answers are not what they were. Its "
            "licence is suspended."
        )
        return subject, with_link(f"{subject}\n\n{text}", url)

    told = people_told(watch)
    Notice.objects.bulk_create(Notice(user=user, project=project, watch=watch) for user in told)
    for user in told:
        mail_user(Kind.ALARMS, user, compose)


def people_told(watch: Watch) -> list[User]:
    """Who manages the project, and who began the watch if they still read judges there."""
    project = watch.licence.metric_version.metric.project
    readers = {
        "memberships__project": project,
        "memberships__role__in": (Role.ADMIN, Role.ANALYST, Role.REVIEWER),
    }
    admins = Q(memberships__project=project, memberships__role=Role.ADMIN)
    beginner = Q(pk=watch.created_by_id, **readers) | Q(pk=watch.created_by_id, is_superuser=True)
    return list(User.objects.filter(admins | beginner, is_active=True).distinct().order_by("pk"))
