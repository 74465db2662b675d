"""Disagreements between raters and their adjudication. Decisions are stored next to the ratings and change none."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import msgspec
from django.db import transaction
from django.utils.text import Truncator

from datasets.core.kinds import BOTH_BAD, CHECKLIST, COMPARISON_CODES, SCORE
from evalsite.accounts.models import User
from evalsite.audit import Action
from judging.core.people.criteria import Criterion, accepted, marks_of
from judging.core.people.item_outcomes import ItemKind
from judging.core.people.ranking import distance
from judging.core.people.spans import spans_text
from judging.core.values import Value
from judging.people.assignments import audit
from judging.people.item_criteria import criteria_for
from judging.people.judgements import figures_change, tell_of_labels
from judging.people.labels import labelled_kinds, values_of
from judging.people.models import Adjudication, Assignment, Evaluation, Item
from judging.people.outcomes import item_kinds
from judging.people.progress import rated
from judging.people.sent_items import decided_items, sent_items
from judging.records.json_text import storable
from judging.records.seal import waiting_to_open
from judging.records.stored_judgement import data_of

_BEGINNING = 120  # characters of a question in a list


@dataclass(frozen=True, slots=True)
class Differing:
    """An item on which raters disagree: by how much (0…1), number of ratings, whether it has been adjudicated.
    `kinds`: of its outcome, as labels.labelled_kinds returns them."""

    number: int
    difference: float
    ratings: int
    decided: bool
    question: str = ""
    kinds: Sequence[tuple[str, ItemKind, str]] = ()


LEAST = 0.25  # of the scale's width: one step on 1–5, three on 1–10


def differing(evaluation: Evaluation, least: float = LEAST) -> list[Differing]:
    """Items with differing verdicts of two or more raters, and those that were sent here, largest difference first.
    Scores differ if they are apart by `least` of their scale's width; of labels, any difference counts."""
    ratings = {item: list(by.values()) for item, by in rated(evaluation).items()}
    criteria = evaluation.criteria
    apart = {
        item: difference(criteria, values) if differs(criteria, values, least) else 0.0
        for item, values in ratings.items()
        if len(values) > 1
    }
    decided, sent = decided_items(evaluation), sent_items(evaluation)
    numbers = dict(Item.objects.filter(evaluation=evaluation).values_list("pk", "number"))
    entries = [
        Differing(numbers[item], apart.get(item, 0.0), len(ratings.get(item, ())), item in decided)
        for item in apart.keys() | sent
        if apart.get(item) or item in sent
    ]
    return sorted(entries, key=lambda entry: (-entry.difference, entry.number))


def with_questions(evaluation: Evaluation, entries: Sequence[Differing]) -> list[Differing]:
    """The same entries, each with the beginning of its question and the kinds of its outcome."""
    items = Item.objects.filter(evaluation=evaluation, number__in=[entry.number for entry in entries])
    numbers = dict(items.values_list("pk", "number"))
    kinds = {numbers[item]: of for item, of in item_kinds(evaluation, list(numbers)).items()}
    raws = dict(items.values_list("number", "row__raw"))
    fmt = evaluation.run.version.format
    questions = {number: str(data_of(raw, fmt)["question"] or "") for number, raw in raws.items()}
    return [
        replace(
            entry,
            question=Truncator(questions[entry.number]).chars(_BEGINNING),
            kinds=labelled_kinds(evaluation.criteria, kinds.get(entry.number, {})),
        )
        for entry in entries
    ]


def verdicts(item: Item) -> list[tuple[dict[int, Value], str]]:
    """All current verdicts on an item, (values, comment), in an order that does not reveal the raters."""
    assignments = Assignment.objects.counted().filter(item=item)
    texts = assignments.order_by("pk").values_list("rating__values", "rating__comment")
    verdicts = [(values_of(values), comment) for values, comment in texts]
    random.Random(f"adjudicate:{item.pk}").shuffle(verdicts)
    return verdicts


def with_choices(
    criteria: Mapping[int, Criterion], said: Sequence[tuple[Mapping[int, Value], str]]
) -> dict[int, Criterion]:
    """The criteria; of spans with what raters have marked, and nothing to mark, to choose from. `said`: as `verdicts`
    returns it."""
    chosen: dict[int, Criterion] = {}
    for number, criterion in criteria.items():
        texts = (str(values[number]) for values, _comment in said if number in values)
        lines = tuple(dict.fromkeys((*texts, spans_text([])))) if criterion.marks_spans else criterion.lines
        chosen[number] = msgspec.structs.replace(criterion, lines=lines)
    return chosen


class ClosedTest(Exception):
    """The labels of a judge's test count as they stood when it was closed."""


@transaction.atomic
def adjudicate(*, item: Item, values: Mapping[int, Any], reason: str, by: User) -> Adjudication:
    """Record a decision on an item. `values`: canonical, as the page shows them.

    Raises ValuesRefused, or ClosedTest if the item is in a judge's test that was closed and not opened yet.
    """
    evaluation = item.evaluation
    if item.row_id in waiting_to_open(evaluation.run):
        raise ClosedTest
    decided = accepted(criteria_for(evaluation, item), values)
    adjudication = Adjudication.objects.create(
        item=item,
        values=storable(json.dumps(decided, ensure_ascii=False)) or "",
        reason=storable(reason) or "",
        by=by,
    )
    figures_change(evaluation)
    tell_of_labels(evaluation)
    audit(Action.ADJUDICATED, evaluation, by, item=item.number)
    return adjudication


_HARDLY = 0.1  # "both bad" vs. "the same": different verdicts without a different preference


def difference(criteria: Mapping[int, Criterion], ratings: Sequence[Mapping[int, Value]]) -> float:
    """Return 0 if all verdicts on an item are equal, 1 if they are as far apart as possible; with several criteria,
    the largest difference. Free-text criteria are ignored."""
    apart = [
        _apart(criterion, [values[number] for values in ratings if number in values])
        for number, criterion in criteria.items()
        if criterion.scale != "text"
    ]
    return max(apart, default=0.0)


def differs(criteria: Mapping[int, Criterion], ratings: Sequence[Mapping[int, Value]], least: float) -> bool:
    """Whether the verdicts on an item differ in at least one criterion; see `differing`."""
    for number, criterion in criteria.items():
        values = [rating[number] for rating in ratings if number in rating]
        limit = least if criterion.is_ordered and BOTH_BAD not in values else 0.0
        apart = 0.0 if criterion.scale == "text" else _apart(criterion, values)
        if apart and apart >= limit:
            return True
    return False


def _apart(criterion: Criterion, values: Sequence[Value]) -> float:
    if len(values) < 2 or len(set(values)) == 1:
        return 0.0
    if criterion.gives == SCORE:
        low, *_between, high = (float(value) for value in criterion.choices)
        numbers = [float(value) for value in values if not isinstance(value, str)]
        return (max(numbers) - min(numbers)) / (high - low)
    if criterion.ranks:
        return max(distance(str(a), str(b)) for a, b in combinations(set(values), 2))
    if criterion.compares:
        steps = [2 if value == BOTH_BAD else COMPARISON_CODES.index(str(value)) for value in values]
        widest = 4 if criterion.scale == "steps" else 2
        return max(_HARDLY, (max(steps) - min(steps)) / widest)
    if criterion.gives == CHECKLIST:
        lines = [set(marks) for marks in zip(*map(marks_of, values), strict=False)]
        return sum(len(marks) > 1 for marks in lines) / len(lines)
    most = Counter(values).most_common(1)[0][1]
    return 1.0 - (most - 1) / (len(values) - 1)
