"""System checks of a site that was restored from a backup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from evalsite.storage import completeness
from evalsite.storage.manifest import Incomplete


@register()
def restored_site_is_whole(app_configs: object = None, **options: Any) -> list[CheckMessage]:
    """Compare a site that was restored and has not been started since with its backup."""
    try:
        completeness.compare_with_backup()
    except Incomplete as error:
        return [Error(str(error), id="evalsite.E001")]
    return []


@register(Tags.database)
def nothing_is_missing(
    app_configs: object = None, databases: Sequence[str] | None = None, **options: Any
) -> list[CheckMessage]:
    """Look for missing constraints, files and keys, once all tables are migrated (`check --database default`)."""
    if not databases:
        return []
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        return []
    return [
        Error(problem, hint=completeness.RESTORE, id="evalsite.E002") for problem in completeness.problems()
    ]
