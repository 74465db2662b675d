"""The checklists behind a run's figures: its judges' and its raters', and what the report says of their criteria."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from datasets.core.kinds import CHECKLIST
from judging.core.checklists import Checklist, checklist_from
from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.checklists import (
    AnswerChecklist,
    CriterionVerdict,
    add_checklist_figures,
    bounds_of_mean,
    criterion_agreement,
    criterion_health,
    least_value,
)
from judging.core.statistics.frame import COMBINED, ScaledMetric
from judging.core.statistics.verdicts import counted
from judging.core.values import SCORED
from judging.people.selectors import evaluations_of
from judging.records.models import Judgement, Run
from judging.records.seal import unsealed
from judging.reports import selectors
from judging.teamwork.marks import without_excluded

if TYPE_CHECKING:
    from pandas import DataFrame

Checklists = Mapping[str, Sequence[AnswerChecklist]]
"""By metric."""

_BATCH = 2_000
_PARTS = (
    "run_metric__name", "candidate__name", "candidate__version__number", "row__line", "response__number", "rater_id",
    "source__kind", "source__name", "checklist", "response_id",
)  # fmt: skip
_PEOPLE = ("rater", "adjudicator")


def checklists_of(run: Run, definitions: Mapping[int, MetricDefinition]) -> Checklists:
    """The current checklists of the run and of the human evaluations of its answers. Of several imported judges the
    combined verdicts count, where there are any."""
    names = {metric.name for metric in definitions.values() if metric.gives == CHECKLIST}
    checklists: dict[str, list[AnswerChecklist]] = defaultdict(list)
    if not names:
        return checklists
    runs = {run.pk: run} | {evaluation.run_id: evaluation.run for evaluation in evaluations_of(run)}
    for each in runs.values():
        judged = Judgement.objects.filter(run=each, current=True, run_metric__name__in=names)
        judged = unsealed(each, judged.exclude(checklist=""))
        combined = set(judged.filter(source__name=COMBINED).values_list("run_metric__name", "response_id"))
        parts = without_excluded(run, judged).order_by("position").values_list(*_PARTS)
        for metric, name, version, line, number, rater, kind, source, text, pk in parts.iterator(_BATCH):
            checklist = checklist_from(text)
            by_people = rater is not None or kind in _PEOPLE
            is_single = source != COMBINED and not by_people and (metric, pk) in combined
            if checklist is not None and not is_single:
                shown = selectors.shown_name(name, version)
                answer = _of_answer(checklist, shown, line, number, pk, by_people=by_people)
                checklists[metric].append(replace(answer, adjudicated=kind == "adjudicator"))
    return checklists


def _of_answer(
    checklist: Checklist, name: str, line: int, number: int, answer: int, *, by_people: bool
) -> AnswerChecklist:
    criteria = tuple(
        CriterionVerdict(
            criterion.key, criterion.id, criterion.text, criterion.points, criterion.tags, criterion.met
        )
        for criterion in checklist.criteria
    )
    return AnswerChecklist(
        name, line, number, by_people, checklist.low, checklist.high, checklist.least, criteria, answer
    )


def with_least(metrics: Iterable[ScaledMetric], checklists: Checklists) -> list[ScaledMetric]:
    """The metrics, checklists with the least value that a judged row allows."""
    return [
        replace(metric, least=least_value(checklists[metric.name])) if metric.name in checklists else metric
        for metric in metrics
    ]


def add_checklists(
    document: dict[str, Any], judgements: DataFrame, metrics: Iterable[ScaledMetric], checklists: Checklists
) -> None:
    """Add criteria, tags and bounds to the cells of checklists, and the criteria that say little or are disputed."""
    document["checklists"] = []
    for metric in metrics:
        if metric.name not in checklists:
            continue
        every = checklists[metric.name]
        judged = [checklist for checklist in every if not checklist.by_people]
        people = [checklist for checklist in every if checklist.by_people]
        scored = counted(judgements, metric)
        for cells, of_cells in (
            (document["candidates"], judged or people),
            (document["people_candidates"], people),
        ):
            for candidate, by_metric in cells.items():
                if cell := by_metric.get(metric.name):
                    mine = [checklist for checklist in of_cells if checklist.candidate == candidate]
                    add_checklist_figures(cell, mine)
        for candidate, by_metric in document["candidates"].items():
            cell = by_metric[metric.name]
            if cell["asked"] > cell["scored"] and judged:
                mine = [checklist for checklist in judged if checklist.candidate == candidate]
                bounds = bounds_of_mean(_values(scored, candidate), mine, cell["asked"], metric.least or 0.0)
                cell["low_bound"], cell["high_bound"] = bounds
        document["checklists"].append(
            {
                "metric": metric.name,
                "health": criterion_health(every),
                "agreement": criterion_agreement(every),
            }
        )


def _values(scored: DataFrame, candidate: str) -> dict[tuple[int, int], float]:
    mine = scored[(scored["candidate"] == candidate) & (scored["state"] == SCORED)]
    places = zip(mine["row"].tolist(), mine["response"].tolist(), strict=True)
    return dict(zip(places, mine["value"].tolist(), strict=True))
