"""Recognises misspelt roles and keys."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from datasets.core.formats import ROLES

MOST_LETTERS = 2
"""The maximum edit distance of a misspelling."""
_LONGEST = 20
_SHORT = 5
"""Names up to this length have neighbours two letters away with a different meaning."""


def role_meant(role: str) -> str | None:
    """The role that `role` seems to misspell, ignoring case; None if there is none."""
    return _role_meant(role) if len(role) <= _LONGEST else None


@lru_cache(maxsize=1024)
def _role_meant(role: str) -> str | None:
    apart, best = min((letters_apart(role.casefold(), known), known) for known in ROLES)
    return best if apart <= MOST_LETTERS else None


def is_misspelling(name: str, known: str) -> bool:
    """Whether `name` is similar but not equal to the key `known`."""
    apart = letters_apart(name.casefold(), known)
    if apart == MOST_LETTERS and len(known) <= _SHORT:
        return sorted(name.casefold()) == sorted(known)  # two letters swapped
    return apart <= MOST_LETTERS and name != known


def near_miss(names: Iterable[str], known: str, others: Iterable[str] = ()) -> dict[str, Any]:
    """The finding params for the first name that misspells `known` and is not in `others`; {} if there is none."""
    near = (name for name in names if name not in others and is_misspelling(name, known))
    return next(({"near": name, "meant": known} for name in near), {})


def letters_apart(first: str, second: str) -> int:
    """The edit distance, capped at MOST_LETTERS + 1."""
    if abs(len(first) - len(second)) > MOST_LETTERS:
        return MOST_LETTERS + 1
    above = list(range(len(second) + 1))
    for number, letter in enumerate(first, 1):
        row = [number]
        for at, other in enumerate(second):
            row.append(min(above[at + 1] + 1, row[at] + 1, above[at] + (letter != other)))
        above = row
    return min(above[-1], MOST_LETTERS + 1)
