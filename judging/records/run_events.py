"""What webhooks are told of runs."""

from __future__ import annotations

from evalsite.links import absolute_url
from evalsite.webhooks.events import emit
from evalsite.webhooks.kinds import Event
from judging.records.models import Run


def emit_run(event: Event, run_id: int) -> None:
    """Tell of a run as it is stored now. Call in the transaction that stores the change."""
    run = Run.objects.select_related("project").get(pk=run_id)
    page = "people:detail" if run.by_people else "runs:detail"
    url = absolute_url(page, run.project.slug, run.pk)
    emit(event, run.project, pk=run.pk, name=run.name, state=run.state, url=url)
