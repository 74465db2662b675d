"""A field found by its name, or by dots and indices."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, Literal

from judging.core.rules.formats import Fields
from judging.core.rules.values import Value

_STEP = re.compile(r"([^.\[\]]+)((?:\[[0-9]{1,9}\])*)")

Path = tuple[str | int, ...]


class _Missing(Enum):
    MISSING = "missing"


MISSING: Final = _Missing.MISSING
Found = Value | Literal[_Missing.MISSING]


def path_of(name: str) -> Path:
    """`a.b[0]` as ("a", "b", 0); () for a name that has neither dots nor indices, or not in that form."""
    if "." not in name and "[" not in name:
        return ()
    path: list[str | int] = []
    for part in name.split("."):
        step = _STEP.fullmatch(part)
        if step is None:
            return ()
        path += [step[1], *(int(index) for index in re.findall(r"[0-9]+", step[2]))]
    return tuple(path)


def look_up(fields: Fields, name: str, path: Path = ()) -> Found:
    """The field of that very name, else what its path leads to, else MISSING."""
    if name in fields:
        return fields[name]
    return _follow(fields, path) if path else MISSING


def _follow(value: Value, path: Path) -> Found:
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[str(step)]
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return MISSING
    return value
