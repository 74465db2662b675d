"""Make DATA_DIR ready for use: folders, keys, tables."""

from __future__ import annotations

import os

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
