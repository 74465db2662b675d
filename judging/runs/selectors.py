"""Queries for runs: the list, options and cost of a new run, progress."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import OuterRef, Prefetch, QuerySet, Subquery, prefetch_related_objects

from datasets.models import WHOLE_OR_AGREED, Candidate, Version, VersionState
from evalsite.accounts.models import Project
from evalsite.hooks import Hook
from evalsite.tasks import workers
from evalsite.web.numbers import whole
from evalsite.web.paging import newest_first
from judging.core.candidates import CandidateModel
from judging.core.judges.structured import PARAMETERS
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.endpoints.models import Endpoint
from judging.engine.budget import MILLION
from judging.engine.rubric_rows import mean_criteria
from judging.metrics.models import MetricVersion
from judging.metrics.rule_editor.sample_rows import mean_fields
from judging.records.models import PEOPLE, RequestBatch, Run, RunMetric, RunState

RUNS_PER_PAGE = 50
UNUSABLE_SHOWN = 20
_LATEST_WEIGHT = 0.3  # weight of the newest poll in the displayed rate
imported_facts: Hook[Callable[[Run], dict[str, Any]]] = Hook("judging.runs.selectors.imported_facts")
"""Returns what the page of an imported run shows besides."""


def find_run(name_or_id: str) -> Run | None:
    """The newest run with this name, or the run with this id."""
    by_name = Run.objects.filter(name=name_or_id).order_by("-pk").first()
    return by_name or Run.objects.filter(pk=whole(name_or_id) or 0).first()


def runs_page(
    project: Project, before: int | None = None, *, archived: bool = False
) -> tuple[list[Run], int | None]:
    """A page of runs, newest first, and the key of the next page (None: no more). Human evaluations are excluded; they
    are listed by judging.people."""
    runs = Run.objects.filter(project=project, archived_at__isnull=not archived).exclude(kind=PEOPLE)
    return newest_first(runs.select_related("version__dataset", "project"), RUNS_PER_PAGE, before)


def unusable_versions(project: Project) -> QuerySet[Version]:
    """Data sets' newest versions that are not usable yet, newest first."""
    newest = Version.objects.filter(dataset=OuterRef("dataset")).order_by("-number").values("pk")[:1]
    newest_versions = Version.objects.filter(
        dataset__project=project, dataset__archived_at=None, pk=Subquery(newest)
    )
    unready = newest_versions.exclude(state=VersionState.READY)
    bad = newest_versions.filter(state=VersionState.READY).exclude(WHOLE_OR_AGREED)
    without_rows = newest_versions.filter(state=VersionState.READY, valid_rows=0)
    return (unready | bad | without_rows).select_related("dataset").order_by("-pk")[:UNUSABLE_SHOWN]


@dataclass(frozen=True, slots=True)
class SeenJudge:
    """A metric's judge model with its endpoint's current values, or those frozen in the run."""

    judge: JudgeModel
    endpoint: str
    url: str
    model: str
    without_structure: bool = False  # its server refused structured output

    @property
    def params_json(self) -> str:
        return json.dumps(self.judge.params, ensure_ascii=False, indent=2) if self.judge.params else ""

    @property
    def parser(self) -> str:
        parse = self.judge.parse
        if isinstance(parse, str):
            return parse
        return " ".join(f"{name}: {value}" for name, value in parse.items())


@dataclass(frozen=True, slots=True)
class MetricChoice:
    """A metric that a run can use or has frozen, with its judges."""

    version: MetricVersion | None
    definition: MetricDefinition
    judges: list[SeenJudge]
    run_metric: RunMetric | None = None

    @property
    def reparseable(self) -> bool:
        """Whether judgements can be re-parsed: from judge replies, or by a rule program."""
        return bool(self.judges or self.definition.rules)

    @property
    def calls(self) -> int:
        """Requests per judgement."""
        return self.definition.calls


def metric_choices(project: Project) -> list[MetricChoice]:
    """The newest version of every metric of the project, by name."""
    newest = MetricVersion.objects.filter(metric=OuterRef("metric")).order_by("-number").values("pk")[:1]
    newest_versions = MetricVersion.objects.filter(
        metric__project=project, metric__archived_at=None, pk=Subquery(newest)
    )
    versions = list(newest_versions.select_related("metric").order_by("metric__name"))
    return _with_endpoints(
        [(version, MetricDefinition.from_json(version.definition)) for version in versions]
    )


def prefetch_metrics(run: Run) -> None:
    """Prefetch the run's metrics for a page that uses them several times."""
    metrics = RunMetric.objects.select_related("metric_version__metric").order_by("number")
    prefetch_related_objects([run], Prefetch("metrics", metrics))


def frozen_metrics(run: Run) -> list[MetricChoice]:
    """The run's metrics as frozen at its start. Call after prefetch_metrics."""
    run_metrics = list(run.metrics.all())
    shown = _with_endpoints(
        [
            (run_metric.metric_version, MetricDefinition.from_json(run_metric.definition))
            for run_metric in run_metrics
        ]
    )
    return [
        replace(choice, run_metric=run_metric) for choice, run_metric in zip(shown, run_metrics, strict=True)
    ]


def _with_endpoints(metrics: Sequence[tuple[MetricVersion | None, MetricDefinition]]) -> list[MetricChoice]:
    ids = {judge.endpoint for _, definition in metrics for judge in definition.judges}
    endpoints = Endpoint.objects.in_bulk([pk for pk in ids if pk is not None])
    return [
        MetricChoice(version, definition, [_seen(judge, endpoints) for judge in definition.judges])
        for version, definition in metrics
    ]


def _seen(judge: JudgeModel, endpoints: dict[int, Endpoint]) -> SeenJudge:
    endpoint = endpoints.get(judge.endpoint or 0)
    name, url, model = (endpoint.name, endpoint.url, endpoint.model) if endpoint else ("", "", "")
    refused = bool(endpoint and PARAMETERS & set(endpoint.rejected_params))
    return SeenJudge(judge, name, judge.url or url, judge.model or model, refused)


@dataclass(frozen=True, slots=True)
class Cost:
    """The size of a planned run. `about`: the numbers are estimates, because rows are sampled that don't all have the
    same number of answers, or because a rule line asks once per field of the reference or a checklist once per
    criterion, counted over the first rows."""

    rows: int
    judgements: int
    calls: int
    about: bool
    answers: int = 0  # calls to models under test
    criteria: float = 1  # mean number of a row's criteria, for checklists that ask about each
    of_metrics: tuple[int, ...] = ()  # judgements of each metric


def cost_of(
    version: Version,
    candidates: Sequence[Candidate],
    metrics: Sequence[MetricChoice],
    sample_size: int | None,
    candidate_models: Sequence[CandidateModel] = (),
) -> Cost:
    """The number of judgements and calls of a run over `sample_size` random rows, or over all rows (None)."""
    rows = version.valid_rows if sample_size is None else min(sample_size, version.valid_rows)
    drawn = rows < version.valid_rows
    answers = sum(candidate.responses for candidate in candidates)
    if drawn:
        answers = math.ceil(answers * rows / version.valid_rows)
    generated = rows * sum(model.n for model in candidate_models)
    uneven = any(candidate.responses % version.valid_rows for candidate in candidates)
    by_fields = any(metric.definition.calls_over(2) > metric.calls for metric in metrics)
    fields = mean_fields(version) if by_fields else 1
    answers += generated
    judgements = []
    answers_a_row = {
        candidate.name: candidate.responses / max(1, version.valid_rows) for candidate in candidates
    }
    answers_a_row |= {model.name: float(model.n) for model in candidate_models}
    by_criteria = any(metric.definition.asks_by_criterion for metric in metrics)
    criteria = mean_criteria(version) if by_criteria else 1
    for metric in metrics:
        pairs = _pairs_a_row(metric.definition, answers_a_row)
        judgements.append(answers if pairs is None else math.ceil(rows * pairs))
    calls = sum(
        count * metric.definition.calls_over(fields, criteria)
        for count, metric in zip(judgements, metrics, strict=True)
    )
    compares = any(metric.definition.compares_candidates for metric in metrics)
    about = by_fields or by_criteria or (uneven and (drawn or compares))
    return Cost(rows, sum(judgements), math.ceil(calls), about, generated, criteria, tuple(judgements))


def _pairs_a_row(definition: MetricDefinition, answers: Mapping[str, float]) -> float | None:
    """The number of pairs of answers of a row that the metric compares, at most: some rows may lack answers. None if it
    does not compare candidates. `answers`: of each candidate, a row."""
    if not definition.compares_candidates:
        return None
    try:
        pairs = definition.pairs(list(answers))
    except ValueError:
        return 0
    if not definition.all_answers:
        return sum(min(1, answers[a], answers[b]) for a, b in pairs)
    return sum(answers[a] * answers[b] for a, b in pairs)


@dataclass(frozen=True, slots=True)
class Progress:
    """A run's speed `at` a time. `rate`: recent judgements per second; `left`: estimated seconds; None if unknown."""

    at: float
    rate: float | None
    left: float | None


def progress_of(
    run: Run, *, done_before: int | None, at_before: float | None, rate_before: float | None
) -> Progress:
    """Compute progress from the values of the page's last poll, which the page sends back because the server keeps no
    state per client."""
    now = time.time()
    rate = rate_before
    if run.state != RunState.RUNNING:
        rate = None
    elif done_before is not None and at_before is not None and now - at_before > 0.2:
        latest = max(0, run.done - done_before) / (now - at_before)
        rate = latest if rate is None else rate + _LATEST_WEIGHT * (latest - rate)
    elif rate is None and run.started_at and run.done:
        rate = run.done / max(0.1, now - run.started_at.timestamp())
    return Progress(now, rate, run.not_run / rate if rate else None)


def worker_missing(run: Run) -> str:
    """Why a run is not picked up (see workers.obstacle). A lost broker doesn't stop workers already processing it."""
    if run.is_idle or not run.by_workers:
        return ""
    if run.only_worker:
        return "" if workers.is_alive(run.only_worker) else "worker"
    obstacle = workers.obstacle(workers.RUNS)
    worked_on = obstacle == "broker" and run.chunks.filter(done=False).exclude(owner="").exists()
    return "" if worked_on else obstacle


def workers_missing(runs: Iterable[Run]) -> str:
    """Why the first of these runs that is waiting is not picked up; '' if none is waiting."""
    going = [run for run in runs if not run.is_idle]
    if not going or not workers.obstacle(workers.RUNS):
        return ""
    return next((reason for run in going if (reason := worker_missing(run))), "")


@dataclass(frozen=True, slots=True)
class Money:
    """Amounts in whole units of a currency. `budget` None: unlimited."""

    spent: float
    budget: float | None
    currency: str


def money_of(run: Run) -> Money | None:
    """The run's cost and cost budget; None if its endpoints have no prices."""
    if not run.currency:
        return None
    budget = None if run.budget_money is None else run.budget_money / MILLION
    return Money(run.spent / MILLION, budget, run.currency)


def batches_of(run: Run) -> list[RequestBatch]:
    """The batches in which its requests were sent, newest first."""
    batches = RequestBatch.objects.filter(run=run).select_related("endpoint")
    return list(batches.order_by("-pk")[:50]) if run.batched else []
