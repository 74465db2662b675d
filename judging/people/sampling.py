"""Sampling for an evaluation: rows, their answers, and the pairs to compare."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from datasets.core.formats import FORMATS
from datasets.core.variables import messages_of
from datasets.models import Candidate, Response, Row, Version
from datasets.versions.references import references_made
from judging.core.people.sampling import Drawn, Pair, against, balanced, draw, every_pair
from judging.core.values import NOT_RUN
from judging.people.models import Scheme
from judging.runs.filters import ANYTHING, Filters, matching
from judging.runs.models import Judgement, Run
from judging.runs.row_filters import these

_BATCH = 500
_AT_ONCE = 20_000  # judgements fetched at a time


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing to rate: ids of a row and of one or two answers."""

    row: int
    response: int
    other: int | None = None
    candidates: tuple[int, ...] = ()
    stratum: str = ""
    drawn_with: float | None = None


@dataclass(frozen=True, slots=True)
class ItemChoice:
    """What to rate, as chosen by an organiser. Without `candidates`, the references are rated.

    `about`: draw answers that this run judged, `sample_size` of them, with equal shares for all candidates;
    `stratify_by` then names one of its metrics, and each range of its scores gets an equal share too. With `filters`,
    only answers with a matching judgement are drawn. `side_names`: of this version's answers and the other's, if two
    files are compared.
    """

    version: Version
    candidates: Sequence[Candidate] = ()
    scheme: str = Scheme.NONE
    baseline: Candidate | None = None
    other_version: Version | None = None
    side_names: tuple[str, str] = ("", "")
    pairs_per_item: int = 1
    sample_size: int | None = None
    stratify_by: str = ""
    about: Run | None = None
    filters: Filters = ANYTHING
    seed: int = 0


@dataclass(frozen=True, slots=True)
class SampledItems:
    """The things to rate, ids of the candidates, and the number of rows."""

    things: list[Thing]
    candidates: list[int]
    rows: int


Answers = dict[int, dict[int, list[int]]]  # row → candidate → its answers in order


def sample_items(choice: ItemChoice) -> SampledItems:
    """Draw the things to rate."""
    if choice.about is not None:
        return _sample_answers(choice, choice.about)
    rows, strata = _strata_of_rows(choice)
    drawn = draw(strata, choice.sample_size, choice.seed, stratified=bool(choice.stratify_by))
    found = Row.objects.only("pk", "line", "raw").in_bulk([rows[one.place] for one in drawn])
    chosen = [found[rows[one.place]] for one in drawn]
    answers, taking_part = _answers(choice, chosen)
    things = _things(choice, chosen, drawn, answers)
    return SampledItems(things, taking_part, len(chosen))


def _strata_of_rows(choice: ItemChoice) -> tuple[list[int], list[str]]:
    """The rows that can be drawn, and the stratum of each. Row texts are read only for stratification."""
    known = Row.objects.filter(version=choice.version, valid=True).order_by("line")
    if not choice.stratify_by:
        rows = list(known.values_list("pk", flat=True))
        return rows, [""] * len(rows)
    found = known.only("pk", "raw").iterator(_BATCH)
    strata = {row.pk: stratum_of(row, choice.stratify_by) for row in found}
    return list(strata), list(strata.values())


def _sample_answers(choice: ItemChoice, about: Run) -> SampledItems:
    """Draw from the answers that a run judged, each with its probability; filtered answers are not a random sample,
    so they have no probability."""
    by_chance = choice.filters == ANYTHING
    judged = _judged(choice, about)
    strata = _strata(judged["candidate"], judged["score"] if choice.stratify_by else None)
    drawn = draw(strata, choice.sample_size, choice.seed, stratified=True)
    found = Response.objects.only("row", "candidate").in_bulk(
        [int(judged["response"][one.place]) for one in drawn]
    )
    things = []
    for one in drawn:
        response = found[int(judged["response"][one.place])]
        of = (response.candidate_id,)
        chance = one.probability if by_chance else None
        things.append(Thing(response.row_id, response.pk, None, of, one.stratum, chance))
    return SampledItems(things, [one.pk for one in choice.candidates], len({thing.row for thing in things}))


def _judged(choice: ItemChoice, about: Run) -> Any:
    """All answers that the run has judged: response, candidate and score (NaN: none), ordered by response."""
    metrics = about.metrics.order_by("number")
    metric = metrics.filter(name=choice.stratify_by).first() or metrics.first()
    known = Judgement.objects.filter(
        run=about, run_metric=metric, current=True, candidate__in=choice.candidates
    )
    known = (
        known.filter(rater=None, other_response=None)
        .exclude(state_in_force=NOT_RUN)
        .exclude(response__raw="")
    )
    if choice.filters != ANYTHING:
        known = known.filter(response__in=matching(about, choice.filters).values("response"))
    scores = known.order_by("position").values_list("response_id", "candidate_id", "score_in_force")
    tuples = ((pk, of, np.nan if score is None else score) for pk, of, score in scores.iterator(_AT_ONCE))
    table = np.fromiter(tuples, dtype=[("response", "i8"), ("candidate", "i8"), ("score", "f8")])
    return table[np.unique(table["response"], return_index=True)[1]]


def _strata(candidates: Any, scores: Any | None) -> list[str]:
    """The stratum of each answer: its candidate and, if scores are given, the quintile of its score."""
    if scores is None:
        return [str(one) for one in candidates]
    known = scores[~np.isnan(scores)]
    ends = np.unique(np.quantile(known, (0.2, 0.4, 0.6, 0.8))) if len(known) else known
    fifths = np.where(np.isnan(scores), -1, np.searchsorted(ends, scores, side="right"))
    return [f"{one}:{fifth}" for one, fifth in zip(candidates, fifths, strict=True)]


def stratum_of(row: Row, field: str) -> str:
    """A row's value in the field used for stratification; '' if it has none."""
    value = json.loads(row.raw).get(field)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "" if value is None else text[:200]


def _answers(choice: ItemChoice, rows: Sequence[Row]) -> tuple[Answers, list[int]]:
    answers: Answers = {row.pk: {} for row in rows}
    taking_part = [candidate.pk for candidate in choice.candidates]
    given = Response.objects.filter(row__in=these(list(answers)), candidate__in=taking_part)
    for pk, row, candidate in given.order_by("number").values_list("pk", "row_id", "candidate_id"):
        answers[row].setdefault(candidate, []).append(pk)
    if choice.scheme in (Scheme.REFERENCE, Scheme.VERSIONS) or not choice.candidates:
        taking_part.append(_add_references(answers, choice.version, rows, choice.side_names[0]))
    if choice.scheme == Scheme.VERSIONS and choice.other_version is not None:
        taking_part.append(_add_other_references(answers, choice, choice.other_version, rows))
    return answers, taking_part


def _add_references(answers: Answers, version: Version, rows: Sequence[Row], name: str) -> int:
    candidate, made = references_made(version, rows, name)
    for row, response in made.items():
        answers[row][candidate.pk] = [response]
    return candidate.pk


def _add_other_references(answers: Answers, choice: ItemChoice, other: Version, rows: Sequence[Row]) -> int:
    """Add the other version's references to the rows with the same prompts."""
    by_prompt = {prompt_of(row, choice.version.format): row.pk for row in rows}
    alike: dict[int, int] = {}
    found: list[Row] = []
    for row in Row.objects.filter(version=other, valid=True).order_by("line").iterator(_BATCH):
        here = by_prompt.pop(prompt_of(row, other.format), None)
        if here is not None:
            alike[row.pk] = here
            found.append(row)
    candidate, made = references_made(other, found, choice.side_names[1])
    for there, response in made.items():
        answers[alike[there]][candidate.pk] = [response]
    return candidate.pk


def prompt_of(row: Row, fmt: str) -> str:
    """The key for matching rows: all user messages in order, without the answers between them, which differ."""
    messages = messages_of(json.loads(row.raw), next(one for one in FORMATS if one == fmt))
    asked = [[one["role"], one["content"]] for one in messages if one["role"] != "assistant"]
    return json.dumps(asked, ensure_ascii=False)


def _things(choice: ItemChoice, rows: Sequence[Row], drawn: Sequence[Drawn], answers: Answers) -> list[Thing]:
    if choice.scheme == Scheme.NONE:
        return [
            Thing(row.pk, response, None, (candidate,), one.stratum, one.probability)
            for row, one in zip(rows, drawn, strict=True)
            for candidate, there in sorted(answers[row.pk].items())
            for response in there
        ]
    pairs = _pairs(choice, [sorted(answers[row.pk]) for row in rows])
    return [
        Thing(row.pk, answers[row.pk][a][0], answers[row.pk][b][0], (a, b), one.stratum, one.probability)
        for row, one, met in zip(rows, drawn, pairs, strict=True)
        for a, b in met
    ]


def _pairs(choice: ItemChoice, there: list[list[int]]) -> list[list[Pair]]:
    """The pairs of candidates to compare on each row. A reference's candidate is newer than all models' candidates."""
    if choice.scheme == Scheme.BALANCED:
        return balanced(there, choice.pairs_per_item, choice.seed)
    if choice.scheme == Scheme.BASELINE and choice.baseline is not None:
        return [against(choice.baseline.pk, row) for row in there]
    if choice.scheme == Scheme.REFERENCE:
        models = {candidate.pk for candidate in choice.candidates}
        return [[pair for one in row if one not in models for pair in against(one, row)] for row in there]
    return [every_pair(row) for row in there]
