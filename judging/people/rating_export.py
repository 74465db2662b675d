"""Export of ratings as JSON Lines and CSV, each with the side shown, the time and the rater. Exports can be imported
again (rating_import.py), here or into an evaluation of the same rows."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any

from datasets.core.kinds import CHECKLIST
from datasets.core.own_exports import RATING_COLUMNS
from datasets.core.variables import response_data
from datasets.models import Candidate, Response, Row
from evalsite.table_files import csv_of
from judging.core.people.criteria import Criterion, counted_value
from judging.core.people.parts import marks_by_id
from judging.core.people.ranking import pairs_of
from judging.core.people.spans import records_of
from judging.people.item_criteria import marks_spans, places_by_name, rubric_in
from judging.people.labels import values_of
from judging.people.models import Adjudication, Evaluation, EvaluationRater, Item, Rating, RatingKind, Scheme
from judging.people.outcomes import item_kinds
from judging.records.models import Judgement
from judging.records.seal import sealed_items
from judging.records.stored_judgement import data_of

_BATCH = 500
VALUE, DECIDED, OUTCOME, SPANS = "value: ", "adjudicated: ", "outcome: ", "spans: "
"""Prefixes of the columns of criteria in CSV."""
LATER_COLUMNS = ("guideline_version", "set_aside", "stage", "id", "kind", "skipped")
TEXTS = ("question", "response", "other_response", "further_responses")
"""Columns of CSV after those by which our tables are recognised. The last one only where answers are ranked."""


def records(
    evaluation: Evaluation, *, names: bool = False, history: bool = False, texts: bool = False
) -> Iterator[dict[str, Any]]:
    """All current verdicts by item; with `history` also those changed or undone, and skips with their reasons.

    Ratings of a sealed test are left out.
    `id`: the row's own. `set_aside`: kept, but counted nowhere. With `texts` the question and the answers.
    `names`: user names instead of pseudonyms. Values are canonical: `A` is `candidate`, `B` is `other`. `outcome`: the
    kind of the item's outcome, by criterion; None for gold items and repeats. The value of marked spans is their sum;
    `spans`: they themselves, by criterion, and `adjudicated_spans` those of the adjudication.
    """
    for _pk, rating in _numbered(evaluation, 0, names=names, history=history, texts=texts):
        yield rating


def record_page(
    evaluation: Evaluation, *, names: bool, history: bool, texts: bool = False, after: int, size: int
) -> tuple[list[dict[str, Any]], int | None]:
    """Up to `size` records of ratings with ids above `after`, and the `after` of the next page or None."""
    page = list(islice(_numbered(evaluation, after, names=names, history=history, texts=texts), size + 1))
    following = page[size - 1][0] if len(page) > size else None
    return [rating for _pk, rating in page[:size]], following


def _numbered(
    evaluation: Evaluation, after: int, *, names: bool, history: bool, texts: bool
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The records with the ids of their ratings, from the first above `after`."""
    criteria = evaluation.criteria
    candidates = dict(
        Candidate.objects.filter(pk__in=evaluation.run.run_candidates.values("candidate")).values_list(
            "pk", "name"
        )
    )
    decided, marked = decisions(evaluation), marks_spans(evaluation)
    kinds = [RatingKind.VERDICT, RatingKind.CHANGE, *([RatingKind.SKIP] if history else [])]
    ratings = Rating.objects.filter(rater__evaluation=evaluation, kind__in=kinds, pk__gt=after).order_by("pk")
    ratings = ratings.exclude(assignment__item__row__in=sealed_items(evaluation.run))
    parts = (
        "rater__user",
        "assignment__item__row",
        "assignment__item__response",
        "assignment__item__other_response",
        "assignment__entry",
    )
    ratings = ratings.select_related(*parts, "assignment__item__repeat_of")
    if evaluation.scheme == Scheme.RANK:
        answers = ("response", "other_response", "further__response")
        ratings = ratings.prefetch_related(*(f"assignment__item__{answer}__candidate" for answer in answers))
    stored = ratings.iterator(_BATCH)
    while batch := list(islice(stored, _BATCH)):
        outcomes = item_kinds(evaluation, {rating.assignment.item_id for rating in batch})
        for rating in batch:
            current = rating.assignment.rating_id == rating.pk
            if current or history:
                record = _record(rating, criteria, candidates, names=names, current=current)
                if texts:
                    record |= _texts(evaluation, rating.assignment.item)
                decision = decided.get(rating.assignment.item_id)
                item = rating.assignment.item
                adjudicated = None if decision is None else _by_name(criteria, decision, item)
                kinds_by_number = outcomes.get(rating.assignment.item_id, {})
                outcome = {criteria[number].name: kind for number, kind in kinds_by_number.items()}
                record |= {"adjudicated": adjudicated, "outcome": outcome or None}
                if marked:
                    record["adjudicated_spans"] = _spans_by_name(criteria, decision or {}) or None
                yield rating.pk, record


def decisions(evaluation: Evaluation) -> dict[int, dict[int, Any]]:
    """{item: {criterion number: value}} from adjudications; the newest counts."""
    adjudications = Adjudication.objects.filter(item__evaluation=evaluation).order_by("pk")
    return {item: values_of(values) for item, values in adjudications.values_list("item", "values")}


def _by_name(criteria: dict[int, Criterion], values: dict[int, Any], item: Item) -> dict[str, Any]:
    """Values by name of the criterion; of a checklist the marks by id of its row's criteria, of a ranking the places by
    candidate, of spans their sum."""
    return {
        criterion.name: _of_item(criterion, values[number], item)
        for number, criterion in criteria.items()
        if number in values
    }


def _of_item(criterion: Criterion, value: Any, item: Item) -> Any:
    if criterion.ranks:
        return places_by_name(item, value)
    rubric = rubric_in(item.row) if criterion.gives == CHECKLIST else None
    return marks_by_id(value, rubric) if rubric else counted_value(criterion, value)


def _spans_by_name(criteria: Mapping[int, Criterion], values: Mapping[int, Any]) -> dict[str, Any]:
    """{criterion: [{start, end, label, severity}]}."""
    return {
        criterion.name: records_of(values[number])
        for number, criterion in criteria.items()
        if criterion.marks_spans and number in values
    }


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
            response__in={judgement.response_id for judgement in judgements}, repeat_of=None
        ).values_list("pk", "response", "other_response")
    }
    others = Response.objects.in_bulk(
        {judgement.other_response_id for judgement in judgements if judgement.other_response_id}
    )
    names = Candidate.objects.in_bulk({response.candidate_id for response in others.values()})
    decided = decisions(evaluation)
    ranked = _ranked_items(evaluation, judgements) if evaluation.scheme == Scheme.RANK else {}
    criteria = evaluation.criteria
    by_judgement = {}
    for judgement in judgements:
        other = others.get(judgement.other_response_id or 0)
        item = items.get((judgement.response_id, judgement.other_response_id), 0)
        number = judgement.run_metric.number
        adjudicated = decided.get(item, {}).get(number)
        if criteria[number].marks_spans and adjudicated is not None:
            adjudicated = counted_value(criteria[number], adjudicated)
        if judgement.row_id in ranked:
            adjudicated = _adjudicated_pair(ranked[judgement.row_id], judgement, decided)
        by_judgement[judgement.pk] = {
            "other_model": names[other.candidate_id].name if other else None,
            "other_response": other.number if other else None,
            "rater": pseudonyms.get(judgement.rater_id or 0),
            "shown_first": judgement.shown_first,
            "drawn_with": judgement.drawn_with,
            "adjudicated": adjudicated,
        }
        if criteria[number].marks_spans and judgement.rating:
            stored = values_of(judgement.rating.values).get(number)
            by_judgement[judgement.pk]["spans"] = None if stored is None else records_of(stored)
    return by_judgement


def _ranked_items(evaluation: Evaluation, judgements: Collection[Judgement]) -> dict[int, Item]:
    """{row: item} of ranked answers."""
    items = evaluation.items.filter(row__in={judgement.row_id for judgement in judgements}, repeat_of=None)
    items = items.select_related("response", "other_response").prefetch_related("further__response")
    return {item.row_id: item for item in items}


def _adjudicated_pair(
    item: Item, judgement: Judgement, decided: Mapping[int, Mapping[int, Any]]
) -> str | None:
    """What an adjudicated ranking says of a judgement's pair."""
    ranking = decided.get(item.pk, {}).get(judgement.run_metric.number)
    answers = [answer.pk for answer in item.answers]
    pair = [answers.index(pk) for pk in (judgement.response_id, judgement.other_response_id) if pk]
    return next((better for a, b, better in pairs_of(ranking) if [a, b] == pair), None) if ranking else None


def _record(
    rating: Rating, criteria: dict[int, Criterion], candidates: dict[int, str], *, names: bool, current: bool
) -> dict[str, Any]:
    item, values = rating.assignment.item, values_of(rating.values)
    marked = any(criterion.marks_spans for criterion in criteria.values())
    other = None if item.is_ranked else item.other_response
    order = rating.assignment.order if item.is_ranked else []
    return {
        "key": str(rating.key),
        "item": item.number,
        "row": item.row.line,
        "candidate": None if item.is_ranked else candidates[item.response.candidate_id],
        "answer": None if item.is_ranked else item.response.number,
        "other": candidates[other.candidate_id] if other else None,
        "other_answer": other.number if other else None,
        "rater": rating.rater.user.username if names else rating.rater.pseudonym,
        "at": rating.at.isoformat(),
        "shown_first": rating.assignment.shown_first,
        "shown_order": [item.candidate_names[position] for position in order],
        "seconds": rating.seconds,
        "attempt": rating.attempt,
        "current": current,
        "extra": rating.extra,
        "set_aside": rating.rater.set_aside_at is not None,
        "gold": bool(item.gold),
        "repeat_of": item.repeat_of.number if item.repeat_of else None,
        "drawn_with": item.drawn_with,
        "values": _by_name(criteria, values, item),
        "comment": rating.comment,
        "guideline_version": rating.guideline_version,
        "stage": _stage(rating),
        "id": _row_id(item.row),
        "kind": rating.kind,
        "skipped": rating.reason,
        **({"spans": _spans_by_name(criteria, values) or None} if marked else {}),
    }


def _stage(rating: Rating) -> str | None:
    """ "training" or "qualification", in which ratings count nowhere; None for the real queue."""
    entry = getattr(rating.assignment, "entry", None)
    if entry is None:
        return None
    return "training" if entry.qualification_try_id is None else "qualification"


def _row_id(row: Row) -> Any:
    raw = json.loads(row.raw)
    identity = raw.get("id") if isinstance(raw, dict) else None
    return identity if isinstance(identity, str | int) else None


def _texts(evaluation: Evaluation, item: Item) -> dict[str, Any]:
    """The question and the answers as texts, of ranked ones the third and later in a list."""
    question = str(data_of(item.row.raw, evaluation.run.version.format)["question"] or "")
    first, *others = [str(response_data(answer.raw)["content"]) for answer in item.answers]
    texts = [question, first, *(others[:1] or [""]), others[1:]]
    return dict(zip(_text_columns(evaluation), texts, strict=False))


def _text_columns(evaluation: Evaluation) -> tuple[str, ...]:
    return TEXTS if evaluation.scheme == Scheme.RANK else TEXTS[:-1]


def jsonl_lines(
    evaluation: Evaluation, *, names: bool = False, history: bool = False, texts: bool = False
) -> Iterator[bytes]:
    """One JSON object per line, UTF-8."""
    for record in records(evaluation, names=names, history=history, texts=texts):
        yield json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _cell(value: Any) -> Any:
    """A value in a table: marks, places and lists as JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def csv_lines(
    evaluation: Evaluation, *, names: bool = False, history: bool = False, texts: bool = False
) -> Iterator[bytes]:
    """The same as a table for spreadsheets, with a column for each criterion. UTF-8 with a byte order mark."""
    columns = (*RATING_COLUMNS, *LATER_COLUMNS, *(_text_columns(evaluation) if texts else ()))
    criteria = [criterion.name for criterion in evaluation.criteria.values()]
    marked = [criterion.name for criterion in evaluation.criteria.values() if criterion.marks_spans]
    heads = [prefix + name for prefix in (VALUE, DECIDED, OUTCOME) for name in criteria] + ["shown_order"]
    heads += [prefix + name for prefix in (SPANS, DECIDED + SPANS) for name in marked]
    rows = (
        [
            *(_cell(record[column]) for column in columns),
            *(_cell(record["values"].get(name)) for name in criteria),
            *(_cell((record["adjudicated"] or {}).get(name)) for name in criteria),
            *((record["outcome"] or {}).get(name) for name in criteria),
            _cell(record["shown_order"] or None),
            *(
                _cell((record[spans] or {}).get(name))
                for spans in ("spans", "adjudicated_spans")
                for name in marked
            ),
        ]
        for record in records(evaluation, names=names, history=history, texts=texts)
    )
    return csv_of([*columns, *heads], rows)
