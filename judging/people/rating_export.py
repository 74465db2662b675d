"""Export of ratings as JSON Lines and CSV, each with the side shown, the time and the rater. Exports can be imported
again (rating_import.py), here or into an evaluation of the same rows."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from datasets.models import Candidate, Response
from evalsite.table_files import csv_of
from judging.core.people.criteria import Criterion
from judging.people.labels import values_of
from judging.people.models import Adjudication, Evaluation, EvaluationRater, Rating, RatingKind
from judging.runs.models import Judgement

_BATCH = 500
COLUMNS = (
    *("key", "item", "row", "candidate", "answer", "other", "other_answer", "rater", "at", "shown_first"),
    *("seconds", "attempt", "current", "extra", "gold", "repeat_of", "drawn_with", "comment"),
)
VALUE, DECIDED = "value: ", "adjudicated: "
"""Prefixes of the columns of criteria in CSV."""


def records(
    evaluation: Evaluation, *, names: bool = False, history: bool = False
) -> Iterator[dict[str, Any]]:
    """All current verdicts by item; with `history` also those changed or undone.

    `names`: user names instead of pseudonyms. Values are canonical: `A` is `candidate`, `B` is `other`.
    """
    criteria = evaluation.criteria
    candidates = dict(
        Candidate.objects.filter(pk__in=evaluation.run.run_candidates.values("candidate")).values_list(
            "pk", "name"
        )
    )
    decided = decisions(evaluation)
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
            record = _record(rating, criteria, candidates, names=names, current=current)
            known = decided.get(rating.assignment.item_id)
            yield record | {"adjudicated": None if known is None else _by_name(criteria, known)}


def decisions(evaluation: Evaluation) -> dict[int, dict[int, Any]]:
    """{item: {criterion number: value}} from adjudications; the newest counts."""
    found = Adjudication.objects.filter(item__evaluation=evaluation).order_by("pk")
    return {item: values_of(values) for item, values in found.values_list("item", "values")}


def _by_name(criteria: dict[int, Criterion], values: dict[int, Any]) -> dict[str, Any]:
    return {one.name: values[number] for number, one in criteria.items() if number in values}


def people_of(judgements: Collection[Judgement]) -> dict[int, dict[str, Any]]:
    """{judgement: rater, second answer and adjudication} of one human evaluation's judgements.

    The keys are those of a results file; raters appear under their pseudonyms.
    """
    first = next(iter(judgements), None)
    if first is None:
        return {}
    evaluation = Evaluation.objects.get(run=first.run_id)
    raters = EvaluationRater.objects.filter(evaluation=evaluation)
    pseudonyms = dict(raters.values_list("user", "pseudonym"))
    items: dict[tuple[int, int | None], int] = {
        (response, other): pk
        for pk, response, other in evaluation.items.filter(
            response__in={one.response_id for one in judgements}, repeat_of=None
        ).values_list("pk", "response", "other_response")
    }
    others = Response.objects.in_bulk({one.other_response_id for one in judgements if one.other_response_id})
    names = Candidate.objects.in_bulk({one.candidate_id for one in others.values()})
    decided = decisions(evaluation)
    found = {}
    for one in judgements:
        other = others.get(one.other_response_id or 0)
        item = items.get((one.response_id, one.other_response_id), 0)
        found[one.pk] = {
            "other_model": names[other.candidate_id].name if other else None,
            "other_response": other.number if other else None,
            "rater": pseudonyms.get(one.rater_id or 0),
            "shown_first": one.shown_first,
            "drawn_with": one.drawn_with,
            "adjudicated": decided.get(item, {}).get(one.run_metric.number),
        }
    return found


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
        "values": _by_name(criteria, values),
        "comment": rating.comment,
    }


def jsonl_lines(evaluation: Evaluation, *, names: bool = False, history: bool = False) -> Iterator[bytes]:
    """One JSON object per line, UTF-8."""
    for record in records(evaluation, names=names, history=history):
        yield json.dumps(record, ensure_ascii=False).encode() + b"\n"


def csv_lines(evaluation: Evaluation, *, names: bool = False, history: bool = False) -> Iterator[bytes]:
    """The same as a table for spreadsheets, with a column for each criterion. UTF-8 with a byte order mark."""
    criteria = [one.name for one in evaluation.criteria.values()]
    heads = [prefix + name for prefix in (VALUE, DECIDED) for name in criteria]
    rows = (
        [
            *(record[column] for column in COLUMNS),
            *(record["values"].get(name) for name in criteria),
            *((record["adjudicated"] or {}).get(name) for name in criteria),
        ]
        for record in records(evaluation, names=names, history=history)
    )
    return csv_of([*COLUMNS, *heads], rows)
