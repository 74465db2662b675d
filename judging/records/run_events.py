"""What webhooks and people who want mail are told of runs."""

from __future__ import annotations

from collections.abc import Callable

from django.utils.translation import gettext as _

from evalsite.access import projects_of
from evalsite.hooks import Hook
from evalsite.links import absolute_url
from evalsite.mail.models import Kind
from evalsite.mail.outgoing import mail_user
from evalsite.mail.services import with_link
from evalsite.webhooks.events import emit
from evalsite.webhooks.kinds import Event
from judging.records.models import Run

run_finished: Hook[Callable[[Run], None]] = Hook("judging.records.run_events.run_finished")
"""What is done when a run has finished, in the same transaction."""


def emit_run(event: Event, run_id: int) -> None:
    """Tell of a run as it is stored now. Call in the transaction that stores the change."""
    run = Run.objects.select_related("project", "created_by").get(pk=run_id)
    page = "people:detail" if run.by_people else "runs:detail"
    url = absolute_url(page, run.project.slug, run.pk)
    emit(event, run.project, pk=run.pk, name=run.name, state=run.state, url=url)
    starter = run.created_by
    for act in run_finished if event is Event.RUN_FINISHED else ():
        act(run)
    if event is Event.RUN_FINISHED and starter and projects_of(starter).filter(pk=run.project_id).exists():
        mail_user(Kind.RUNS, starter, lambda: _finished(run, url))


def _finished(run: Run, url: str) -> tuple[str, str]:
    text = _("The run %(run)s in %(project)s has finished") % {"run": run.name, "project": run.project.name}
    return text, with_link(text, url)
