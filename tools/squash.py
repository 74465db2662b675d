"""Write anew the migrations that create all tables of a fresh database: `python -m tools.squash`.

A database without any migration of an app runs the one that is written here, all others those that they lack. Run it
after a few new migrations: each that it does not hold takes 0.1 s of every first start.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.db.migrations import Migration

APPS = ("datasets", "judging", "mail")
PREFIX = "0000_squashed_"
"""Not 0001: by that evalsite/storage/development.py tells databases that no release made."""


def main() -> None:
    """Write a migration for each of APPS, in place of the earlier one."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
    import django

    django.setup()
    from django.db.migrations import Migration
    from django.db.migrations.writer import MigrationWriter

    from evalsite.storage.create_tables import CreateTables

    replaced = {app: _migrations(app) for app in APPS}
    names = {app: PREFIX + migrations[-1] for app, migrations in replaced.items()}
    for app, creation in _creations().items():
        members = {
            "initial": True,
            "replaces": [(app, name) for name in replaced[app]],
            "dependencies": [(other, names.get(other, name)) for other, name in creation.dependencies],
            "operations": [CreateTables(creation.operations)],
        }
        migration = type("Migration", (Migration,), members)(names[app], app)
        path = _folder(app) / f"{migration.name}.py"
        path.write_text(MigrationWriter(migration, include_header=False).as_string(), encoding="utf-8")


def _migrations(app: str) -> list[str]:
    """The names of an app's migrations in their order; the one that is written anew is deleted."""
    for path in _folder(app).glob(f"{PREFIX}*.py"):
        path.unlink()
    return sorted(path.stem for path in _folder(app).glob("[0-9]*.py"))


def _folder(app: str) -> Path:
    from django.apps import apps

    return Path(apps.get_app_config(app).path) / "migrations"


def _creations() -> dict[str, Migration]:
    """{app: the one migration that Django would make for it today if it had none}."""
    from django.apps import apps
    from django.db.migrations.autodetector import MigrationAutodetector
    from django.db.migrations.loader import MigrationLoader
    from django.db.migrations.questioner import MigrationQuestioner
    from django.db.migrations.state import ProjectState
    from django.test import override_settings

    with override_settings(MIGRATION_MODULES=dict.fromkeys(APPS)):
        loader = MigrationLoader(None)
    others = loader.graph.make_state(
        nodes=loader.graph.leaf_nodes(), real_apps=loader.unmigrated_apps - set(APPS)
    )
    autodetector = MigrationAutodetector(
        others, ProjectState.from_apps(apps), MigrationQuestioner(specified_apps=set(APPS))
    )
    changes = autodetector.changes(loader.graph)
    return {app: migration for app in APPS for [migration] in [changes[app]]}


if __name__ == "__main__":
    main()
