"""manage.py backup: copy everything that cannot be recreated, while the site is running."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from evalsite.storage import backup, files


class Command(BaseCommand):
    help = "Back up the database, uploads and keys to a new FOLDER. docs/deploy.md describes how to restore them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path)

    def handle(self, *, folder: Path, **options: Any) -> None:
        for _step in backup.backup_steps(folder):
            pass
        self.stdout.write(
            f"Written to {folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}."
        )
        if settings.CONFIG.files != "folder":
            self.stdout.write(
                f"Uploads are not included: they are in {files.description()}. Back up that bucket separately."
            )
