"""Re-judging: new requests for all matches of a filter or one item, with the same metric or another version of it."""

from __future__ import annotations

from django.db import transaction

from evalsite.accounts.models import User
from evalsite.audit import Action, record
from evalsite.tasks import workers
from judging.core.metric_definition import MetricDefinition
from judging.engine import planning, run_worker
from judging.engine.budget import budget_of
from judging.metrics.models import MetricVersion
from judging.metrics.services import refuse_definition
from judging.records.definitions import definition_now
from judging.records.models import Reading, Run, RunMetric, RunState
from judging.records.overrides import run_lock
from judging.runs.rerun.reparse import recount, scale_of
from judging.runs.rerun.selection import Selection
from judging.runs.services import allow_budget, frozen, price_list, refuse_broken_scripts

REJUDGEABLE = (RunState.FINISHED, RunState.PAUSED, RunState.CANCELLED, RunState.FAILED)
"""Runs in progress are excluded: the last chunk could finish, and with it the run, while new ones are created."""


def other_versions(run_metric: RunMetric) -> list[MetricVersion]:
    """Versions of the metric with the same scale, newest first. Scores on different scales must not be averaged."""
    if run_metric.metric_version is None:
        return []
    now = definition_now(run_metric)
    versions = MetricVersion.objects.filter(metric=run_metric.metric_version.metric_id).order_by("-number")
    return [
        version
        for version in versions
        if scale_of(MetricDefinition.from_json(version.definition)) == scale_of(now)
    ]


@transaction.atomic
def run_rejudge(
    *, run: Run, selection: Selection, user: User | None, version: MetricVersion | None = None
) -> int:
    """Create new attempts with new calls for the selection; old ones are kept. Returns the number created, 0 while the
    run is in progress.

    A paused run stays paused and makes the calls once resumed. A cancelled or failed run is resumed, including its
    rest.

    `version`: judge with this version of the only selected metric. Raises ValidationError if the budget is used up.
    """
    locked = run_lock(run.pk)
    if locked.state not in REJUDGEABLE:
        return 0
    allow_budget(locked, budget_of(locked))
    reading = reading_by(locked, selection, version, user) if version else None
    created = planning.plan_attempts(locked, selection.of(locked), reading)
    if not created:
        if reading:
            reading.delete()
        return 0
    rejudge_launch(locked, reading, created, user)
    return created


def rejudge_launch(run: Run, reading: Reading | None, created: int, user: User | None) -> None:
    """Start a planned re-judging, unless the run, locked by the caller, is paused."""
    with_rest = run.state not in (RunState.PAUSED, RunState.FINISHED)
    recount(run, resume=run.state != RunState.PAUSED)
    if with_rest:
        planning.restore_open_chunks(run)
    by_version = reading.metric_version if reading else None
    record(
        Action.RUN_JUDGED_AGAIN,
        project=run.project,
        thing=run,
        by=user,
        judgements=created,
        version=by_version.number if by_version else None,
    )
    workers.wake(run_worker.judge_runs)


def reading_by(run: Run, selection: Selection, version: MetricVersion, user: User | None) -> Reading:
    (run_metric,) = selection.metrics(run)
    definition = frozen(MetricDefinition.from_json(version.definition))
    refuse_broken_scripts([definition])
    refuse_definition(version.metric, definition)
    prices = price_list([definition])
    if prices.currency and prices.currency == run.currency:
        run.prices = {**prices.prices, **run.prices}
    return Reading.objects.create(
        run_metric=run_metric,
        number=run_metric.readings.count() + 1,
        definition=definition.to_json(),
        metric_version=version,
        created_by=user,
        sends_requests=True,
    )
