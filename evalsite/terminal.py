"""The language of people who run commands."""

from __future__ import annotations

import os

from django.utils import translation


def terminal_language() -> str:
    """The user's language from the environment, if supported; else the one in the settings."""
    for name in ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        wanted = os.environ.get(name, "").split(":")[0].split(".")[0].replace("_", "-")
        try:
            return translation.get_supported_language_variant(wanted)
        except LookupError:
            continue
    return translation.get_language() or "en"
