"""Begin and end a watch, change its schedule and ceilings."""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Max, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from evalsite import clock
from evalsite.accounts.models import User
from evalsite.audit import Action, record
from evalsite.tasks import jobs
from judging.core.cron import BadSchedule, NeverDue, TooOften, schedule_from
from judging.core.statistics.watch import BASELINE
from judging.engine.stopping import run_cancel
from judging.records.models import Run
from judging.trust.models import Licence, LicenceState
from judging.trust.selectors import licence_in_force, licence_state
from judging.trust.watch.cost import Price, price_of_sitting
from judging.trust.watch.models import Sitting, Watch, WatchState
from judging.trust.watch.sentinels import definition_of, run_of, sentinels_draw

JOB = "watch_judge"
USUAL_CHECKS = 40
"""The usual ceiling a month pays for so many sittings, the baseline's included."""
CEILING, LICENCE_OVER, CHANGED, UNREADABLE = "ceiling", "licence_over", "changed", "unreadable"
"""Problems: the ceiling is reached; the licence has lapsed or was replaced; the endpoint's settings are others than
those that were licensed, or it was deleted; the sentinels could not be stored."""
BY_PERSON = "ended"


def price_of(licence: Licence, sentinels: int) -> Price | None:
    """The price of one sitting; None if the licence's run was deleted."""
    run = run_of(licence)
    if run is None:
        return None
    return price_of_sitting(definition_of(licence), licence.metric_version, run.version, sentinels)


def usual_ceiling(price: Price) -> int:
    """Calls a month."""
    return USUAL_CHECKS * price.calls


def schedule_clean(text: str) -> str:
    """Five fields with single blanks, '' for none. Raises ValidationError."""
    fields = " ".join(text.split())
    if not fields:
        return ""
    try:
        schedule_from(fields)
    except TooOften:
        raise ValidationError(
            _("Checks can be made hourly at most: give one minute, such as “0 */6 * * *”.")
        ) from None
    except NeverDue:
        raise ValidationError(_("That day does not exist, so no check would ever be due.")) from None
    except BadSchedule as error:
        if not str(error):
            raise ValidationError(
                _("A schedule has five fields: minute, hour, day of the month, month, day of the week.")
            ) from None
        raise ValidationError(_("“%(field)s” can't be read in this schedule.") % {"field": error}) from None
    return fields


def next_due(schedule: str, now: datetime) -> datetime | None:
    """When the next check by schedule is due; None without one."""
    return schedule_from(schedule).next_after(now, timezone.get_default_timezone()) if schedule else None


@transaction.atomic
def watch_begin(
    *,
    licence: Licence,
    sentinels: int,
    schedule: str = "",
    ceiling_calls: int | None = None,
    ceiling_money: int | None = None,
    user: User | None,
    seed: int | None = None,
) -> Watch:
    """Draw the sentinels, and have a worker begin the baseline. `ceiling_calls`, `ceiling_money` (millionths): a month;
    calls None for the usual ceiling.

    Raises ValidationError if the licence does not hold or is watched already, the schedule cannot be read, the
    sentinels cannot be drawn, or the ceiling does not pay for the baseline.
    """
    if licence_state(licence) != LicenceState.VALID:
        raise ValidationError(_("This licence does not hold now, so its judge can't be watched."))
    seed = random.randrange(2**31) if seed is None else seed
    drawn, price = sentinels_draw(licence, sentinels, seed), price_of(licence, sentinels)
    definition = definition_of(licence)
    newest = licence_in_force(definition, licence.metric_version.metric.project)
    if newest is not None and newest.pk != licence.pk:
        raise ValidationError(_("A newer licence has replaced this one. Watch the judge from that."))
    assert price is not None  # sentinels_draw refuses licences without a run
    ceiling = usual_ceiling(price) if ceiling_calls is None else ceiling_calls
    refuse_low_ceiling(ceiling, price.calls)
    schedule, now = schedule_clean(schedule), clock.now()
    try:
        with transaction.atomic():
            watch = Watch.objects.create(
                licence=licence,
                seed=seed,
                sentinels=drawn,
                definition=definition.to_json(),
                sitting_calls=price.calls,
                schedule=schedule,
                due_at=next_due(schedule, now),
                seen_until=last_run_ended(licence),
                ceiling_calls=ceiling,
                ceiling_money=ceiling_money,
                after_suspension=newest_suspension(licence),
                created_by=user,
                created_at=now,
            )
    except IntegrityError:
        raise ValidationError(_("This judge is watched already.")) from None
    _record(Action.WATCH_BEGUN, watch, user, sentinels=len(drawn), calls=price.times(BASELINE).calls)
    jobs.request(JOB, watch.pk)
    return watch


def refuse_low_ceiling(ceiling: int, sitting_calls: int) -> None:
    """Raise ValidationError if a month's ceiling does not pay for a baseline."""
    if ceiling < BASELINE * sitting_calls:
        raise ValidationError(
            _("The ceiling must pay for the baseline: at least %(n)s calls a month.")
            % {"n": BASELINE * sitting_calls}
        )


def newest_suspension(licence: Licence) -> int:
    """Its id; 0 if the licence was never suspended."""
    return licence.suspensions.aggregate(newest=Max("pk"))["newest"] or 0


def last_run_ended(licence: Licence) -> datetime | None:
    """When the last run of the licensed version ended."""
    last: datetime | None = runs_of(licence).aggregate(last=Max("finished_at"))["last"]
    return last


def runs_of(licence: Licence) -> QuerySet[Run]:
    """The runs of the licensed version by the site's judges that have ended with a verdict."""
    used = Run.objects.by_workers().with_verdicts()
    return used.filter(metrics__metric_version=licence.metric_version_id, finished_at__isnull=False)


@transaction.atomic
def watch_end(*, watch: Watch, user: User | None = None, problem: str = BY_PERSON) -> None:
    """Make no more checks; what was measured stays. An open sitting is cancelled. Nothing happens if it has ended."""
    watch = (
        Watch.objects.select_for_update()
        .select_related("licence__metric_version__metric__project")
        .get(pk=watch.pk)
    )
    if not watch.active:
        return
    now = clock.now()
    sitting = Sitting.objects.filter(watch=watch, ended_at=None).select_related("run__project").first()
    if sitting is not None:
        run, spent = sitting.run, {}
        if run is not None:
            run_cancel(run)
            spent = {"calls": run.calls, "money": run.spent, "currency": run.currency}
        Sitting.objects.filter(pk=sitting.pk).update(ended_at=now, problem=problem, **spent)
    watch.state, watch.problem, watch.ended_at, watch.ended_by = WatchState.ENDED, problem, now, user
    watch.save(update_fields=["state", "problem", "ended_at", "ended_by"])
    _record(Action.WATCH_ENDED, watch, user, why=problem)


@transaction.atomic
def watch_schedule(*, watch: Watch, schedule: str, user: User) -> None:
    """Check by this schedule, '' for after runs. Raises ValidationError if it cannot be read, or the watch has
    ended."""
    watch = _active(watch)
    watch.schedule = schedule_clean(schedule)
    watch.due_at = next_due(watch.schedule, clock.now())
    watch.save(update_fields=["schedule", "due_at"])
    _record(Action.WATCH_CHANGED, watch, user, schedule=watch.schedule)


@transaction.atomic
def watch_ceilings(*, watch: Watch, calls: int, money: int | None, user: User) -> None:
    """Set what a month may cost: calls, and money in millionths, None for no limit. Raises ValidationError if it does
    not pay for a baseline, or the watch has ended."""
    watch = _active(watch)
    refuse_low_ceiling(calls, watch.sitting_calls)
    watch.ceiling_calls, watch.ceiling_money = calls, money
    watch.save(update_fields=["ceiling_calls", "ceiling_money"])
    _record(Action.WATCH_CHANGED, watch, user, calls=calls, money=money)
    jobs.request(JOB, watch.pk)


def _active(watch: Watch) -> Watch:
    locked = Watch.objects.select_for_update().select_related("licence__metric_version__metric__project")
    watch = locked.get(pk=watch.pk)
    if not watch.active:
        raise ValidationError(_("This watch has ended."))
    return watch


def _record(action: Action, watch: Watch, user: User | None, **detail: Any) -> None:
    metric = watch.licence.metric_version.metric
    record(action, project=metric.project, thing=metric, by=user, **detail)
