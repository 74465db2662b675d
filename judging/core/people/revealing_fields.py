"""Fields that may reveal to raters whose answer they read: one with few short values, or one that names a candidate."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MOST_VALUES = 20
LONGEST_VALUE = 80  # characters
_SEPARATORS = r"[\s\-_.]"


@dataclass(frozen=True, slots=True)
class RevealingField:
    """A field with the candidate that it names ('' if none), or its few values, the most frequent first."""

    field: str
    name: str = ""
    values: tuple[str, ...] = ()


def revealing_fields(rows: Sequence[Mapping[str, str]], names: Sequence[str]) -> list[RevealingField]:
    """Which may reveal a model, of the fields that raters see of some rows: {field: text} of each row."""
    found = []
    for field in dict.fromkeys(field for row in rows for field in row):
        texts = Counter(row.get(field, "").strip() for row in rows)
        found += [
            RevealingField(field, name=name) for name in names if any(is_named(name, text) for text in texts)
        ]
        values = tuple(text for text, _ in texts.most_common() if text)
        if _are_few(texts, len(rows)):
            found.append(RevealingField(field, values=values))
    return found


def _are_few(texts: Counter[str], rows: int) -> bool:
    """One value in every row reveals nothing, and values of which none comes twice are texts of their rows."""
    short = all(len(text) <= LONGEST_VALUE for text in texts)
    return short and 1 < len(texts) <= MOST_VALUES and len(texts) < rows


def is_named(name: str, text: str) -> bool:
    """Does a text name a model, whatever its case and separators? It must stand as a word, not within another, and a
    single letter is no name."""
    parts = [re.escape(part) for part in re.split(f"{_SEPARATORS}+", name) if part]
    if len(name.strip()) < 2 or not parts:
        return False
    pattern = f"(?<![A-Za-z0-9]){f'{_SEPARATORS}*'.join(parts)}(?![A-Za-z0-9])"
    return re.search(pattern, text, re.IGNORECASE) is not None
