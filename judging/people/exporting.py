"""Ratings as lines: JSON Lines and CSV, each with the side shown, the time and the rater. What is exported can be
imported again (importing.py), here or into an evaluation of the same rows."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

from datasets.models import Candidate
from evalsite.cells import cell
from judging.core.people.criteria import Criterion
from judging.people.looking import criteria_of
from judging.people.messages import values_of
from judging.people.models import Evaluation, Rating, RatingKind

_BATCH = 500
COLUMNS = (
    *("key", "item", "row", "candidate", "answer", "other", "other_answer", "rater", "at", "shown_first"),
    *("seconds", "attempt", "current", "extra", "gold", "repeat_of", "drawn_with", "comment"),
)
VALUE = "value: "
"""What a criterion's column in CSV is called by, before its name."""


def records(
    evaluation: Evaluation, *, names: bool = False, history: bool = False
) -> Iterator[dict[str, Any]]:
    """Every verdict that counts, by item; with `history` also those that were changed or taken back.

    `names`: user names in place of pseudonyms. Values are canonical: `A` is `candidate`, `B` is `other`.
    """
    criteria = criteria_of(evaluation)
    candidates = dict(
        Candidate.objects.filter(pk__in=evaluation.run.run_candidates.values("candidate")).values_list(
            "pk", "name"
        )
    )
    given = (RatingKind.VERDICT, RatingKind.CHANGE)
    found = Rating.objects.filter(rater__evaluation=evaluation, kind__in=given).order_by("pk")
    parts = (
        "rater__user",
        "assignment__item__row",
        "assignment__item__response",
        "assignment__item__other_response",
    )
    for rating in found.select_related(*parts, "assignment__item__repeat_of").iterator(_BATCH):
        current = rating.assignment.rating_id == rating.pk
        if current or history:
            yield _record(rating, criteria, candidates, names=names, current=current)


def _record(
    rating: Rating, criteria: dict[int, Criterion], candidates: dict[int, str], *, names: bool, current: bool
) -> dict[str, Any]:
    item, values = rating.assignment.item, values_of(rating.values)
    other = item.other_response
    return {
        "key": str(rating.key),
        "item": item.number,
        "row": item.row.line,
        "candidate": candidates[item.response.candidate_id],
        "answer": item.response.number,
        "other": candidates[other.candidate_id] if other else None,
        "other_answer": other.number if other else None,
        "rater": rating.rater.user.username if names else rating.rater.pseudonym,
        "at": rating.at.isoformat(),
        "shown_first": rating.assignment.shown_first,
        "seconds": rating.seconds,
        "attempt": rating.attempt,
        "current": current,
        "extra": rating.extra,
        "gold": bool(item.gold),
        "repeat_of": item.repeat_of.number if item.repeat_of else None,
        "drawn_with": item.drawn_with,
        "values": {one.name: values[number] for number, one in criteria.items() if number in values},
        "comment": rating.comment,
    }


def jsonl_lines(evaluation: Evaluation, *, names: bool = False, history: bool = False) -> Iterator[bytes]:
    """One object a line, UTF-8."""
    for record in records(evaluation, names=names, history=history):
        yield json.dumps(record, ensure_ascii=False).encode() + b"\n"


def csv_lines(evaluation: Evaluation, *, names: bool = False, history: bool = False) -> Iterator[bytes]:
    """The same as a table for spreadsheets; a column for each criterion. UTF-8 with a mark at its beginning."""
    criteria = [one.name for one in criteria_of(evaluation).values()]
    yield b"\xef\xbb\xbf" + _line([*COLUMNS, *(VALUE + name for name in criteria)])
    for record in records(evaluation, names=names, history=history):
        values = record["values"]
        cells = [record[column] for column in COLUMNS] + [values.get(name) for name in criteria]
        yield _line([cell(one) for one in cells])


def _line(cells: list[Any]) -> bytes:
    buffer = StringIO()
    csv.writer(buffer).writerow(cells)
    return buffer.getvalue().encode()
