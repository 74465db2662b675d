"""Everything that changes a run: create, pause, resume, cancel, retry."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from datasets.models import Candidate, Version
from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from evalsite.tasks import workers
from judging.core.candidates import CandidateModel
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.core.sandbox.job import SandboxFailure
from judging.core.scripts import KINDS, ScriptKind
from judging.endpoints.models import Endpoint
from judging.metrics.editor.scripts import script_failure, script_sentence
from judging.metrics.models import MetricVersion
from judging.runs import planning
from judging.runs.budget import Budget, budget_of, spent_by
from judging.runs.candidates import candidates_create, refuse_impossible_candidates
from judging.runs.counts import overridden_states
from judging.runs.models import (
    INFER,
    SETTLED,
    JudgementState,
    Priority,
    Reading,
    Run,
    RunCandidate,
    RunMetric,
    RunState,
)
from judging.runs.overrides import run_lock
from judging.runs.stopping import stopped_by_endpoint
from judging.runs.worker import chunks, run_worker

RETRYABLE = (JudgementState.ERROR, JudgementState.UNPARSED)
RESUMABLE = (RunState.PAUSED, RunState.CANCELLED, RunState.FAILED)


@dataclass(frozen=True, slots=True)
class ChosenMetric:
    """A metric for a run: its definition to be frozen, and the version that it came from, if any."""

    definition: MetricDefinition
    version: MetricVersion | None = None


def frozen(definition: MetricDefinition) -> MetricDefinition:
    """The definition with each endpoint's address, model and parameters written into it: later edits of the
    endpoint do not reach the run. Its key is not copied; it is read when the judge is asked."""
    return msgspec.structs.replace(
        definition, judges=tuple(_frozen_judge(judge) for judge in definition.judges)
    )


def _frozen_judge(judge: JudgeModel) -> JudgeModel:
    if judge.endpoint is None:
        return judge
    endpoint = Endpoint.objects.get(pk=judge.endpoint)
    params = {**endpoint.params, **judge.params}
    return msgspec.structs.replace(judge, url=endpoint.url, model=endpoint.model, params=params)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a run may spend, its priority, when it may end early, and whether earlier replies may be reused."""

    budget: Budget = field(default_factory=Budget)
    priority: Priority = Priority.NORMAL
    stop_width: float | None = None
    reuse_replies: bool = False
    reuse_any: bool = False  # also where the judge might answer otherwise: at another temperature than 0


@dataclass(frozen=True, slots=True)
class PriceList:
    """What the endpoints that a run asks cost: JSON-able prices of a million tokens, read and written, by endpoint."""

    currency: str
    prices: dict[str, tuple[float, float]]


def endpoints_asked(
    definitions: Iterable[MetricDefinition], asked: Iterable[CandidateModel] = ()
) -> set[int]:
    """The ids of the endpoints that these metrics and candidates call."""
    ids = {judge.endpoint for definition in definitions for judge in definition.judges}
    return {pk for pk in ids | {candidate.endpoint for candidate in asked} if pk}


def price_list(definitions: Iterable[MetricDefinition], asked: Iterable[CandidateModel] = ()) -> PriceList:
    """Of the endpoints that have prices, if they agree on a currency; else none, since sums would mean nothing."""
    priced = [
        one
        for one in Endpoint.objects.filter(pk__in=endpoints_asked(definitions, asked))
        if one.price_read is not None or one.price_written is not None
    ]
    currencies = {one.currency for one in priced}
    if len(currencies) != 1:
        return PriceList("", {})
    prices = {str(one.pk): (float(one.price_read or 0), float(one.price_written or 0)) for one in priced}
    return PriceList(currencies.pop(), prices)


@transaction.atomic
def run_create(
    *,
    project: Project,
    name: str,
    version: Version,
    candidates: Sequence[Candidate],
    metrics: Sequence[ChosenMetric],
    user: User | None,
    sample_size: int | None = None,
    seed: int | None = None,
    only_worker: str = "",
    options: RunOptions | None = None,
    asked: Sequence[CandidateModel] = (),
) -> Run:
    """A run that a worker (or only the process named `only_worker`) plans and begins at once. It judges the uploaded
    answers of `candidates`, and those that it gets from the models that are `asked`.

    Raises ValidationError with a sentence if it cannot be.
    """
    _refuse_impossible(version, candidates, metrics, asked)
    refuse_broken_scripts([metric.definition for metric in metrics])
    run = Run(
        project=project,
        name=name or free_name(project, version.dataset.name),
        version=version,
        kind=INFER if asked else "judge_only",
        sample_size=sample_size,
        seed=random.randrange(2**31) if seed is None else seed,
        bad_rows_left_out=version.bad_rows,
        created_by=user,
        only_worker=only_worker,
    )
    _set_options(run, options or RunOptions(), price_list((metric.definition for metric in metrics), asked))
    run.save()
    RunCandidate.objects.bulk_create([RunCandidate(run=run, candidate=candidate) for candidate in candidates])
    candidates_create(run, asked)
    _freeze_metrics(run, metrics)
    _record_start(run, metrics)
    workers.wake(run_worker.judge_runs)
    return run


def _record_start(run: Run, metrics: Sequence[ChosenMetric]) -> None:
    record(
        Action.RUN_STARTED,
        project=run.project,
        thing=run,
        by=run.created_by,
        dataset=run.version.dataset.name,
        version=run.version.number,
        metrics=[metric.definition.name for metric in metrics],
    )


def _set_options(run: Run, options: RunOptions, prices: PriceList) -> None:
    """Raises ValidationError for a budget of money without prices."""
    budget = options.budget
    if budget.money is not None and not prices.currency:
        raise ValidationError(no_common_currency())
    run.budget_calls, run.budget_tokens, run.budget_money = budget.calls, budget.tokens, budget.money
    run.currency, run.prices = prices.currency, prices.prices
    run.priority, run.stop_width = options.priority, options.stop_width
    run.reuse_any = options.reuse_any
    run.reuse_replies = options.reuse_replies or options.reuse_any


def _freeze_metrics(run: Run, metrics: Sequence[ChosenMetric]) -> None:
    for number, metric in enumerate(metrics):
        definition = frozen(metric.definition)
        RunMetric.objects.create(
            run=run,
            number=number,
            name=definition.name,
            definition=definition.to_json(),
            metric_version=metric.version,
        )


def no_common_currency() -> str:
    return _(
        "A cost budget needs endpoint prices in one currency. Set the prices in the endpoints, or leave "
        "the budget empty."
    )


def _refuse_impossible(
    version: Version,
    candidates: Sequence[Candidate],
    metrics: Sequence[ChosenMetric],
    asked: Sequence[CandidateModel],
) -> None:
    if not version.usable:
        raise ValidationError(
            _(
                "This version has invalid rows, or its file is incomplete. Fix or exclude them on the version "
                "page, then start the run."
            )
        )
    if not candidates and not asked:
        raise ValidationError(
            _(
                "There are no answers to judge. Select a version with model_outputs and at least one candidate, or "
                "a model to generate answers."
            )
        )
    if any(candidate.version_id != version.pk for candidate in candidates):
        raise ValidationError(_("A candidate belongs to another version."))
    refuse_impossible_candidates(candidates, asked)
    names = [metric.definition.name for metric in metrics]
    if not names or len(set(names)) < len(names):
        raise ValidationError(_("Select at least one metric, each only once."))


def refuse_broken_scripts(definitions: Iterable[MetricDefinition]) -> None:
    """Raise ValidationError with every script that cannot be loaded, before any call is made.

    Where this process has no sandbox, the run finds out itself.
    """
    problems = [
        _("Metric “%(metric)s”, %(kind)s: %(why)s")
        % {"metric": one.name, "kind": kind, "why": script_sentence(kind, failure)}
        for one in definitions
        for kind in KINDS
        if (failure := _broken(kind, getattr(one, kind)))
    ]
    if problems:
        raise ValidationError(problems)


def _broken(kind: ScriptKind, source: str) -> SandboxFailure | None:
    failure = script_failure(kind, source) if source.strip() else None
    return failure if failure and failure.code in ("syntax", "load") else None


def free_name(project: Project, wanted: str) -> str:
    """`wanted` with the first number that no run of the project has: "physics 3"."""
    taken = set(Run.objects.filter(project=project, name__startswith=wanted).values_list("name", flat=True))
    return next(f"{wanted} {n}" for n in range(1, len(taken) + 2) if f"{wanted} {n}" not in taken)


@transaction.atomic
def run_resume(run: Run, *, only_worker: str = "", budget: Budget | None = None) -> bool:
    """Go on with a paused, cancelled or failed run, with another budget if one is given. False if it was none. A run
    without a plan yet is planned.

    Raises ValidationError where the budget is spent already.
    """
    locked = Run.objects.select_for_update().get(pk=run.pk)
    if locked.state not in RESUMABLE:
        return False
    allow_budget(locked, budget_of(locked) if budget is None else budget)
    planned = locked.chunks.exists()
    if planned:
        planning.take_rest_up(locked)
    locked.state = RunState.RUNNING if planned else RunState.PLANNING
    locked.reopen()
    locked.only_worker = only_worker
    if locked.problem == SETTLED:
        locked.stop_width = None  # continuing includes the rest
    locked.problem = locked.problem_detail = ""
    locked.save()
    record(Action.RUN_RESUMED, project=run.project, thing=run)
    if not (planned and chunks.finish_if_done(run.pk)):
        workers.wake(run_worker.judge_runs)
    return True


@transaction.atomic
def run_extend(run: Run, rows: int | None) -> bool:
    """Judge `rows` rows in all, further ones drawn at random, or every row (None), by the metrics as they were frozen.
    What is judged stays. False if the run has not finished or has so many rows already.

    Raises ValidationError where its judgements follow a later reading, or the budget is spent.
    """
    locked = run_lock(run.pk)
    if not locked.extendable or (rows is not None and rows <= (locked.sample_size or 0)):
        return False
    if Reading.objects.filter(run_metric__run=locked).exists():
        raise ValidationError(
            _(
                "This run was re-parsed or re-judged with other settings, so more rows would not be comparable. "
                "Start a new run instead."
            )
        )
    allow_budget(locked, budget_of(locked))
    locked.sample_size = None if rows is None or rows >= locked.version.valid_rows else rows
    locked.reopen()
    locked.state, locked.only_worker = RunState.PLANNING, ""
    locked.revision += 1
    locked.save()
    record(Action.RUN_EXTENDED, project=locked.project, thing=locked, rows=rows)
    workers.wake(run_worker.judge_runs)
    return True


def allow_budget(run: Run, budget: Budget) -> None:
    """Give the run this budget; raises ValidationError where it is spent already."""
    if budget.money is not None and not run.currency:
        raise ValidationError(no_common_currency())
    if spent_by(run).reached(budget):
        raise ValidationError(
            _("This budget is already used up. Raise it above current usage or leave it empty, then resume.")
        )
    run.budget_calls, run.budget_tokens, run.budget_money = budget.calls, budget.tokens, budget.money


@transaction.atomic
def run_retry(run: Run, states: tuple[str, ...] = (JudgementState.ERROR,)) -> int:
    """New attempts at what failed; the old ones are kept. How many; 0 while the run is under way. One that was paused
    because of an endpoint goes on with them."""
    locked = run_lock(run.pk)
    chosen = tuple(state for state in states if state in RETRYABLE)
    if not (locked.ended or stopped_by_endpoint(locked)) or not chosen:
        return 0
    stopped = locked.state != RunState.FINISHED
    made = planning.plan_again(locked, chosen)
    if made:
        left = overridden_states(locked)
        locked.errors = left[JudgementState.ERROR] if JudgementState.ERROR in chosen else locked.errors
        locked.unparsed = (
            left[JudgementState.UNPARSED] if JudgementState.UNPARSED in chosen else locked.unparsed
        )
        locked.reopen()
        locked.state, locked.only_worker = RunState.RUNNING, ""
        locked.problem = locked.problem_detail = ""
        locked.revision += 1
        locked.save()
        if stopped:
            planning.take_rest_up(locked)
        record(Action.RUN_RETRIED, project=locked.project, thing=locked, states=chosen, judgements=made)
        workers.wake(run_worker.judge_runs)
    return made
