"""Re-parsing stored judge replies into new attempts, without API calls.

A changed rule program can be applied too, unless it asks a judge model something that the run has not asked.
"""

from __future__ import annotations

from typing import Any

import msgspec
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Count
from django.utils.translation import gettext as _

from evalsite.accounts.models import User
from evalsite.audit import Action, record
from evalsite.tasks import workers
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.core.rules.ask import asks_no_more
from judging.core.rules.check import read_program
from judging.engine import planning, run_worker
from judging.metrics.models import MetricVersion
from judging.records.definitions import definition_now
from judging.records.models import COUNTERS, JudgementState, Reading, Run, RunMetric, RunState
from judging.records.overrides import run_lock
from judging.runs.rerun.selection import EVERYTHING, Selection

REPARSEABLE = (RunState.FINISHED, RunState.PAUSED, RunState.CANCELLED)


def reparsed_definition(
    now: MetricDefinition, new: MetricDefinition, original: MetricDefinition | None = None
) -> MetricDefinition | None:
    """`now` with the parsers, jury, scripts, scale and rule program of `new`; None if `new` asks something else.

    Scripts before the judges may have changed: a judgement of which they give another result is left as it is.
    Connections are ignored and stay unchanged; only prompts are compared. `original`: the definition that the run
    started with, if not `now`.
    """
    if bool(now.rules) != bool(new.rules):
        return None
    if new.rules:
        return _by_rules(now, new, original or now)
    if not _same_requests(now, new) or _places_before_judges(now) != _places_before_judges(new):
        return None
    return msgspec.structs.replace(now.read_as(new), scripts=new.scripts, sandbox=new.sandbox)


def _by_rules(
    now: MetricDefinition, new: MetricDefinition, original: MetricDefinition
) -> MetricDefinition | None:
    before, after = read_program(original.rules).program, read_program(new.rules).program
    if before is None or after is None or not asks_no_more(after, before):
        return None
    if now.scripts_before_judges != new.scripts_before_judges:
        return None
    if after.needs_judge and not _same_requests(now, new):
        return None
    return msgspec.structs.replace(now, rules=new.rules, scripts=new.scripts, sandbox=new.sandbox)


def _places_before_judges(definition: MetricDefinition) -> list[tuple[str, int]]:
    return [(script.kind, script.after) for script in definition.scripts_before_judges]


def scale_of(definition: MetricDefinition) -> tuple[float, float]:
    return definition.min_score, definition.max_score


def _same_requests(definition: MetricDefinition, other: MetricDefinition) -> bool:
    def requests(judge: JudgeModel) -> tuple[Any, ...]:
        return judge.template, judge.system_prompt or None, judge.repeats, judge.both_orders

    return list(map(requests, definition.judges)) == list(map(requests, other.judges))


def fitting_versions(run_metric: RunMetric) -> list[tuple[MetricVersion, MetricDefinition]]:
    """Versions of the metric, newest first, with the same prompts but different parsing than the run uses now."""
    if run_metric.metric_version is None:
        return []
    now, original = definition_now(run_metric), MetricDefinition.from_json(run_metric.definition)
    versions = MetricVersion.objects.filter(metric=run_metric.metric_version.metric_id).order_by("-number")
    reparsed = [
        (version, reparsed_definition(now, MetricDefinition.from_json(version.definition), original))
        for version in versions
    ]
    return [
        (version, definition)
        for version, definition in reparsed
        if definition is not None and definition != now
    ]


@transaction.atomic
def run_reparse(
    *,
    run: Run,
    run_metric: RunMetric,
    definition: MetricDefinition,
    user: User | None,
    version: MetricVersion | None = None,
    selection: Selection = EVERYTHING,
) -> int:
    """Create new attempts for one metric, which a worker parses from stored replies with `definition`. Returns the
    number created: 0 while the run is in progress, or if no replies exist although they are needed.

    `selection`: only these judgements, on the metric's current scale, because they are averaged with the others. A
    stopped run sends no more requests: it ends as cancelled, and the rest is parsed the same way once it is resumed.
    """
    locked = run_lock(run.pk)
    if locked.state not in REPARSEABLE:
        return 0
    reading = reading_add(run_metric, definition, user=user, version=version, whole=selection.whole)
    free = planning.remove_open_chunks(locked)
    created = planning.plan_attempts(locked, selection.of(locked), reading) if free else 0
    if not created:
        transaction.set_rollback(True)
        return 0
    reparse_launch(locked, reading, created)
    return created


def reading_add(
    run_metric: RunMetric,
    definition: MetricDefinition,
    *,
    user: User | None,
    version: MetricVersion | None,
    whole: bool,
) -> Reading:
    """Create a reading. Raises ValidationError if only a part of the judgements would get another scale."""
    if not whole and scale_of(definition) != scale_of(definition_now(run_metric)):
        raise ValidationError(_("A different scale can only be applied to all judgements of the metric."))
    return run_metric.readings.create(
        number=run_metric.readings.count() + 1,
        definition=definition.to_json(),
        metric_version=version,
        created_by=user,
        whole=whole,
    )


def reparse_launch(run: Run, reading: Reading, created: int, *, stopped: bool = False) -> None:
    """Start a planned re-parsing by a worker, unless the run, locked by the caller, was `stopped`."""
    if reading.whole:
        _apply_to_unjudged(reading, run)
    recount(run, resume=not stopped)
    record(
        Action.RUN_READ_AGAIN,
        project=run.project,
        thing=run,
        by=reading.created_by,
        metric=reading.run_metric.name,
        judgements=created,
    )
    workers.wake(run_worker.judge_runs)


def _apply_to_unjudged(reading: Reading, run: Run) -> None:
    """Use the reading for judgements that are not run yet, too."""
    rest = run.judgements.filter(
        run_metric=reading.run_metric, current=True, state=JudgementState.NOT_RUN, replies_from=None
    )
    rest.exclude(reading__sends_requests=True).update(reading=reading)


def recount(run: Run, *, resume: bool) -> None:
    """Recompute the counters of a run, locked by the caller, after new attempts were created, and set it to running if
    it is to `resume`."""
    current = run.judgements.by_metrics().filter(current=True).order_by()
    counts = dict(current.values_list("state").annotate(count=Count("*")))
    for state, counter in COUNTERS.items():
        setattr(run, counter, counts.get(state, 0))
    run.revision += 1
    if resume:
        run.reopen(RunState.RUNNING)
    run.save()
