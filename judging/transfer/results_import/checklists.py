"""Verdicts on single criteria: each is added to the checklist of its answer, by the same judge or rater."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count

from datasets.core.rubric import RUBRIC, Rubric, read_rubric
from datasets.models import Row
from judging.core.checklists import Checklist, checklist_from, judged, outcome_of
from judging.core.results_file.records import RefusedLine
from judging.core.results_file.verdicts import NOT_GIVEN, canonical
from judging.core.values import SCORED, UNPARSED
from judging.records import json_text
from judging.records.models import Judgement, JudgementQuerySet, Run
from judging.transfer.results_import.answers import LocatedVerdict

Key = tuple[Any, ...]
"""Response, second answer (None), metric, source, repeat and first side (None) of a checklist."""

_KEY = ("response_id", "other_response_id", "run_metric_id", "source_id", "repeat", "shown_first")


def _rubrics(rows: Iterable[int]) -> dict[int, Rubric | None]:
    """{row: its rubric}."""
    raws = Row.objects.filter(pk__in=set(rows)).values_list("pk", "raw")
    return {pk: read_rubric(json_text.loads(raw).get(RUBRIC))[0] for pk, raw in raws}


def known_criteria(located: Sequence[LocatedVerdict]) -> tuple[list[LocatedVerdict], list[RefusedLine]]:
    """The verdicts without those on criteria that their row's rubric lacks, which are refused."""
    rubrics = _rubrics(entry.row for entry in located if entry.verdict.criterion)
    ids = {
        row: {criterion.id for criterion in rubric.criteria} if rubric else set()
        for row, rubric in rubrics.items()
    }
    known: list[LocatedVerdict] = []
    refused: list[RefusedLine] = []
    for entry in located:
        name = entry.verdict.criterion
        if name and name not in ids.get(entry.row, ()):
            refused.append(RefusedLine(entry.verdict.line, "unknown_criterion", {"criterion": name[:80]}))
        else:
            known.append(entry)
    return known, refused


def stored_criteria(judgements: JudgementQuerySet) -> dict[Key, str]:
    """{key and criterion: what is stored of it, in canonical form}; open ones are left out, so that they can be
    added."""
    stored: dict[Key, str] = {}
    for *key, text in judgements.exclude(checklist="").values_list(*_KEY, "checklist"):
        checklist = checklist_from(text)
        for criterion in checklist.criteria if checklist else ():
            if criterion.met is not None:
                stored[*key, criterion.id] = canonical(criterion.met)
    return stored


def stored_ids(run: Run, responses: Iterable[int]) -> dict[Key, int]:
    """{key: id} of the checklists on these answers."""
    checklists = Judgement.objects.filter(run=run, response__in=set(responses)).exclude(checklist="")
    return {tuple(key): pk for pk, *key in checklists.values_list("pk", *_KEY)}


@dataclass(slots=True)
class MergedChecklists:
    """Columns of new judgements, each with the first verdict on it, and changed ones by id; by how much the numbers of
    judgements in each state change; the number of each verdict's criterion, from 1."""

    created: list[tuple[LocatedVerdict, dict[str, Any]]] = field(default_factory=list)
    changed: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    states: Counter[str] = field(default_factory=Counter)
    numbers: dict[LocatedVerdict, int] = field(default_factory=dict)


def merge_checklists(run: Run, keys: Sequence[Key], verdicts: Sequence[LocatedVerdict]) -> MergedChecklists:
    """Add verdicts on criteria to stored checklists, or to new ones in which all others are open."""
    rubrics = _rubrics(located.row for located in verdicts)
    responses = {located.response for located in verdicts}
    checklists = Judgement.objects.filter(run=run, response__in=responses).exclude(checklist="")
    stored = {
        tuple(key): (pk, state, text)
        for pk, state, text, *key in checklists.values_list("pk", "state", "checklist", *_KEY)
    }
    by_key: dict[Key, list[LocatedVerdict]] = {}
    for key, located in zip(keys, verdicts, strict=True):
        by_key.setdefault(key, []).append(located)
    merged = MergedChecklists()
    for key, group in by_key.items():
        rubric = rubrics[group[0].row]
        assert rubric is not None  # known_criteria refuses others
        pk, state, text = stored.get(key, (None, "", ""))
        checklist = _with_verdicts(rubric, checklist_from(text), group, merged.numbers)
        columns = _columns(checklist)
        merged.states.update([columns["state"]])
        merged.states.subtract([state] if state else [])
        if pk is None:
            merged.created.append((group[0], columns))
        else:
            merged.changed.append((pk, columns))
    return merged


def _with_verdicts(
    rubric: Rubric,
    stored: Checklist | None,
    group: Sequence[LocatedVerdict],
    numbers: dict[LocatedVerdict, int],
) -> Checklist:
    met: list[bool | None] = [None] * len(rubric.criteria)
    if stored:
        met = [criterion.met for criterion in stored.criteria]
    reasons = [criterion.reason for criterion in stored.criteria] if stored else [NOT_GIVEN] * len(met)
    places = {criterion.id: place for place, criterion in enumerate(rubric.criteria)}
    for located in group:
        place, verdict = places[located.verdict.criterion], located.verdict
        numbers[located] = place + 1
        if verdict.state == SCORED:
            met[place] = bool(verdict.value)
        reasons[place] = verdict.reason
    return judged(rubric, met, reasons)


def _columns(checklist: Checklist) -> dict[str, Any]:
    outcome = outcome_of(checklist)
    assert outcome.state in (SCORED, UNPARSED)
    return {
        "state": outcome.state,
        "value": outcome.value_json,
        "score": outcome.score,
        "reason": outcome.reason,
        "detail": outcome.detail,
        "checklist": checklist.to_json(),
        "verdicts": "",
    }


def verdict_counts(judgements: JudgementQuerySet) -> Counter[str]:
    """The number of imported verdicts in each state; those of a checklist are about its criteria."""
    whole = judgements.filter(checklist="").order_by().values_list("state").annotate(Count("pk"))
    counts = Counter[str](dict(whole))
    for text in judgements.exclude(checklist="").values_list("checklist", flat=True).iterator():
        checklist = checklist_from(text)
        for criterion in checklist.criteria if checklist else ():
            counts[SCORED] += criterion.met is not None
            counts[UNPARSED] += criterion.met is None and criterion.reason != NOT_GIVEN
    return counts
