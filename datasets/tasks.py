"""The tasks of this room."""

from __future__ import annotations

from django_tasks import task

from evalsite import engine


@task(queue_name=engine.DATA)
def read_version(version_id: int) -> None:
    """Read an upload into the tables, unless somebody else does."""
    from datasets.importing import import_version

    import_version(version_id, engine.owner(), stop=engine.stopping)


@task(queue_name=engine.DATA)
def index_version(version_id: int) -> None:
    """Build the search index of a version that has been read, unless somebody else does."""
    from datasets.searching import build

    build(version_id, engine.owner(), stop=engine.stopping)


@task(queue_name=engine.DATA)
def match_answers(attachment_id: int) -> None:
    """Match a file of answers to its version, unless somebody else does."""
    from datasets.attaching import match

    match(attachment_id, engine.owner(), stop=engine.stopping)


@task(queue_name=engine.DATA)
def compare_versions(difference_id: int) -> None:
    """Compare two versions, unless somebody else does."""
    from datasets.differences import compare

    compare(difference_id, engine.owner(), stop=engine.stopping)
