"""A criterion for human judgement, the values of its scale, and conversion of comparisons between sides.

Canonical verdicts refer to answers, not positions: `A` is the item's response, `B` its other response, whichever of
them was shown on the left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import msgspec

from datasets.core.kinds import (
    BOTH_BAD,
    CATEGORY,
    CHECKLIST,
    COMPARISON,
    COMPARISON_CODES,
    KINDS,
    PASS_FAIL,
    RANK,
    SCORE,
    SPANS,
    THREE_STEPS,
    turned,
)
from datasets.core.kinds import FREE_TEXT as FREE_TEXT_KIND
from judging.core.people.ranking import by_answer, by_place, is_ranking, places_of, ranking_of
from judging.core.people.spans import problem_of_spans, spans_of, spans_text, sum_of
from judging.core.values import NO_SCORE, Outcome, Value

Scale = Literal[
    "five",
    "ten",
    "ends",
    "pass_fail",
    "yes_no",
    "categories",
    "text",
    "steps",
    "gsb",
    "checklist",
    "mark",
    "rank",
    "place",
    "spans",
]

GIVES: dict[Scale, str] = {
    "five": SCORE,
    "ten": SCORE,
    "ends": SCORE,
    "pass_fail": PASS_FAIL,
    "yes_no": PASS_FAIL,
    "categories": CATEGORY,
    "text": FREE_TEXT_KIND,
    "steps": COMPARISON,
    "gsb": COMPARISON,
    "checklist": CHECKLIST,
    "mark": CATEGORY,
    "rank": RANK,
    "place": CATEGORY,
    "spans": SPANS,
}
"""The kind of verdict that people give on a scale."""
COMPARING = tuple(scale for scale, kind in GIVES.items() if kind == COMPARISON)
"""The scales of side-by-side comparisons, which may offer "both bad"."""

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

    scale: "five" 1–5, "ten" 1–10, "ends" at most eleven numbers from `min_score` to `max_score`, "pass_fail", "yes_no",
    "categories" (one of `categories`), "text" (free), "steps" (A>>B … B>>A), "gsb" (whether the first answer is good,
    same or bad compared with the other), "checklist" (a "mark" for each criterion of the row's rubric), "rank" (a
    "place" for each answer of the item), "spans" (each labelled with one of `categories`). `both_bad` is for
    comparisons only. `lines`: of a checklist about a certain row, the texts of its rubric's criteria; of a ranking of a
    certain item, the letters of its answers; of a place, those among which it is; of spans that are adjudicated, those
    to choose from. `length`: of spans in a certain answer, its code points.
    """

    name: str
    scale: Scale = "five"
    guideline: str = ""
    required: bool = True
    categories: tuple[str, ...] = ()
    both_bad: bool = False
    lines: tuple[str, ...] = ()
    length: int = 0
    min_score: float = 1
    max_score: float = 5

    @property
    def gives(self) -> str:
        return GIVES[self.scale]

    @property
    def compares(self) -> bool:
        """Whether its judgements say which of two answers is better."""
        return COMPARISON in (self.gives, KINDS[self.gives].stored_as)

    @property
    def ranks(self) -> bool:
        """Whether it ranks the answers of an item."""
        return self.gives == RANK

    @property
    def marks_spans(self) -> bool:
        """Whether passages of an answer are marked."""
        return self.gives == SPANS

    @property
    def is_written(self) -> bool:
        """Whether raters send a text instead of one of its choices."""
        return self.gives in (FREE_TEXT_KIND, SPANS)

    @property
    def by_line(self) -> bool:
        """Whether it is asked line by line; see `lines`."""
        return self.gives in (CHECKLIST, RANK)

    @property
    def is_ordered(self) -> bool:
        """Whether its values lie on a scale with a width; the others are labels."""
        return self.gives in (COMPARISON, SCORE)

    @property
    def choices(self) -> tuple[Value, ...]:
        """All valid values, in the order of their keys; none for free text. Of a ranking those of its judgements."""
        if self.gives == SCORE:
            return numbers_between(*_BOUNDS.get(self.scale, (self.min_score, self.max_score)))
        if self.gives == PASS_FAIL:
            return (True, False)
        if self.compares:
            return (
                *(COMPARISON_CODES if self.scale == "steps" else THREE_STEPS),
                *((BOTH_BAD,) if self.both_bad else ()),
            )
        if self.scale == "place":
            return tuple(range(1, len(self.lines) + 1))
        if self.marks_spans:
            return self.lines
        return MARKS if self.scale == "mark" else self.categories

    @property
    def step(self) -> float:
        """The widest distance between two neighbouring scores; 1 on other scales."""
        numbers = self.choices if self.gives == SCORE else (0, 1)
        return max(float(after) - float(number) for number, after in pairwise(numbers))

    def to_json(self) -> str:
        ends = (self.min_score, self.max_score) if self.scale == "ends" else (1, 5)
        low, high = _BOUNDS.get(self.scale, ends)
        fields = msgspec.structs.asdict(msgspec.structs.replace(self, min_score=low, max_score=high))
        del fields["lines"], fields["length"]  # of an item
        if self.gives == CHECKLIST:
            fields["gives"] = CHECKLIST
        if self.marks_spans:
            fields["scale_declared"] = False
        return msgspec.json.encode(fields).decode()

    @classmethod
    def from_json(cls, text: str) -> Criterion:
        """Raises msgspec.ValidationError if the text is not a valid criterion."""
        return _decode(text)


_decode = msgspec.json.Decoder(Criterion).decode
MOST_NUMBERS = 11


def numbers_between(low: float, high: float) -> tuple[int | float, ...]:
    """The numbers that people choose from on a scale: every whole one, or where those are too many, or the ends are not
    whole, eleven in equal steps."""
    if low % 1 == high % 1 == 0 and high - low < MOST_NUMBERS:
        return tuple(range(int(low), int(high) + 1))
    steps = (low + (high - low) * step / (MOST_NUMBERS - 1) for step in range(MOST_NUMBERS))
    digits = 0 if high - low >= MOST_NUMBERS else 3
    rounded = [round(step, digits) for step in steps]
    return tuple(int(number) if number % 1 == 0 else number for number in (low, *rounded[1:-1], high))


class ValuesRefused(Exception):
    """Some values are invalid: {criterion number: code}; the codes are missing, not_on_scale, too_long, too_many,
    unknown."""

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
    if criterion.ranks:
        return _problem_of_places(criterion, value)
    if criterion.marks_spans:
        return problem_of_spans(value, criterion.categories, criterion.length)
    fits = any(type(value) is type(choice) and value == choice for choice in criterion.choices)
    return "" if fits else "not_on_scale"


def _problem_of_marks(criterion: Criterion, value: Any) -> str:
    marks = marks_of(value) if isinstance(value, str) else ()
    if len(marks) != len(criterion.lines) or not {*marks} <= {*MARKS, ""}:
        return "not_on_scale"
    return "missing" if "" in marks else ""


def _problem_of_places(criterion: Criterion, value: Any) -> str:
    if not isinstance(value, str) or not is_ranking(value, len(criterion.lines)):
        return "not_on_scale"
    return "missing" if "" in value.split(",") else ""


def marks_of(value: Value) -> Sequence[str]:
    """The marks of a checklist's value, or the places of a ranking, each as text and '' without one."""
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
    return {
        number: _stored(criteria[number], values[number])
        for number in criteria
        if not is_empty(values.get(number))
    }


def _stored(criterion: Criterion, value: Value) -> Value:
    """A valid value as it is stored: rankings and spans that say the same are equal."""
    if criterion.marks_spans:
        return spans_text(spans_of(str(value)))
    return ranking_of(places_of(str(value))) if criterion.ranks else value


def counted_value(criterion: Criterion, value: Value) -> Value:
    """What a stored value counts as in figures: of spans their sum."""
    return sum_of(str(value)) if criterion.marks_spans else value


def canonical(
    criteria: Mapping[int, Criterion],
    values: Mapping[int, Value],
    shown_first: int | None,
    order: Sequence[int] = (),
) -> dict[int, Value]:
    """Convert values in which `A` is the answer shown first (left) to values in which `A` is the item's response.

    `shown_first`: 1 the response, 2 the other one, None if there is only one. `order`: of ranked answers, see
    `ranking.shown_order`; as in the item if empty.
    """
    return _converted(criteria, values, shown_first, order, by_answer)


def as_shown(
    criteria: Mapping[int, Criterion],
    values: Mapping[int, Value],
    shown_first: int | None,
    order: Sequence[int] = (),
) -> dict[int, Value]:
    """The inverse of `canonical`."""
    return _converted(criteria, values, shown_first, order, by_place)


def _converted(
    criteria: Mapping[int, Criterion],
    values: Mapping[int, Value],
    shown_first: int | None,
    order: Sequence[int],
    reorder: Callable[[str, Sequence[int]], str],
) -> dict[int, Value]:
    converted: dict[int, Value] = {}
    for number, value in values.items():
        if criteria[number].ranks:
            converted[number] = reorder(str(value), order) if order else value
        else:
            converted[number] = turned(value) if shown_first == 2 and criteria[number].compares else value
    return converted


def outcome_of(criterion: Criterion, value: Value | None) -> Outcome:
    """The outcome stored for a value; free text is not a score, but is stored in the detail."""
    if value is None:
        return Outcome(NO_SCORE, reason=LEFT_EMPTY)
    if criterion.gives == FREE_TEXT_KIND:
        return Outcome(NO_SCORE, reason=FREE_TEXT, detail=str(value))
    return Outcome("scored", counted_value(criterion, value))


MOST_SECONDS = 3600.0


def active_seconds(seconds: Any) -> float:
    """Sanitise the time on an item as reported by a client: 0 if invalid, at most an hour."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        return 0.0
    return min(max(float(seconds), 0.0), MOST_SECONDS)
