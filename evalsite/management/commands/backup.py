"""manage.py backup: copy everything that cannot be recreated, while the site is running."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from evalsite.storage import files

COPIED = ("uploads", "keys")
LEFT_OUT = shutil.ignore_patterns(".*")  # incomplete files; a worker recreates them


class Command(BaseCommand):
    help = "Back up the database, uploads and keys to a new FOLDER. docs/deploy.md describes how to restore them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path)

    def handle(self, *, folder: Path, **options: Any) -> None:
        try:
            folder.mkdir(parents=True, mode=0o700)
        except FileExistsError:
            raise CommandError(f"{folder} already exists. Choose a new folder.", returncode=2) from None
        # The database first, so that every file it refers to exists when files are copied.
        name = copy_sqlite(folder) if connection.vendor == "sqlite" else dump_postgresql(folder)
        elsewhere = settings.CONFIG.files != "folder"
        for part in COPIED:
            if (settings.DATA_DIR / part).is_dir() and not (elsewhere and part == "uploads"):
                shutil.copytree(settings.DATA_DIR / part, folder / part, ignore=LEFT_OUT)
        (folder / name).chmod(0o600)
        self.stdout.write(
            f"Written to {folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}."
        )
        if elsewhere:
            self.stdout.write(
                f"Uploads are not included: they are in {files.description()}. Back up that bucket separately."
            )


def copy_sqlite(folder: Path) -> str:
    """Copy a consistent snapshot of the database; writers are not blocked."""
    name = "evalsite.sqlite3"
    with connection.cursor() as cursor:
        cursor.execute("VACUUM INTO %s", [str(folder / name)])
    return name


def dump_postgresql(folder: Path) -> str:
    """Run pg_dump, which must not be older than the server. The password is passed in the environment."""
    name, to = "database.dump", connection.settings_dict
    command = [
        "pg_dump",
        "--format=custom",
        "--no-owner",
        f"--file={folder / name}",
        f"--dbname={to['NAME']}",
    ]
    given = {"--host": to["HOST"], "--port": to["PORT"], "--username": to["USER"]}
    command += [f"{option}={value}" for option, value in given.items() if value]
    environment = {**os.environ, **({"PGPASSWORD": str(to["PASSWORD"])} if to["PASSWORD"] else {})}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    except FileNotFoundError:
        raise CommandError("pg_dump is not installed (Debian: apt install postgresql-client).") from None
    if done.returncode:
        raise CommandError(f"pg_dump failed: {done.stderr.strip()}")
    return name
