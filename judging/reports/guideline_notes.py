"""Says where people's figures mix versions of the guideline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from evalsite.templatetags.show import number


def version_sentences(document: Mapping[str, Any], metric: str) -> list[str]:
    """That people's figures under a metric mix ratings of several versions of the guideline; empty if they don't."""
    counts = document.get("guideline_versions", {}).get(metric)
    if not counts:
        return []
    parts = [
        _("%(n)s under version %(version)s") % {"n": number(ratings), "version": version}
        for version, ratings in counts.items()
    ]
    text = _("People's figures here mix ratings under several versions of the guideline: %(parts)s.")
    return [text % {"parts": pgettext("between names", ", ").join(parts)}]
