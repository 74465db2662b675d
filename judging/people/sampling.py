"""Sampling for an evaluation: rows, their answers, and the pairs to compare."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from datasets.core.formats import FORMATS
from datasets.core.variables import messages_of
from datasets.models import Candidate, Response, Row, Version
from datasets.versions.references import references_made
from judging.core.people.ranking import FEWEST_RANKED, MOST_RANKED
from judging.core.people.sampling import Drawn, Pair, against, balanced, draw, every_pair
from judging.core.values import NOT_RUN
from judging.filters.conditions import matching
from judging.filters.judgement_filter import ANYTHING, Filters
from judging.filters.row_filters import id_subquery
from judging.people.models import Evaluation, Item, Scheme
from judging.records.models import Judgement, Run

_BATCH = 500
_AT_ONCE = 20_000  # judgements fetched at a time


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing to rate: ids of a row and of one or two answers, or with `further` ones of those that are ranked."""

    row: int
    response: int
    other: int | None = None
    candidates: tuple[int, ...] = ()
    stratum: str = ""
    drawn_with: float | None = None
    further: tuple[int, ...] = ()

    @property
    def answers(self) -> int:
        """The number of its answers."""
        return 1 + (self.other is not None) + len(self.further)


@dataclass(frozen=True, slots=True)
class ItemChoice:
    """What to rate, as chosen by an organiser. Without `candidates`, the references are rated.

    `about`: draw answers that this run judged, `sample_size` of them, with equal shares for all candidates;
    `stratify_by` then names one of its metrics, and each range of its scores gets an equal share too. With `filters`,
    only answers with a matching judgement are drawn. `rows`: rows that were drawn before, by id, each with its
    probability (None: not even); all answers to them are rated. `things`: answers that were drawn before.
    `side_names`: of this version's answers and the other's, if two files are compared; `side_candidates`: those to
    which further answers are added.
    """

    version: Version
    candidates: Sequence[Candidate] = ()
    scheme: str = Scheme.NONE
    baseline: Candidate | None = None
    other_version: Version | None = None
    side_names: tuple[str, str] = ("", "")
    side_candidates: tuple[Candidate, Candidate] | None = None
    pairs_per_item: int = 1
    sample_size: int | None = None
    stratify_by: str = ""
    about: Run | None = None
    filters: Filters = ANYTHING
    rows: Mapping[int, float | None] | None = None
    things: Sequence[Thing] | None = None
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
    if choice.things is not None:
        candidates = [candidate.pk for candidate in choice.candidates]
        return SampledItems(list(choice.things), candidates, len({thing.row for thing in choice.things}))
    if choice.rows is not None:
        return _answers_to_rows(choice, choice.rows)
    if choice.about is not None:
        return _sample_answers(choice, choice.about)
    rows, strata = strata_of_rows(choice.version, choice.stratify_by)
    drawn = draw(strata, choice.sample_size, choice.seed, stratified=bool(choice.stratify_by))
    by_id = Row.objects.only("pk", "line", "raw").in_bulk([rows[pick.place] for pick in drawn])
    chosen = [by_id[rows[pick.place]] for pick in drawn]
    answers, taking_part = _answers(choice, chosen)
    things = _things(choice, chosen, drawn, answers)
    return SampledItems(things, taking_part, len(chosen))


def _answers_to_rows(choice: ItemChoice, chances: Mapping[int, float | None]) -> SampledItems:
    by_id = Row.objects.only("pk", "line", "raw").in_bulk(list(chances))
    rows = sorted(by_id.values(), key=lambda row: row.line)
    answers, taking_part = _answers(choice, rows)
    things = _things(choice, rows, [Drawn(place, "", 1.0) for place in range(len(rows))], answers)
    drawn = [replace(thing, drawn_with=chances[thing.row]) for thing in things]
    return SampledItems(drawn, taking_part, len(rows))


def strata_of_rows(version: Version, field: str) -> tuple[list[int], list[str]]:
    """The rows that can be drawn, and the stratum of each by a field. Without one the texts of rows are not read."""
    valid_rows = Row.objects.filter(version=version, valid=True).order_by("line")
    if not field:
        rows = list(valid_rows.values_list("pk", flat=True))
        return rows, [""] * len(rows)
    whole_rows = valid_rows.only("pk", "raw").iterator(_BATCH)
    strata = {row.pk: stratum_of(row, field) for row in whole_rows}
    return list(strata), list(strata.values())


def _sample_answers(choice: ItemChoice, about: Run) -> SampledItems:
    """Draw from the answers that a run judged, each with its probability; filtered answers are not a random sample,
    so they have no probability."""
    by_chance = choice.filters == ANYTHING
    judged = _judged_answers(choice, about)
    strata = _strata(judged["candidate"], judged["score"] if choice.stratify_by else None)
    drawn = draw(strata, choice.sample_size, choice.seed, stratified=True)
    responses = Response.objects.only("row", "candidate").in_bulk(
        [int(judged["response"][pick.place]) for pick in drawn]
    )
    things = []
    for pick in drawn:
        response = responses[int(judged["response"][pick.place])]
        of = (response.candidate_id,)
        chance = pick.probability if by_chance else None
        things.append(Thing(response.row_id, response.pk, None, of, pick.stratum, chance))
    return SampledItems(
        things, [candidate.pk for candidate in choice.candidates], len({thing.row for thing in things})
    )


def strata_of_draw(evaluation: Evaluation) -> dict[int, str]:
    """{response id: stratum} for all answers from which an evaluation of a run's answers was drawn by their scores.

    Computed again from the scores that the answers have now; empty if these no longer give the strata of the draw, or
    if the items were not drawn at random from such strata.
    """
    about = evaluation.about_run
    if about is None or not evaluation.stratify_by:
        return {}
    candidates = Candidate.objects.filter(pk__in=evaluation.run.run_candidates.values("candidate"))
    choice = ItemChoice(
        version=about.version,
        candidates=list(candidates),
        stratify_by=evaluation.stratify_by,
        about=about,
    )
    judged = _judged_answers(choice, about)
    strata = _strata(judged["candidate"], judged["score"])
    by_response = dict(zip(judged["response"].tolist(), strata, strict=True))
    items = Item.objects.filter(evaluation=evaluation, drawn_with__isnull=False, draw=0)
    drawn = items.values_list("response_id", "stratum")
    return by_response if all(by_response.get(response) == stratum for response, stratum in drawn) else {}


def _judged_answers(choice: ItemChoice, about: Run) -> Any:
    """All answers that the run has judged: response, candidate and score (NaN: none), ordered by response."""
    metrics = about.metrics.order_by("number")
    metric = metrics.filter(name=choice.stratify_by).first() or metrics.first()
    judgements = Judgement.objects.filter(
        run=about, run_metric=metric, current=True, candidate__in=choice.candidates
    )
    judgements = (
        judgements.filter(rater=None, other_response=None)
        .exclude(state_in_force=NOT_RUN)
        .exclude(response__raw="")
    )
    if choice.filters != ANYTHING:
        judgements = judgements.filter(response__in=matching(about, choice.filters).values("response"))
    scores = judgements.order_by("position").values_list("response_id", "candidate_id", "score_in_force")
    tuples = ((pk, of, np.nan if score is None else score) for pk, of, score in scores.iterator(_AT_ONCE))
    table = np.fromiter(tuples, dtype=[("response", "i8"), ("candidate", "i8"), ("score", "f8")])
    return table[np.unique(table["response"], return_index=True)[1]]


def _strata(candidates: Any, scores: Any | None) -> list[str]:
    """The stratum of each answer: its candidate and, if scores are given, the quintile of its score."""
    if scores is None:
        return [str(candidate) for candidate in candidates]
    scored = scores[~np.isnan(scores)]
    ends = np.unique(np.quantile(scored, (0.2, 0.4, 0.6, 0.8))) if len(scored) else scored
    fifths = np.where(np.isnan(scores), -1, np.searchsorted(ends, scores, side="right"))
    return [f"{candidate}:{fifth}" for candidate, fifth in zip(candidates, fifths, strict=True)]


def stratum_of(row: Row, field: str) -> str:
    """A row's value in the field used for stratification; '' if it has none."""
    value = json.loads(row.raw).get(field)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "" if value is None else text[:200]


def _answers(choice: ItemChoice, rows: Sequence[Row]) -> tuple[Answers, list[int]]:
    answers: Answers = {row.pk: {} for row in rows}
    taking_part = [candidate.pk for candidate in choice.candidates]
    responses = Response.objects.filter(row__in=id_subquery(list(answers)), candidate__in=taking_part)
    if choice.rows is not None:
        responses = responses.exclude(raw="")  # of a run that was to generate them
    for pk, row, candidate in responses.order_by("number").values_list("pk", "row_id", "candidate_id"):
        answers[row].setdefault(candidate, []).append(pk)
    if choice.scheme in (Scheme.REFERENCE, Scheme.VERSIONS) or not choice.candidates:
        taking_part.append(_add_references(answers, choice, rows))
    if choice.scheme == Scheme.VERSIONS and choice.other_version is not None:
        taking_part.append(_add_other_references(answers, choice, choice.other_version, rows))
    return answers, taking_part


def _add_references(answers: Answers, choice: ItemChoice, rows: Sequence[Row]) -> int:
    here = choice.side_candidates[0] if choice.side_candidates else None
    candidate, references = references_made(choice.version, rows, choice.side_names[0], here)
    for row, response in references.items():
        answers[row][candidate.pk] = [response]
    return candidate.pk


def _add_other_references(answers: Answers, choice: ItemChoice, other: Version, rows: Sequence[Row]) -> int:
    """Add the other version's references to the rows with the same prompts."""
    by_prompt = {prompt_of(row, choice.version.format): row.pk for row in rows}
    alike: dict[int, int] = {}
    matched: list[Row] = []
    for row in Row.objects.filter(version=other, valid=True).order_by("line").iterator(_BATCH):
        here = by_prompt.pop(prompt_of(row, other.format), None)
        if here is not None:
            alike[row.pk] = here
            matched.append(row)
    there = choice.side_candidates[1] if choice.side_candidates else None
    candidate, references = references_made(other, matched, choice.side_names[1], there)
    for row_id, response in references.items():
        answers[alike[row_id]][candidate.pk] = [response]
    return candidate.pk


def prompt_of(row: Row, fmt: str) -> str:
    """The key for matching rows: all user messages in order, without the answers between them, which differ."""
    messages = messages_of(json.loads(row.raw), next(name for name in FORMATS if name == fmt))
    prompts = [
        [message["role"], message["content"]] for message in messages if message["role"] != "assistant"
    ]
    return json.dumps(prompts, ensure_ascii=False)


def _things(choice: ItemChoice, rows: Sequence[Row], drawn: Sequence[Drawn], answers: Answers) -> list[Thing]:
    if choice.scheme == Scheme.NONE:
        return [
            Thing(row.pk, response, None, (candidate,), pick.stratum, pick.probability)
            for row, pick in zip(rows, drawn, strict=True)
            for candidate, responses in sorted(answers[row.pk].items())
            for response in responses
        ]
    if choice.scheme == Scheme.RANK:
        return [
            _ranked(row.pk, pick, answers[row.pk])
            for row, pick in zip(rows, drawn, strict=True)
            if FEWEST_RANKED <= len(answers[row.pk]) <= MOST_RANKED
        ]
    pairs = _pairs(choice, [sorted(answers[row.pk]) for row in rows])
    return [
        Thing(row.pk, answers[row.pk][a][0], answers[row.pk][b][0], (a, b), pick.stratum, pick.probability)
        for row, pick, met in zip(rows, drawn, pairs, strict=True)
        for a, b in met
    ]


def _ranked(row: int, pick: Drawn, answers: Mapping[int, Sequence[int]]) -> Thing:
    """The first answer of each candidate."""
    response, other, *further = (answers[candidate][0] for candidate in sorted(answers))
    return Thing(row, response, other, tuple(sorted(answers)), pick.stratum, pick.probability, tuple(further))


def _pairs(choice: ItemChoice, candidates: list[list[int]]) -> list[list[Pair]]:
    """The pairs of candidates to compare on each row. A reference's candidate is newer than all models' candidates."""
    if choice.scheme == Scheme.BALANCED:
        return balanced(candidates, choice.pairs_per_item, choice.seed)
    if choice.scheme == Scheme.BASELINE and choice.baseline is not None:
        return [against(choice.baseline.pk, row) for row in candidates]
    if choice.scheme == Scheme.REFERENCE:
        models = {candidate.pk for candidate in choice.candidates}
        return [
            [pair for reference in row if reference not in models for pair in against(reference, row)]
            for row in candidates
        ]
    return [every_pair(row) for row in candidates]
