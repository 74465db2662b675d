"""The answers of a run among which people can be asked next: a judge's scores, its doubts, and people's values."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from django.db.models import F
from django.db.models.functions import Length

from datasets.core.kinds import CATEGORY, CHECKLIST, FREE_TEXT, PASS_FAIL
from judging.core.metric_definition import MetricDefinition
from judging.core.people.asking import Bools, Doubts, Floats, Ints, assumed_errors, distances, learnt_errors
from judging.core.results import Verdict
from judging.people.models import Evaluation, Item
from judging.people.selectors import evaluations_of
from judging.records.definitions import definitions_now
from judging.records.models import Judgement, Run, RunMetric
from judging.records.seal import closed_for_rating, sealed_rows, unsealed

COMPARES, LABELS = "compares", "category"
UNCORRECTED = (COMPARES, LABELS)
"""Reasons: the verdicts are comparisons or categories, for which no corrected score is computed."""
_AT_ONCE = 20_000
_verdicts = msgspec.json.Decoder(list[Verdict]).decode


@dataclass(frozen=True, eq=False)
class Pool:
    """All answers with a score, by response id; arrays have shape (answers,).

    `people`: people's mean value, NaN without one. `drawn_with`: the probability of the newest draw of an answer that
    was drawn at random, NaN where none was; `rated_drawn`: drawn at random and rated; `closed`: of a row whose labels
    are sealed, or which takes no more ratings. `width`: of the scale.
    """

    responses: Ints
    rows: Ints
    candidates: Ints
    scores: Floats
    doubts: Doubts
    people: Floats
    rated_drawn: Bools
    closed: Bools
    width: float

    @cached_property
    def frame(self) -> Ints:
        """The places of the answers that can be drawn."""
        return np.flatnonzero(~self.rated_drawn & ~self.closed)

    @cached_property
    def learnt(self) -> Floats | None:
        """The expected squared errors as far as ratings teach them; None with too few."""
        wrong = np.where(self.rated_drawn, (self.people - self.scores) ** 2, np.nan)
        return learnt_errors(self.doubts, self.width, wrong)

    @property
    def errors(self) -> Floats:
        """The expected squared error of each score."""
        return assumed_errors(self.doubts, self.width) if self.learnt is None else self.learnt


def why_not_asked(run: Run, definition: MetricDefinition) -> str:
    """The code of the reason why no draw is made for a metric; '' if one can be."""
    if run.by_people or run.imported or not run.complete:
        return "unfinished" if run.by_workers else "no_judge"
    if definition.compares_candidates or definition.compares_reference:
        return COMPARES
    if not definition.judges and not definition.rules and not definition.scored_by_script:
        return "no_judge"
    return LABELS if definition.kind in (CATEGORY, FREE_TEXT) else ""


def pool_of(run: Run, run_metric: RunMetric) -> Pool:
    """Load the answers that a run judged under a metric. One query for the judgements, two for people's."""
    definition = definitions_now(run)[run_metric.pk]
    table, spread = _judged(run, run_metric, definition)
    order = np.argsort(table["response"], kind="stable")
    table, spread = table[order], spread[order]
    responses = table["response"]
    people, rated_drawn = _rated(run, run_metric.name, responses)
    far = distances(table["score"], table["candidate"], table["row"], table["length"])
    sealed_rows = np.isin(table["row"], list(closed_rows_of(run)))
    unit = definition.kind in (PASS_FAIL, CHECKLIST)
    width = 1.0 if unit else float(definition.max_score - definition.min_score) or 1.0
    return Pool(
        responses,
        table["row"],
        table["candidate"],
        table["score"],
        Doubts(spread, far),
        people,
        rated_drawn,
        sealed_rows,
        width,
    )


def _judged(run: Run, run_metric: RunMetric, definition: MetricDefinition) -> tuple[Any, Floats]:
    judgements = Judgement.objects.filter(
        run=run, run_metric=run_metric, current=True, rater=None, source=None
    )
    judgements = judgements.filter(other_response=None, score_in_force__isnull=False)
    parts = ("response_id", "row_id", "candidate_id", "score_in_force", "length")
    several = definition.votes > 1
    judgements = judgements.annotate(length=Length("response__raw"), said=F("verdicts")).order_by("position")
    rows, spreads = [], []
    for *values, said in judgements.values_list(*parts, "said").iterator(_AT_ONCE):
        rows.append(tuple(values))
        spreads.append(_spread(said) if several and said else 0.0)
    dtype = [("response", "i8"), ("row", "i8"), ("candidate", "i8"), ("score", "f8"), ("length", "i8")]
    return np.array(rows, dtype=dtype), np.array(spreads, dtype=np.float64)


def _spread(text: str) -> float:
    """The standard deviation of the single verdicts on an answer, for checklists the mean over their criteria; 0 with
    fewer than two."""
    values: dict[int, list[float]] = defaultdict(list)
    for verdict in _verdicts(text):
        if verdict.order != "both" and verdict.value is not None and not isinstance(verdict.value, str):
            values[verdict.criterion].append(float(verdict.value))
    spreads = [float(np.std(several, ddof=1)) for several in values.values() if len(several) > 1]
    return sum(spreads) / len(spreads) if spreads else 0.0


def closed_rows_of(run: Run) -> frozenset[int]:
    """Ids of the rows of a run's data that nobody is asked about: their labels are sealed, or can't be added to."""
    sealed = (rows for read in sealed_rows for rows in read(run.version).values())
    return frozenset().union(*sealed, *(closed_for_rating(each.run) for each in evaluations_of(run)))


def _rated(run: Run, criterion: str, responses: Ints) -> tuple[Floats, Bools]:
    """People's mean value of each answer, and whether it was drawn at random and rated."""
    sums, counts = np.zeros(responses.size), np.zeros(responses.size)
    rated_drawn = np.zeros(responses.size, dtype=np.bool_)
    for evaluation in evaluations_of(run):
        labels = Judgement.objects.filter(run=evaluation.run, run_metric__name=criterion, current=True)
        labels = unsealed(evaluation.run, labels.filter(other_response=None, score_in_force__isnull=False))
        for response, score in labels.values_list("response_id", "score_in_force").iterator(_AT_ONCE):
            place = int(np.searchsorted(responses, response))
            if place < responses.size and responses[place] == response:
                sums[place] += score
                counts[place] += 1
        drawn = random_items(evaluation).filter(rated__gt=0).values_list("response", flat=True)
        rated_drawn |= np.isin(responses, list(drawn))
    people = np.divide(sums, counts, out=np.full(responses.size, np.nan), where=counts > 0)
    return people, rated_drawn & (counts > 0)


def random_items(evaluation: Evaluation) -> Any:
    """The items of an evaluation that were drawn at random: for the study, or by a later draw."""
    items = Item.objects.filter(evaluation=evaluation, gold="", repeat_of=None, other_response=None)
    return items.filter(drawn_with__isnull=False, for_improving=False)
