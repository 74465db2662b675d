"""What a watch does next: sittings of the baseline, checks after runs or by schedule, alarms. A job of workers.

    learning: 3 sittings ── an hour ──▶ 2 sittings ──▶ watching: a check after a run or when it is due, hourly at most
    ceiling reached ──▶ paused until the next month, or a higher ceiling     alarm ──▶ lifted: a new period, learning

Every step looks at what is stored, so a killed worker loses nothing but its own step.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from datasets.models import Candidate
from evalsite import clock
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold
from judging.core.licensing import definition_hash
from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.watch import BASELINE, answered_enough
from judging.endpoints.models import Endpoint
from judging.engine.budget import Budget
from judging.engine.stopping import run_cancel
from judging.records.models import Run, RunState
from judging.runs.services import ChosenMetric, RunOptions, free_name, frozen, run_create
from judging.trust.models import LicenceState
from judging.trust.selectors import licence_in_force, licence_state
from judging.trust.watch.alarms import alarm_raise
from judging.trust.watch.cost import budget_left
from judging.trust.watch.models import Sitting, Watch, WatchState
from judging.trust.watch.results import result_of, sight_of, stored_result
from judging.trust.watch.sentinels import as_judged, sittings_of, verdicts_in, version_store
from judging.trust.watch.services import (
    CEILING,
    CHANGED,
    JOB,
    LICENCE_OVER,
    UNREADABLE,
    last_run_ended,
    newest_suspension,
    next_due,
    watch_end,
)

APART = timedelta(hours=1)
"""Between the two parts of the baseline, and between two checks, at least."""
FIRST_PART = 3
"""Sittings of the baseline before the hour's pause; the others come after it."""
FEW_ANSWERS, STOPPED, DELETED = "few_answers", "stopped", "deleted"
"""Why a sitting does not count: under nine of ten sentinels answered; its run was paused, cancelled or failed before
that; its run was deleted."""


def watches_due() -> None:
    """Have workers take the steps that are due; called by the reconciler."""
    for watch in active_watches():
        if needs_step(watch, clock.now()):
            jobs.request(JOB, watch.pk)


def active_watches() -> list[Watch]:
    """Those that have not ended, of projects that are not archived."""
    watches = Watch.objects.filter(ended_at=None, licence__metric_version__metric__project__archived_at=None)
    return list(watches.select_related("licence__metric_version__metric__project").order_by("pk"))


def needs_step(watch: Watch, now: datetime) -> bool:
    """Whether there is something to do for a watch now."""
    sitting = watch.sittings.filter(ended_at=None).select_related("run").first()
    if sitting is not None:
        return sitting.run is None or sitting.run.is_idle
    state = licence_state(watch.licence)
    if state == LicenceState.SUSPENDED:
        return watch.state != WatchState.ALARM
    if state == LicenceState.LAPSED or watch.after_suspension < newest_suspension(watch.licence):
        return True
    if is_replaced(watch):
        return True
    if watch.state == WatchState.PAUSED and budget_left(watch, now) is None:
        return False
    return is_due(watch, now)


def is_replaced(watch: Watch) -> bool:
    """Whether a newer licence of the same definition has taken the place of the watched one."""
    definition = MetricDefinition.from_json(watch.definition)
    newest = licence_in_force(definition, watch.licence.metric_version.metric.project)
    return newest is not None and newest.pk != watch.licence_id


def is_due(watch: Watch, now: datetime) -> bool:
    """Whether a sitting is due, of the baseline or a check."""
    last = watch.sittings.filter(period=watch.period).order_by("-started_at", "-pk").first()
    learnt = learnt_sittings(watch)
    if learnt < BASELINE:
        pause = last is not None and (last.number is None or learnt == FIRST_PART)
        return not pause or (last.ended_at or now) + APART <= now  # type: ignore[union-attr]
    if last is not None and not last.baseline and last.started_at + APART > now:
        return False
    if watch.schedule:
        return watch.due_at is not None and watch.due_at <= now
    ended = last_run_ended(watch.licence)
    return ended is not None and (watch.seen_until is None or ended > watch.seen_until)


def learnt_sittings(watch: Watch) -> int:
    """How many sittings of the period's baseline count so far."""
    return watch.sittings.filter(period=watch.period, baseline=True, number__isnull=False).count()


@jobs.job(JOB, Watch)
def watch_judge(_hold: Hold, watch: Watch) -> None:
    """Take the next step of a watch."""
    step(watch.pk)


def step(pk: int) -> None:
    """Close the open sitting if its run has ended, and begin the next one if it is due."""
    watch = _load(pk)
    if not watch.active:
        return
    sitting = watch.sittings.filter(ended_at=None).select_related("run__project", "run__version").first()
    if sitting is not None:
        if sitting.run is not None and not sitting.run.is_idle:
            return
        sitting_close(watch, sitting)
        watch = _load(pk)
    if licence_state(watch.licence) == LicenceState.LAPSED or is_replaced(watch):
        watch_end(watch=watch, problem=LICENCE_OVER)
    elif licence_state(watch.licence) == LicenceState.SUSPENDED:
        Watch.objects.filter(pk=pk, ended_at=None).update(state=WatchState.ALARM, problem="")
    else:
        if watch.after_suspension < newest_suspension(watch.licence):
            _begin_period(watch)
        if is_due(watch, clock.now()):
            _begin_sitting(watch)


def _load(pk: int) -> Watch:
    return Watch.objects.select_related(
        "licence__metric_version__metric__project", "version", "created_by"
    ).get(pk=pk)


def _begin_period(watch: Watch) -> None:
    """A suspension was lifted: what the judge says now is the new baseline."""
    watch.period, watch.after_suspension = watch.period + 1, newest_suspension(watch.licence)
    watch.state, watch.problem, watch.sight = WatchState.LEARNING, "", None
    watch.due_at = next_due(watch.schedule, clock.now())
    watch.save(update_fields=["period", "after_suspension", "state", "problem", "sight", "due_at"])


def _begin_sitting(watch: Watch) -> None:
    budget = budget_left(watch, clock.now())
    if budget is None:
        _pause(watch, CEILING)
        return
    if watch.version is None:
        try:
            version = version_store(watch)
        except ValidationError:
            watch_end(watch=watch, problem=UNREADABLE)
            return
        watch.version = version
        watch.save(update_fields=["version"])
    try:
        sitting_begin(watch, budget)
    except (ValidationError, Endpoint.DoesNotExist):
        _pause(watch, CHANGED)


def _pause(watch: Watch, problem: str) -> None:
    Watch.objects.filter(pk=watch.pk, ended_at=None).update(state=WatchState.PAUSED, problem=problem)


@transaction.atomic
def sitting_begin(watch: Watch, budget: Budget) -> Sitting | None:
    """Have the sentinels judged by a run of its own. None if one is open, or the watch has ended. Raises
    ValidationError if the judge would not be the licensed one, and Endpoint.DoesNotExist."""
    locked = Watch.objects.select_for_update().get(pk=watch.pk)
    if not locked.active or locked.sittings.filter(ended_at=None).exists() or watch.version is None:
        return None
    metric, now = watch.licence.metric_version.metric, clock.now()
    definition = frozen(MetricDefinition.from_json(watch.definition))
    if definition_hash(definition) != watch.licence.definition_hash:
        raise ValidationError(_("The judge's endpoint has other settings than those that were licensed."))
    learning = learnt_sittings(locked) < BASELINE
    run = run_create(
        project=metric.project,
        name=free_name(metric.project, _("%(metric)s: watch") % {"metric": metric.name[:120]}),
        version=watch.version,
        candidates=list(Candidate.uploaded.filter(version=watch.version).order_by("pk")),
        metrics=[ChosenMetric(as_judged(definition))],
        user=None,
        seed=watch.seed,
        options=RunOptions(budget=budget),
    )
    Run.objects.filter(pk=run.pk).update(archived_at=timezone.now())  # in no list but that of archived runs
    locked.state, locked.problem = WatchState.LEARNING if learning else WatchState.WATCHING, ""
    if not learning:
        locked.due_at = next_due(locked.schedule, now)
        locked.seen_until = last_run_ended(watch.licence)
    locked.save(update_fields=["state", "problem", "due_at", "seen_until"])
    return Sitting.objects.create(
        watch=locked, period=locked.period, baseline=learning, run=run, started_at=now
    )


@transaction.atomic
def sitting_close(watch: Watch, sitting: Sitting) -> None:
    """Store what a sitting gave, test a check, and raise the alarm if it found a change."""
    locked = Watch.objects.select_for_update().get(pk=watch.pk)
    sitting = (
        Sitting.objects.select_for_update(of=("self",)).select_related("run__project").get(pk=sitting.pk)
    )
    if sitting.ended_at is not None:
        return
    sitting.ended_at = clock.now()
    _read(watch, sitting)
    if not sitting.problem:
        counted = Sitting.objects.filter(
            ~Q(number=None), watch=watch, period=sitting.period, baseline=sitting.baseline
        ).count()
        sitting.number = counted + 1
        if not sitting.baseline:
            result = result_of(watch, sitting, sitting.number)
            sitting.alarm, sitting.result = result.alarm, stored_result(watch, sitting, result)
    sitting.save()
    if sitting.number is not None and learnt_sittings(locked) >= BASELINE:
        sight = sight_of(watch)
        Watch.objects.filter(pk=watch.pk, ended_at=None).update(sight=sight, state=WatchState.WATCHING)
    if sitting.alarm:
        alarm_raise(watch, sitting.number or 0)


def _read(watch: Watch, sitting: Sitting) -> None:
    """Take verdicts and cost from the sitting's run; `problem` says why it does not count."""
    run = sitting.run
    if run is None or run.deleted_at is not None:
        sitting.problem = DELETED
        return
    if run.state == RunState.PAUSED:
        run_cancel(run)
    sitting.calls, sitting.money, sitting.currency = run.calls, run.spent, run.currency
    sitting.verdicts = verdicts_in(watch, run)
    if not answered_enough(sittings_of(watch, [sitting], numbers=False)):
        sitting.problem = FEW_ANSWERS if run.state == RunState.FINISHED else (run.problem or STOPPED)
