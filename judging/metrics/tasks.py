"""The tasks of this room."""

from __future__ import annotations

from django_tasks import task

from evalsite.tasks import workers


@task(queue_name=workers.DATA)
def lint_template(lint_id: int) -> None:
    """Lint one template over a large version, unless somebody else does."""
    from judging.metrics.linting import work

    work(lint_id, workers.owner(), stop=workers.stopping)
