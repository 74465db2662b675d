"""The one task of this room."""

from __future__ import annotations

from django_tasks import task

from evalsite import engine


@task(queue_name=engine.DATA)
def read_version(version_id: int) -> None:
    """Read an upload into the tables, unless somebody else does."""
    from datasets.importing import import_version

    import_version(version_id, engine.owner(), stop=engine.stopping)
