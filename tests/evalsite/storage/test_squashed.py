"""Fresh databases, created at once as `python -m tools.squash` wrote it, and upgraded ones have the same tables."""

from __future__ import annotations

import pytest
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState

from tools.squash import APPS


@pytest.mark.parametrize("app", APPS)
def test_creation_at_once_leaves_what_the_migrations_in_its_place_leave(app: str) -> None:
    loader = MigrationLoader(None, replace_migrations=False)
    [squashed] = [
        migration
        for migration in loader.disk_migrations.values()
        if migration.replaces and migration.app_label == app
    ]
    at_once = loader.project_state((app, squashed.name))
    one_by_one = loader.project_state(squashed.replaces[-1])
    for state in (at_once, one_by_one):
        only(app, state)

    assert models_of(at_once) == models_of(one_by_one)
    assert MigrationAutodetector(one_by_one, at_once).changes(loader.graph) == {}
    assert MigrationAutodetector(at_once, one_by_one).changes(loader.graph) == {}
    assert [name for replaced, name in squashed.replaces] == sorted(
        name for replaced, name in squashed.replaces
    )


def test_few_migrations_are_left_that_a_fresh_database_runs_one_by_one() -> None:
    migrations = MigrationLoader(None, replace_migrations=False).disk_migrations
    replaced = {key for migration in migrations.values() for key in migration.replaces}
    left = [key for key in migrations if key[0] in APPS and key not in replaced and "squashed" not in key[1]]
    assert len(left) <= 3, "each takes 0.1 s; run python -m tools.squash"


def only(app: str, state: ProjectState) -> None:
    for key in [key for key in state.models if key[0] != app]:
        del state.models[key]


def models_of(state: ProjectState) -> set[tuple[str, str]]:
    return set(state.models)
