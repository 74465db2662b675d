"""Fresh databases, created at once as `python -m tools.squash` wrote it, and upgraded ones have the same tables."""

from __future__ import annotations

import pytest
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState


@pytest.mark.parametrize("app", ["datasets", "judging"])
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


def only(app: str, state: ProjectState) -> None:
    for key in [key for key in state.models if key[0] != app]:
        del state.models[key]


def models_of(state: ProjectState) -> set[tuple[str, str]]:
    return set(state.models)
