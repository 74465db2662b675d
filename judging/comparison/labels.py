"""The causes of a change in the reader's language."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy, pgettext_lazy

CAUSES: dict[str, Promise] = {
    "rows": pgettext_lazy("cause of a change", "rows"),
    "answers": pgettext_lazy("cause of a change", "answers"),
    "judge": pgettext_lazy("cause of a change", "judge model"),
    "prompt": pgettext_lazy("cause of a change", "prompt"),
    "scripts": pgettext_lazy("cause of a change", "scripts"),
    "parser": pgettext_lazy("cause of a change", "parser"),
    "overrides": pgettext_lazy("cause of a change", "overrides"),
    "missing": pgettext_lazy("cause of a change", "scored in one run only"),
    "noise": gettext_lazy("nothing changed (noise)"),
}


def cause_name(cause: str) -> str:
    """Causes that cannot be separated are joined with +."""
    return " + ".join(str(CAUSES[one]) for one in cause.split("+"))
