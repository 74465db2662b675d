"""The outcome of a judgement: a value, or the reason why there is none. No number represents "no verdict"."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeGuard

import msgspec

from datasets.core.kinds import COMPARISON_CODES
from evalsite.rounding import fixed, shortest, significant

_encoded = json.JSONEncoder(ensure_ascii=False).encode  # created once, because every judgement needs it

Value = bool | int | float | str

SCORED, NO_SCORE, UNPARSED, ERROR, NOT_RUN = "scored", "no_score", "unparsed", "error", "not_run"
UNSETTLED = "unsettled"  # the two orders of a comparison of candidates disagree, or its judges do


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """A `value` if `state` is scored, otherwise a `reason` (a code)."""

    state: str
    value: Value | None = None
    reason: str = ""
    detail: str = ""

    @classmethod
    def error(cls, code: str, detail: str = "") -> Outcome:
        return cls(ERROR, reason=code, detail=detail)

    @classmethod
    def unparsed(cls, code: str) -> Outcome:
        return cls(UNPARSED, reason=code)

    @classmethod
    def unsettled(cls, code: str) -> Outcome:
        return cls(UNSETTLED, reason=code)

    @property
    def score(self) -> float | None:
        """The value as a number: a bool as 0 or 1; None for a category."""
        return None if self.value is None or isinstance(self.value, str) else float(self.value)

    @property
    def value_json(self) -> str | None:
        return None if self.value is None else _encoded(self.value)


def outcome_of_value(value: Value | None) -> Outcome:
    """The outcome for a script's or parser's value; None has the state `no_score`."""
    if value is None:
        return Outcome(NO_SCORE, reason="none_returned")
    return Outcome(SCORED, value)


SCALE_LEVELS = 5
MOST_PLACES = 3  # decimals in a column
LARGE = 1e6  # numbers from here on are written in full


def scale_level(score: float, low: float, high: float) -> int:
    """Which of the scale's SCALE_LEVELS equal parts contains the score, from 1; scores off the scale are clipped."""
    part = int(SCALE_LEVELS * (score - low) / (high - low)) if high > low else SCALE_LEVELS
    return 1 + min(SCALE_LEVELS - 1, max(0, part))


def value_text(value: Value | None) -> str:
    """A value for display: numbers without trailing zeros, a category as is; '' for None."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool):
        return json.dumps(value)
    return significant(value, 6) if isinstance(value, float) and abs(value) < LARGE else str(value)


def verdict_code(value: Value | None) -> str:
    """The verdict of a comparison that is the number 1…5, such as A=B; '' for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value in range(1, 6):
        return COMPARISON_CODES[int(value) - 1]
    return ""


def stored_value_text(text: str | None) -> str:
    """The same for a stored value, which is JSON."""
    return value_text(value_of(text))


def value_of(text: str | None) -> Value | None:
    """A stored value, which is JSON; None for ''."""
    value: Value | None = json.loads(text) if text else None
    return value


def value_texts(values: Sequence[Value | None]) -> list[str]:
    """The values of a column as texts: as `value_text`, but all numbers have the same number of decimals, as many as
    the value that needs the most, at most MOST_PLACES."""
    numbers = [value for value in values if _in_column(value)]
    places = max((len(shortest(number, MOST_PLACES).partition(".")[2]) for number in numbers), default=0)
    return [fixed(value, places) if _in_column(value) else value_text(value) for value in values]


def _in_column(value: Value | None) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGE
