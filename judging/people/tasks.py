"""The tasks of this room."""

from __future__ import annotations

from django_tasks import task

from evalsite.tasks import workers


@task(queue_name=workers.DATA)
def take_in_ratings(import_id: int) -> None:
    """Take in a file of ratings, or take it back, unless somebody else does."""
    from judging.people.importing import work

    work(import_id, workers.owner(), stop=workers.stopping)
