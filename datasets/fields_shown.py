"""A version's fields as its page shows them: how often, of which type, and with which values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.db.models.functions import Length

from datasets.browsing import WHOLE
from datasets.core.rules import JSON_TYPES
from datasets.core.searching import decoded
from datasets.messages import TYPES
from datasets.models import Row, Version

LOOKED_AT, EXAMPLES, EXAMPLE = 50, 3, 60  # rows, values and characters by which a field is described


@dataclass(frozen=True, slots=True)
class FieldSeen:
    """A field, in how many rows it stands, and which types and values it has in the first of them."""

    name: str
    rows: int
    types: list[str]
    examples: list[str]


def fields_seen(version: Version) -> list[FieldSeen]:
    """The fields of a version by name; types and examples come from the first rows."""
    found = Row.objects.filter(version=version, valid=True).order_by("line").annotate(length=Length("raw"))
    first = [
        decoded(raw, True)
        for raw, length in found.values_list("raw", "length")[:LOOKED_AT]
        if length <= WHOLE
    ]
    seen = []
    for name, rows in sorted(version.fields_found.items()):
        values = [row[name] for row in first if isinstance(row, dict) and name in row]
        types = list(dict.fromkeys(JSON_TYPES[type(value)] for value in values))
        texts = dict.fromkeys(_example(value) for value in values if value is not None)
        seen.append(FieldSeen(name, rows, [str(TYPES[kind]) for kind in types], list(texts)[:EXAMPLES]))
    return seen


def _example(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= EXAMPLE else text[:EXAMPLE] + "…"
