"""The tasks of this room."""

from __future__ import annotations

from django_tasks import task

from evalsite import engine


@task(queue_name=engine.DATA)
def lint_template(lint_id: int) -> None:
    """Lint one template over a large version, unless somebody else does."""
    from judging.metrics.linting import work

    work(lint_id, engine.owner(), stop=engine.stopping)
