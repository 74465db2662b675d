"""manage.py restore: restore a backup into an empty DATA_DIR and an empty database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from evalsite.storage import backup


class Command(BaseCommand):
    help = "Restore the backup in FOLDER into an empty DATA_DIR and an empty database. One that broke off is refused."

    # The checks would read the site that is to be restored.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path)
        parser.add_argument("--check", action="store_true", help="only say whether the backup is whole")

    def handle(self, *, folder: Path, check: bool, **options: Any) -> None:
        manifest = backup.verify(folder) if check else backup.restore(folder)
        rows = sum(manifest.tables.values())
        what = f"{len(manifest.files)} files, {len(manifest.tables)} tables with {rows} rows, of {manifest.made_at}"
        self.stdout.write(
            f"{folder} is whole: {what}." if check else f"Restored to {settings.DATA_DIR}: {what}."
        )
