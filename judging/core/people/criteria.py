"""A criterion for human judgement, the values of its scale, and conversion of comparisons between sides.

Canonical verdicts refer to answers, not positions: `A` is the item's response, `B` its other response, whichever of
them was shown on the left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from datasets.core.kinds import (
    BOTH_BAD,
    CATEGORY,
    CHECKLIST,
    COMPARISON,
    COMPARISON_CODES,
    PASS_FAIL,
    SCORE,
    THREE_STEPS,
    turned,
)
from datasets.core.kinds import FREE_TEXT as FREE_TEXT_KIND
from judging.core.values import NO_SCORE, Outcome, Value

Scale = Literal[
    "five", "ten", "pass_fail", "yes_no", "categories", "text", "steps", "gsb", "checklist", "mark"
]

GIVES: dict[Scale, str] = {
    "five": SCORE,
    "ten": SCORE,
    "pass_fail": PASS_FAIL,
    "yes_no": PASS_FAIL,
    "categories": CATEGORY,
    "text": FREE_TEXT_KIND,
    "steps": COMPARISON,
    "gsb": COMPARISON,
    "checklist": CHECKLIST,
    "mark": CATEGORY,
}
"""The kind of verdict that people give on a scale."""
COMPARING = tuple(scale for scale, kind in GIVES.items() if kind == COMPARISON)

LEFT_EMPTY, FREE_TEXT = "left_empty", "free_text"  # reasons of judgements without a value
LONGEST_TEXT = 20_000
MOST_CATEGORIES = 50
MET, NOT_MET, CANNOT_TELL = MARKS = ("met", "not_met", "open")
"""What people say of a criterion of a row's rubric. A checklist's value is these, separated by commas, in the order of
the rubric; an empty one where nothing is chosen yet."""
_BOUNDS: dict[str, tuple[int, int]] = {
    "five": (1, 5),
    "ten": (1, 10),
    "pass_fail": (0, 1),
    "yes_no": (0, 1),
    "checklist": (0, 1),
}


class Criterion(msgspec.Struct, frozen=True, kw_only=True):
    """What is judged and how. Its JSON can be read as a metric's: `min_score` and `max_score` are the scale's ends.

    scale: "five" 1–5, "ten" 1–10, "pass_fail", "yes_no", "categories" (one of `categories`), "text" (free), "steps"
    (A>>B … B>>A), "gsb" (whether the first answer is good, same or bad compared with the other), "checklist" (a "mark"
    for each criterion of the row's rubric). `both_bad` is for comparisons only. `lines`: of a checklist about a certain
    row, the texts of its rubric's criteria.
    """

    name: str
    scale: Scale = "five"
    guideline: str = ""
    required: bool = True
    categories: tuple[str, ...] = ()
    both_bad: bool = False
    lines: tuple[str, ...] = ()
    min_score: float = 1
    max_score: float = 5

    @property
    def gives(self) -> str:
        return GIVES[self.scale]

    @property
    def compares(self) -> bool:
        """Whether it compares two answers."""
        return self.gives == COMPARISON

    @property
    def is_ordered(self) -> bool:
        """Whether its values lie on a scale with a width; the others are labels."""
        return self.gives in (COMPARISON, SCORE)

    @property
    def choices(self) -> tuple[Value, ...]:
        """All valid values, in the order of their keys; none for free text."""
        if self.gives == SCORE:
            return tuple(range(1, _BOUNDS[self.scale][1] + 1))
        if self.gives == PASS_FAIL:
            return (True, False)
        if self.compares:
            return (
                *(COMPARISON_CODES if self.scale == "steps" else THREE_STEPS),
                *((BOTH_BAD,) if self.both_bad else ()),
            )
        return MARKS if self.scale == "mark" else self.categories

    def to_json(self) -> str:
        low, high = _BOUNDS.get(self.scale, (1, 5))
        fields = msgspec.structs.asdict(msgspec.structs.replace(self, min_score=low, max_score=high))
        del fields["lines"]  # of a row
        return msgspec.json.encode(
            fields | ({"gives": CHECKLIST} if self.gives == CHECKLIST else {})
        ).decode()

    @classmethod
    def from_json(cls, text: str) -> Criterion:
        """Raises msgspec.ValidationError if the text is not a valid criterion."""
        return _decode(text)


_decode = msgspec.json.Decoder(Criterion).decode


class ValuesRefused(Exception):
    """Some values are invalid: {criterion number: code}; the codes are missing, not_on_scale, too_long, unknown."""

    def __init__(self, codes: Mapping[int, str]) -> None:
        super().__init__(", ".join(f"{number}: {code}" for number, code in codes.items()))
        self.codes = dict(codes)


def problem_of(criterion: Criterion, value: Any) -> str:
    """Why a value is invalid for a criterion, as a code; '' if it is valid. None and blank texts count as no value."""
    if is_empty(value):
        return "missing" if criterion.required else ""
    if criterion.gives == FREE_TEXT_KIND:
        if not isinstance(value, str):
            return "not_on_scale"
        return "too_long" if len(value) > LONGEST_TEXT else ""
    if criterion.gives == CHECKLIST:
        return _problem_of_marks(criterion, value)
    fits = any(type(value) is type(choice) and value == choice for choice in criterion.choices)
    return "" if fits else "not_on_scale"


def _problem_of_marks(criterion: Criterion, value: Any) -> str:
    marks = marks_of(value) if isinstance(value, str) else ()
    if len(marks) != len(criterion.lines) or not {*marks} <= {*MARKS, ""}:
        return "not_on_scale"
    return "missing" if "" in marks else ""


def marks_of(value: Value) -> Sequence[str]:
    """The marks of a checklist's value."""
    return str(value).split(",")


def is_empty(value: Any) -> bool:
    """Whether no value was given."""
    return value is None or (isinstance(value, str) and not value.strip())


def accepted(criteria: Mapping[int, Criterion], values: Mapping[int, Any]) -> dict[int, Value]:
    """The given values by criterion number. Raises ValuesRefused with all invalid values."""
    codes = {number: problem_of(criterion, values.get(number)) for number, criterion in criteria.items()}
    codes |= {number: "unknown" for number in values if number not in criteria}
    if any(codes.values()):
        raise ValuesRefused({number: code for number, code in codes.items() if code})
    return {number: values[number] for number in criteria if not is_empty(values.get(number))}


def canonical(
    criteria: Mapping[int, Criterion], values: Mapping[int, Value], shown_first: int | None
) -> dict[int, Value]:
    """Convert values in which `A` is the answer shown first (left) to values in which `A` is the item's response.

    `shown_first`: 1 the response, 2 the other one, None if there is only one. The function is its own inverse.
    """
    return {
        number: turned(value) if shown_first == 2 and criteria[number].compares else value
        for number, value in values.items()
    }


def outcome_of(criterion: Criterion, value: Value | None) -> Outcome:
    """The outcome stored for a value; free text is not a score, but is stored in the detail."""
    if value is None:
        return Outcome(NO_SCORE, reason=LEFT_EMPTY)
    if criterion.gives == FREE_TEXT_KIND:
        return Outcome(NO_SCORE, reason=FREE_TEXT, detail=str(value))
    return Outcome("scored", value)


MOST_SECONDS = 3600.0


def active_seconds(seconds: Any) -> float:
    """Sanitise the time on an item as reported by a client: 0 if invalid, at most an hour."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        return 0.0
    return min(max(float(seconds), 0.0), MOST_SECONDS)
