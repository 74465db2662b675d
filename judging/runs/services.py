"""Creating, resuming, extending and retrying runs."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from datasets.models import Candidate, Version
from datasets.services import version_lock
from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from evalsite.tasks import jobs, workers
from judging.core.candidates import CandidateModel
from judging.core.metric_definition import MetricDefinition, Script
from judging.core.sandbox.job import SandboxFailure
from judging.endpoints.models import Endpoint
from judging.endpoints.selectors import offers_batches
from judging.endpoints.settings import with_address
from judging.engine import chunks, planning, run_worker
from judging.engine.budget import Budget, budget_of, spent_by
from judging.engine.candidates import candidates_create, refuse_impossible_candidates
from judging.engine.rubric_rows import refuse_unreadable
from judging.engine.stopping import stopped_by_endpoint
from judging.filters.counts import overridden_states
from judging.metrics.editor.scripts import script_failure, script_sentence
from judging.metrics.models import Metric, MetricVersion
from judging.metrics.services import refuse_definition
from judging.records.models import (
    COUNTERS,
    INFER,
    JudgementState,
    Priority,
    Reading,
    Run,
    RunCandidate,
    RunMetric,
    RunState,
)
from judging.records.overrides import run_lock

MOST_IN_ALL_PAIRS = 4  # candidates of which all pairs are compared without a word
_NAMED = 2  # metrics that a proposed name of a run lists

RETRYABLE = (JudgementState.ERROR, JudgementState.UNPARSED)
RESUMABLE = (RunState.PAUSED, RunState.CANCELLED, RunState.FAILED)


@dataclass(frozen=True, slots=True)
class ChosenMetric:
    """A metric for a run: the definition to freeze and the version it comes from, if any."""

    definition: MetricDefinition
    version: MetricVersion | None = None


def frozen(definition: MetricDefinition) -> MetricDefinition:
    """The definition with each endpoint's URL, model and parameters copied into it, so that later edits of the endpoint
    don't affect the run. The API key is not copied but read for each connection."""
    judges = tuple(
        judge if judge.endpoint is None else with_address(judge, Endpoint.objects.get(pk=judge.endpoint))
        for judge in definition.judges
    )
    return msgspec.structs.replace(definition, judges=judges)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """A run's budget, priority, early stopping width, and reuse of earlier replies."""

    budget: Budget = field(default_factory=Budget)
    priority: Priority = Priority.NORMAL
    stop_width: float | None = None
    reuse_replies: bool = False
    reuse_at_any_temperature: bool = False  # also at temperatures other than 0, where replies may differ
    leave_out_unreadable: bool = False  # rows whose rubric no checklist can be judged by
    batched: bool = False  # requests are sent in batches, at half the price, and answered within a day
    plain_if_expired: bool = False  # those that were not answered in time are then sent alone


@dataclass(frozen=True, slots=True)
class PriceList:
    """Prices of a run's endpoints, serializable as JSON: (input, output) per million tokens, by endpoint id."""

    currency: str
    prices: dict[str, tuple[float, float]]


def called_endpoints(
    definitions: Iterable[MetricDefinition], candidate_models: Iterable[CandidateModel] = ()
) -> set[int]:
    """Ids of the endpoints that these metrics and candidates call."""
    ids = {judge.endpoint for definition in definitions for judge in definition.judges}
    return {pk for pk in ids | {model.endpoint for model in candidate_models} if pk}


def price_list(
    definitions: Iterable[MetricDefinition], candidate_models: Iterable[CandidateModel] = ()
) -> PriceList:
    """Prices of all endpoints that are called, if they have both and use one currency; else empty, since an unknown
    price is no price of 0, and a sum of several currencies is none."""
    prices: dict[str, tuple[float, float]] = {}
    currencies = set()
    for endpoint in Endpoint.objects.filter(pk__in=called_endpoints(definitions, candidate_models)):
        if endpoint.input_price is None or endpoint.output_price is None:
            return PriceList("", {})
        currencies.add(endpoint.currency)
        prices[str(endpoint.pk)] = (float(endpoint.input_price), float(endpoint.output_price))
    return PriceList(currencies.pop(), prices) if len(currencies) == 1 else PriceList("", {})


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
    candidate_models: Sequence[CandidateModel] = (),
    only_rows: Sequence[int] | None = None,
) -> Run:
    """Create a run, to be planned and started immediately by a worker (only by the process `only_worker`, if given). It
    judges the uploaded answers of `candidates` and answers generated by the `candidate_models`. `only_rows`: ids of the
    rows that it is limited to.

    Raises ValidationError with a message if the run is not possible.
    """
    version_lock(version)
    refuse_impossible(version, candidates, metrics, candidate_models)
    if options and options.batched:
        refuse_impossible_batches(options, metrics, candidate_models)
    definitions = [metric.definition for metric in metrics]
    refuse_broken_scripts(definitions)
    for chosen in metrics:
        if metric := _stored_metric(project, chosen):
            refuse_definition(metric, chosen.definition)
    leave_out = options is not None and options.leave_out_unreadable
    run = Run(
        project=project,
        name=name or proposed_name(project, version, definitions),
        version=version,
        kind=INFER if candidate_models else "judge_only",
        sample_size=sample_size if only_rows is None else len(only_rows),
        only_rows=None if only_rows is None else sorted(only_rows),
        seed=random.randrange(2**31) if seed is None else seed,
        bad_rows_left_out=version.bad_rows,
        rubric_rows_left_out=refuse_unreadable(version, definitions, leave_out=leave_out) or 0,
        created_by=user,
        only_worker=only_worker,
    )
    _set_options(run, options or RunOptions(), price_list(definitions, candidate_models))
    run.save()
    RunCandidate.objects.bulk_create([RunCandidate(run=run, candidate=candidate) for candidate in candidates])
    candidates_create(run, candidate_models)
    _freeze_metrics(run, metrics)
    _record_start(run, metrics)
    workers.wake(run_worker.judge_runs)
    return run


def _stored_metric(project: Project, chosen: ChosenMetric) -> Metric | None:
    """The project's metric that a definition belongs to; one from a file belongs to that of its name."""
    if chosen.version is not None:
        return chosen.version.metric
    return Metric.objects.filter(project=project, name=chosen.definition.name).first()


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
    """Set the run's options. Raises ValidationError for a cost budget without prices."""
    run.currency, run.prices = prices.currency, prices.prices
    allow_budget(run, options.budget)
    run.batched, run.plain_if_expired = options.batched, options.plain_if_expired
    run.priority, run.stop_width = options.priority, options.stop_width
    run.reuse_at_any_temperature = options.reuse_at_any_temperature
    run.reuse_replies = options.reuse_replies or options.reuse_at_any_temperature


def _freeze_metrics(run: Run, metrics: Sequence[ChosenMetric]) -> None:
    RunMetric.objects.bulk_create(
        RunMetric(
            run=run,
            number=number,
            name=metric.definition.name,
            definition=frozen(metric.definition).to_json(),
            metric_version=metric.version,
        )
        for number, metric in enumerate(metrics)
    )


def refuse_impossible(
    version: Version,
    candidates: Sequence[Candidate],
    metrics: Sequence[ChosenMetric],
    candidate_models: Sequence[CandidateModel],
) -> None:
    """Raise ValidationError if no run can judge this."""
    if not version.usable:
        raise ValidationError(
            _(
                "This version has invalid rows, or its file is incomplete. Fix or exclude them on the version "
                "page, then start the run."
            )
        )
    if not candidates and not candidate_models:
        raise ValidationError(
            _(
                "There are no answers to judge. Select a version with model_outputs and at least one candidate, or "
                "a model to generate answers."
            )
        )
    if any(candidate.version_id != version.pk for candidate in candidates):
        raise ValidationError(_("A candidate belongs to another version."))
    refuse_impossible_candidates(candidates, candidate_models)
    names = [metric.definition.name for metric in metrics]
    if not names or len(set(names)) < len(names):
        raise ValidationError(_("Select at least one metric, each only once."))
    answering = [candidate.name for candidate in candidates] + [model.name for model in candidate_models]
    for metric in metrics:
        refuse_impossible_pairs(metric.definition, answering)


def refuse_impossible_batches(
    options: RunOptions, metrics: Sequence[ChosenMetric], candidate_models: Sequence[CandidateModel]
) -> None:
    """Raise ValidationError if a run's requests can't be sent in batches."""
    if candidate_models:
        raise ValidationError(_("Answers can't be generated in batches. Generate them in another run first."))
    if options.stop_width:
        raise ValidationError(_("A run that sends batches can't end early. Leave that empty, or send none."))
    judges = [judge for metric in metrics for judge in metric.definition.judges]
    if not judges:
        raise ValidationError(_("These metrics ask no judge model, so there is nothing to send in batches."))
    endpoints = Endpoint.objects.in_bulk([judge.endpoint for judge in judges if judge.endpoint])
    asked = [endpoints.get(judge.endpoint or 0) for judge in judges]
    if not all(endpoint is not None and offers_batches(endpoint) for endpoint in asked):
        raise ValidationError(
            _(
                "A judge's connection test found no batches at its server. Test its endpoint again, or send no "
                "batches."
            )
        )


def refuse_impossible_pairs(definition: MetricDefinition, candidates: Sequence[str]) -> None:
    """Raise ValidationError if a metric cannot compare these candidates, or only with more pairs than it allows."""
    if not definition.compares_candidates:
        return
    about = {"metric": definition.name, "candidates": len(candidates), "baseline": definition.baseline}
    if len(candidates) < 2:
        raise ValidationError(
            _("Metric “%(metric)s” compares candidates, so it needs the answers of at least two.") % about
        )
    try:
        pairs = definition.pairs(candidates)
    except ValueError:
        raise ValidationError(
            _("Metric “%(metric)s” compares every candidate with “%(baseline)s”, which is not in this run.")
            % about
        ) from None
    if definition.compares == "all" and len(candidates) > MOST_IN_ALL_PAIRS and not definition.any_pairs:
        raise ValidationError(
            _(
                "Metric “%(metric)s” compares all pairs: %(pairs)s for each row with these %(candidates)s candidates. "
                "Compare each with a baseline instead, or allow all pairs (“pairs: all” in a metrics file)."
            )
            % (about | {"pairs": len(pairs)})
        )


def refuse_broken_scripts(definitions: Iterable[MetricDefinition]) -> None:
    """Raise ValidationError for all scripts that cannot be loaded, before any call is made.

    If this process has no sandbox, the run detects them itself.
    """
    problems = [
        _("Metric “%(metric)s”: %(why)s")
        % {"metric": definition.name, "why": script_sentence(script.kind, failure)}
        for definition in definitions
        for script in definition.scripts
        if (failure := _broken(script))
    ]
    if problems:
        raise ValidationError(problems)


def _broken(script: Script) -> SandboxFailure | None:
    failure = script_failure(script.kind, script.source)
    return failure if failure and failure.code in ("syntax", "load") else None


def proposed_name(project: Project, version: Version, definitions: Sequence[MetricDefinition]) -> str:
    """A free name that says what is judged and when: the metrics (without any: the data set) and today's date."""
    names = [definition.name for definition in definitions] or [version.dataset.name]
    more = f" + {len(names) - _NAMED}" if len(names) > _NAMED else ""
    base = f"{' + '.join(names[:_NAMED])[:150]}{more} {timezone.localdate():%Y-%m-%d}"
    taken = set(Run.objects.filter(project=project, name__startswith=base).values_list("name", flat=True))
    numbered = (f"{base} ({n})" for n in range(2, len(taken) + 3))
    return next(name for name in (base, *numbered) if name not in taken)


def free_name(project: Project, base: str) -> str:
    """`base` with the first free number in the project, such as "physics 3"."""
    taken = set(Run.objects.filter(project=project, name__startswith=base).values_list("name", flat=True))
    return next(f"{base} {n}" for n in range(1, len(taken) + 2) if f"{base} {n}" not in taken)


@transaction.atomic
def run_resume(run: Run, *, only_worker: str = "", budget: Budget | None = None) -> bool:
    """Resume a paused, cancelled or failed run, optionally with a new budget; if it was not planned to its end, this is
    done first. False if the run is in another state.

    Raises ValidationError if the budget is already used up.
    """
    locked = Run.objects.select_for_update().get(pk=run.pk)
    if locked.state not in RESUMABLE:
        return False
    allow_budget(locked, budget_of(locked) if budget is None else budget)
    if locked.chunks.exists():
        planning.restore_open_chunks(locked)
    planned = planning.is_planned(locked)
    locked.reopen(RunState.RUNNING if planned else RunState.PLANNING, only_worker)
    locked.save()
    record(Action.RUN_RESUMED, project=run.project, thing=run)
    if not (planned and chunks.finish_if_done(run.pk)):
        workers.wake(run_worker.judge_runs)
        if run.batched:
            jobs.request("run_batches", run.pk, again=True)
    return True


@transaction.atomic
def run_extend(run: Run, rows: int | None) -> bool:
    """Extend a finished run to `rows` rows in total, adding randomly drawn ones, or to all rows (None), with the frozen
    metrics. Existing judgements are kept. False if the run has not finished or already has that many rows.

    Raises ValidationError if the run has readings (it was re-parsed or re-judged), or if the budget is used up.
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
    locked.reopen(RunState.PLANNING)
    locked.revision += 1
    locked.save()
    record(Action.RUN_EXTENDED, project=locked.project, thing=locked, rows=rows)
    workers.wake(run_worker.judge_runs)
    return True


def allow_budget(run: Run, budget: Budget) -> None:
    """Set the run's budget. Raises ValidationError if it is already used up, or limits the cost without prices."""
    if budget.money is not None and not run.currency:
        raise ValidationError(
            _(
                "A cost budget needs endpoint prices in one currency. Set the prices in the endpoints, or leave "
                "the budget empty."
            )
        )
    if spent_by(run).reached(budget):
        raise ValidationError(
            _("This budget is already used up. Raise it above current usage or leave it empty, then resume.")
        )
    run.budget_calls, run.budget_tokens, run.budget_money = budget.calls, budget.tokens, budget.money


@transaction.atomic
def run_retry(run: Run, states: tuple[str, ...] = (JudgementState.ERROR,)) -> int:
    """Create new attempts for judgements in these states; old attempts are kept. Returns the number of attempts, 0
    while the run is in progress. A run paused by an endpoint problem is resumed."""
    locked = run_lock(run.pk)
    chosen = [state for state in RETRYABLE if state in states]
    if not (locked.ended or stopped_by_endpoint(locked)) or not chosen:
        return 0
    stopped = locked.state != RunState.FINISHED
    # A judgement with an override needs no new attempt.
    created = planning.plan_attempts(locked, locked.judgements.filter(state_in_force__in=chosen))
    if created:
        left = overridden_states(locked)
        for state in chosen:
            setattr(locked, COUNTERS[state], left[state])
        locked.reopen(RunState.RUNNING)
        locked.revision += 1
        locked.save()
        if stopped:
            planning.restore_open_chunks(locked)
        record(Action.RUN_RETRIED, project=locked.project, thing=locked, states=chosen, judgements=created)
        workers.wake(run_worker.judge_runs)
    return created
