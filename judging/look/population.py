"""Which answers can be drawn, and random samples of them. Only ids are read, and of large runs only those drawn."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Max, Min, Q, QuerySet

from datasets.models import UPLOADED, Response, Row, Version
from judging.core.metric_definition import MetricDefinition
from judging.filters.conditions import matching
from judging.filters.judgement_filter import ANYTHING, Filters
from judging.filters.row_filters import id_subquery
from judging.records.models import ANSWER_FAILED, Judgement, JudgementState, Run, RunMetric

ALL_AT_ONCE = 20_000
"""Of at most so many answers the ids are read; of more, random ones are probed."""
SPARSE = 200  # keys for each answer; beyond, probing takes longer than reading the ids
BATCH = 500


@dataclass(frozen=True, slots=True)
class Drawn:
    """A drawn answer: ids of its row and response, and the probability with which it was drawn."""

    row: int
    response: int
    drawn_with: float


@dataclass(frozen=True, slots=True)
class Population:
    """Answers, each once. `response`: the column with its id; `key`: a unique whole number, spread over a range."""

    answers: QuerySet[Any]
    response: str
    key: str

    def narrowed(self, *conditions: Q) -> Population:
        return replace(self, answers=self.answers.filter(*conditions))

    def without_rows(self, rows: Iterable[int]) -> Population:
        """Without the answers to these rows."""
        return replace(self, answers=self.answers.exclude(row__in=id_subquery(list(rows))))


def of_run(run: Run, filters: Filters = ANYTHING, metric: RunMetric | None = None) -> Population:
    """The answers that a run has judged; with filters, those with a matching judgement. `metric`: judged by this one,
    so that the population has its scores."""
    metric = metric or single_answer_metric(run)
    if metric is None:
        population = _of_responses(run)
    else:
        judged = Judgement.objects.filter(run=run, run_metric=metric, current=True, other_response=None)
        judged = judged.exclude(state_in_force=JudgementState.NOT_RUN).exclude(reason=ANSWER_FAILED)
        population = Population(judged, "response", "position")
    if filters == ANYTHING:
        return population
    matches = matching(run, filters).values("response")
    return population.narrowed(Q(**{f"{population.response}__in": matches}))


def of_version(version: Version) -> Population:
    """The answers that came with a version's file."""
    answers = Response.objects.filter(
        candidate__version=version, candidate__source=UPLOADED, row__version=version, row__valid=True
    )
    return Population(answers.exclude(raw=""), "pk", "pk")


def single_answer_metric(run: Run) -> RunMetric | None:
    """The first metric with one judgement for each answer; None where answers have several, or only in pairs."""
    if not run.by_workers:
        return None
    metrics = run.metrics.order_by("number")
    return next((metric for metric in metrics if not _compares(metric)), None)


def scored_metrics(run: Run) -> list[RunMetric]:
    """The metrics by whose scores answers can be drawn."""
    if not run.by_workers:
        return []
    scored = Judgement.objects.filter(run=run, current=True, score_in_force__isnull=False)
    return [
        metric
        for metric in run.metrics.order_by("number")
        if not _compares(metric) and scored.filter(run_metric=metric).exists()
    ]


def _compares(metric: RunMetric) -> bool:
    return MetricDefinition.from_json(metric.definition).compares_candidates


def _of_responses(run: Run) -> Population:
    judged = Judgement.objects.filter(run=run, current=True).exclude(state_in_force=JudgementState.NOT_RUN)
    answers = Response.objects.filter(
        Q(pk__in=judged.values("response"))
        | Q(pk__in=judged.filter(other_response__isnull=False).values("other_response"))
    )
    return Population(answers.exclude(raw=""), "pk", "pk")


def rows_of(run: Run | None, version: Version) -> list[int]:
    """Ids of the rows that the run judges, or of a version's valid rows, in order."""
    if run is None:
        rows = Row.objects.filter(version=version, valid=True).order_by("line")
        return list(rows.values_list("pk", flat=True))
    judged = Judgement.objects.filter(run=run, current=True).order_by("row_id")
    metric = single_answer_metric(run)
    judged = judged.filter(run_metric=metric) if metric else judged
    return list(judged.values_list("row_id", flat=True).distinct())


def draw(
    population: Population, size: int, seed: int, all_at_once: int = ALL_AT_ONCE
) -> tuple[list[Drawn], int]:
    """A simple random sample of `size` answers, all if there are fewer, in random order; and the number there were."""
    order = random.Random(f"look:{seed}")
    count = population.answers.count()
    drawn = _sample(population, min(size, count), count, order, all_at_once)
    return _with_probability(population, drawn, len(drawn) / count if count else 0.0), count


def draw_by_score(population: Population, size: int, seed: int) -> tuple[list[Drawn], int] | None:
    """A sample of which half has low scores, in random order, each with its probability; None if the scores do not
    tell answers apart. `population` must have the scores of one metric (`of_run`)."""
    low = low_scores(population)
    if low is None:
        return None
    order = random.Random(f"look:{seed}")
    parts = population.narrowed(low), replace(population, answers=population.answers.exclude(low))
    counts = [part.answers.count() for part in parts]
    lower = min(counts[0], max(size // 2, size - counts[1]))
    drawn: list[Drawn] = []
    for part, count, quota in zip(parts, counts, (lower, min(size - lower, counts[1])), strict=True):
        keys = _sample(part, quota, count, order)
        drawn += _with_probability(part, keys, len(keys) / count if count else 0.0)
    order.shuffle(drawn)
    return drawn, sum(counts)


def low_scores(population: Population) -> Q | None:
    """Selects the lowest quarter of the scores, or, where the quarter reaches the highest score, all below that;
    None if all scores are equal."""
    scores = population.answers.filter(score_in_force__isnull=False).order_by("score_in_force")
    count = scores.count()
    if not count:
        return None
    values = scores.values_list("score_in_force", flat=True)
    lowest, limit, highest = values[0], values[count // 4], values[count - 1]
    if lowest == highest:
        return None
    return Q(score_in_force__lte=limit) if limit < highest else Q(score_in_force__lt=highest)


def _sample(
    population: Population, size: int, count: int, order: random.Random, all_at_once: int = ALL_AT_ONCE
) -> list[int]:
    """Keys of `size` of the `count` answers, every subset with the same probability."""
    keys = population.answers.order_by(population.key).values_list(population.key, flat=True)
    if count <= all_at_once:
        return _chosen(list(keys), size, order)
    ends = population.answers.aggregate(low=Min(population.key), high=Max(population.key))
    if ends["high"] - ends["low"] > SPARSE * count:
        return _chosen(list(keys), size, order)
    sampled: dict[int, None] = {}
    while len(sampled) < size:
        probes = [order.randint(ends["low"], ends["high"]) for _ in range(BATCH)]
        hits = set(keys.filter(**{f"{population.key}__in": probes}))
        sampled.update(dict.fromkeys(probe for probe in probes if probe in hits))
    return list(sampled)[:size]


def _chosen(keys: list[int], size: int, order: random.Random) -> list[int]:
    return order.sample(keys, min(size, len(keys)))


def _with_probability(population: Population, keys: list[int], chance: float) -> list[Drawn]:
    """The answers with these keys, in their order."""
    answers = population.answers.order_by().filter(**{f"{population.key}__in": keys})
    ids = {key: (row, pk) for key, row, pk in answers.values_list(population.key, "row", population.response)}
    return [Drawn(*ids[key], chance) for key in keys]
