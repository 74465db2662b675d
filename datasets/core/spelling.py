"""Misspelt roles and keys: what was meant."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from datasets.core.formats import ROLES

MOST_LETTERS = 2
"""A misspelling differs from what was meant in at most so many letters."""
_LONGEST = 20
_SHORT = 5
"""Names up to this length have neighbours two letters away that mean something else."""


def role_meant(role: str) -> str | None:
    """The role that this is a misspelling of, case aside; None if it is like none."""
    return _role_meant(role) if len(role) <= _LONGEST else None


@lru_cache(maxsize=1024)
def _role_meant(role: str) -> str | None:
    apart, best = min((letters_apart(role.casefold(), known), known) for known in ROLES)
    return best if apart <= MOST_LETTERS else None


def is_misspelling(name: str, known: str) -> bool:
    """Whether `name` is written like the key `known`, but not quite."""
    apart = letters_apart(name.casefold(), known)
    if apart == MOST_LETTERS and len(known) <= _SHORT:
        return sorted(name.casefold()) == sorted(known)  # two letters swapped
    return apart <= MOST_LETTERS and name != known


def near_miss(names: Iterable[str], known: str, others: Iterable[str] = ()) -> dict[str, Any]:
    """What a finding on a missing key says of a name that is this key misspelt and none of the `others`, if one is."""
    near = (name for name in names if name not in others and is_misspelling(name, known))
    return next(({"near": name, "meant": known} for name in near), {})


def letters_apart(first: str, second: str) -> int:
    """How many letters must be changed, added or left out; of more than MOST_LETTERS only that it is more."""
    if abs(len(first) - len(second)) > MOST_LETTERS:
        return MOST_LETTERS + 1
    above = list(range(len(second) + 1))
    for number, letter in enumerate(first, 1):
        row = [number]
        for at, other in enumerate(second):
            row.append(min(above[at + 1] + 1, row[at] + 1, above[at] + (letter != other)))
        above = row
    return min(above[-1], MOST_LETTERS + 1)
