"""Make DATA_DIR ready for use: folders, keys, tables."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError

from evalsite import secrets

FOLDERS = ("uploads", "incoming", "keys", "static")


def prepare() -> None:
    """Create what is missing and migrate. Raises CommandError if the folder cannot be written."""
    try:
        settings.DATA_DIR.mkdir(parents=True, exist_ok=True)
        for name in FOLDERS:
            (settings.DATA_DIR / name).mkdir(exist_ok=True, mode=0o700)
        if not settings.CONFIG.secret_key:
            settings.SECRET_KEY = secrets.make_key(settings.DATA_DIR, "django")
    except OSError as error:
        raise CommandError(
            f"DATA_DIR ({settings.DATA_DIR}) cannot be written: {error.strerror or error}. "
            "Choose another folder, for example: make run DATA_DIR=$HOME/evalsite-data"
        ) from None
    if os.access(settings.DATA_DIR, os.W_OK):
        call_command("migrate", interactive=False, verbosity=0)


def collect_static() -> None:
    """Collect, hash and compress the static files, if they are not those of the last time."""
    stamp, state = settings.STATIC_ROOT / "collected", static_state()
    if stamp.exists() and stamp.read_text() == state:
        return
    call_command("collectstatic", interactive=False, verbosity=0, clear=True)
    stamp.write_text(state)


def static_state() -> str:
    """Changes with every change of a static file."""
    files = sorted(
        path for folder in settings.STATICFILES_DIRS for path in Path(folder).rglob("*") if path.is_file()
    )
    told = "".join(f"{path}:{path.stat().st_size}:{path.stat().st_mtime_ns};" for path in files)
    return hashlib.sha256(told.encode()).hexdigest()
