"""What a form asks raters for: each criterion; of a checklist each line of the row's rubric, of a ranking each
answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from datasets.core.kinds import CHECKLIST
from datasets.core.rubric import Rubric
from judging.core.checklists import Checklist, judged
from judging.core.checklists import outcome_of as outcome_of_checklist
from judging.core.people.criteria import (
    CANNOT_TELL,
    LEFT_EMPTY,
    MARKS,
    MET,
    NOT_MET,
    Criterion,
    is_empty,
    marks_of,
    outcome_of,
)
from judging.core.people.ranking import pairs_among, pairs_of
from judging.core.values import NO_SCORE, SCORED, Outcome, Value

LETTERS = "ABCDEF"
"""What the answers of an item are called, in the order shown."""
NOT_TOLD = "cannot_tell"  # reason: the rater could not tell whether a criterion is met


@dataclass(frozen=True, slots=True)
class Part:
    """What is asked for at once. `key`: "2" for criterion number 2, "3.1" for the first line of the checklist, or the
    first answer of the ranking, that is number 3. `letter`: of the answer."""

    key: str
    number: int
    criterion: Criterion
    letter: str = ""


def of_answers(criterion: Criterion, answers: int) -> Criterion:
    """A ranking of this many answers."""
    return msgspec.structs.replace(criterion, lines=tuple(LETTERS[:answers]))


def of_row(criterion: Criterion, rubric: Rubric | None) -> Criterion:
    """A checklist with the lines of a row's rubric; nothing can be required of a row without one that can be read."""
    lines = tuple(line.text for line in rubric.criteria) if rubric else ()
    return msgspec.structs.replace(criterion, lines=lines, required=criterion.required and bool(lines))


def parts_of(criteria: Mapping[int, Criterion]) -> list[Part]:
    """The parts of criteria about a row, in order."""
    parts = []
    for number, criterion in criteria.items():
        if criterion.ranks:
            parts += _places(number, criterion, named=len(criteria) > 1)
        elif criterion.by_line:
            lines = (
                Criterion(name=line, scale="mark", required=criterion.required) for line in criterion.lines
            )
            parts += [Part(f"{number}.{place}", number, line) for place, line in enumerate(lines, 1)]
        else:
            parts.append(Part(str(number), number, criterion))
    return parts


def _places(number: int, criterion: Criterion, *, named: bool) -> list[Part]:
    """The place of each answer. `named`: there are other criteria to tell it from."""
    required, letters = criterion.required, criterion.lines
    return [
        Part(
            f"{number}.{line}",
            number,
            Criterion(
                name=f"{criterion.name} · {letter}" if named else letter,
                scale="place",
                required=required,
                lines=letters,
            ),
            letter,
        )
        for line, letter in enumerate(letters, 1)
    ]


def split(criteria: Mapping[int, Criterion], values: Mapping[int, Any]) -> dict[str, Any]:
    """Values by criterion number as values by key of the part; lines without a mark or place have none."""
    by_key: dict[str, Any] = {}
    for number, value in values.items():
        if number in criteria and criteria[number].by_line:
            marks: list[Any] = list(marks_of(value))
            if criteria[number].ranks:
                marks = [int(mark) if mark.isdecimal() else "" for mark in marks]
            by_key |= {f"{number}.{line}": mark for line, mark in enumerate(marks, 1) if mark}
        else:
            by_key[str(number)] = value
    return by_key


def joined(criteria: Mapping[int, Criterion], values: Mapping[str, Any]) -> dict[int, Any]:
    """The inverse of `split`: {criterion number: value}."""
    by_number: dict[int, Any] = {}
    for number, criterion in criteria.items():
        if criterion.by_line:
            keys = [f"{number}.{place}" for place in range(1, len(criterion.lines) + 1)]
            value: Any = ",".join(str(values.get(key) or "") for key in keys).strip()
            value = value if value.strip(",") else None
        else:
            value = values.get(str(number))
        if not is_empty(value):
            by_number[number] = value
    return by_number


_MARK_OF: dict[Any, str] = {True: MET, False: NOT_MET, None: CANNOT_TELL} | {mark: mark for mark in MARKS}


class UnknownLine(Exception):
    """A mark names a line that the rubric lacks: `id`."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.id = id


def marks_by_id(value: Value, rubric: Rubric) -> dict[str, str]:
    """A checklist's value for files: {id of the criterion: met, not_met or open}."""
    return {line.id: mark for line, mark in zip(rubric.criteria, marks_of(value), strict=False)}


def value_by_id(marks: Mapping[str, Any], rubric: Rubric | None) -> str:
    """The inverse; true, false and null are read too. Lines without a mark have an empty one, and marks that are none
    stay as they are, for `accepted` to refuse. Raises UnknownLine."""
    ids = [line.id for line in rubric.criteria] if rubric else []
    for id in marks:
        if id not in ids:
            raise UnknownLine(id)
    return ",".join(_MARK_OF.get(marks[id], str(marks[id])) if id in marks else "" for id in ids)


def outcome_of_rating(
    criterion: Criterion, value: Value | None, rubric: Rubric | None
) -> tuple[Outcome, Checklist | None]:
    """The outcome stored for a value, and what became of each line where it is a checklist. Not for rankings, whose
    judgements are about pairs: `outcomes_of_ranking`."""
    if criterion.gives != CHECKLIST or value is None or rubric is None:
        return outcome_of(criterion, value), None
    met = [None if mark == CANNOT_TELL else mark == MET for mark in marks_of(value)]
    checklist = judged(rubric, met, [NOT_TOLD] * len(met))
    return outcome_of_checklist(checklist), checklist


def outcomes_of_ranking(value: Value | None, answers: int) -> list[tuple[int, int, Outcome]]:
    """The comparisons that a ranking of this many answers implies: two answers' positions in the item, from 0, and the
    outcome; without a value each is left empty."""
    if value is None:
        return [(a, b, Outcome(NO_SCORE, reason=LEFT_EMPTY)) for a, b in pairs_among(answers)]
    return [(a, b, Outcome(SCORED, better)) for a, b, better in pairs_of(str(value))]
