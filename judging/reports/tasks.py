"""The task of this room."""

from __future__ import annotations

from django_tasks import task

from evalsite.tasks import workers


@task(queue_name=workers.DATA)
def work_out_figures() -> None:
    """Work out large runs' figures for the pages that wait for them."""
    from judging.reports.figures import keep_wanted

    keep_wanted()
