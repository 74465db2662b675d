"""What a check says, as it is stored and shown."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.intervals import wilson
from judging.core.statistics.watch import (
    TOGETHER,
    CheckResult,
    Sittings,
    check_result,
    earlier_checks,
    share_of,
    sight,
)
from judging.trust.watch.models import Sitting, Watch
from judging.trust.watch.sentinels import agreement_of, has_numbers, sittings_of


def counted(watch: Watch, period: int | None = None, *, baseline: bool) -> list[Sitting]:
    """The sittings of a kind that count in a period (None: this one), in order."""
    sittings = watch.sittings.filter(period=period or watch.period, baseline=baseline, number__isnull=False)
    return list(sittings.order_by("number"))


def sittings_counted(watch: Watch, *, baseline: bool) -> Sittings:
    """Their verdicts."""
    numbers = has_numbers(MetricDefinition.from_json(watch.definition))
    return sittings_of(watch, counted(watch, baseline=baseline), numbers)


def result_of(watch: Watch, check: Sitting, number: int) -> CheckResult:
    """The tests of a check, with those before it that count; `number`: its place among these, from 1."""
    before = watch.sittings.filter(period=watch.period, baseline=False, number__lt=number).order_by("number")
    first = list(before.filter(number__lte=earlier_checks(number)))
    numbers = has_numbers(MetricDefinition.from_json(watch.definition))
    checks = sittings_of(watch, [*before.filter(number__gt=number - TOGETHER), check], numbers)
    earlier = sittings_of(watch, first, numbers=False) if first else None
    return check_result(sittings_counted(watch, baseline=True), checks, number, watch.seed, earlier)


def stored_result(watch: Watch, check: Sitting, result: CheckResult) -> dict[str, Any]:
    """{share: {changed, judged, rate, low, high}, agreement: {right, of, rate, low, high}, shift, nearness, tests:
    [{what, checks, p, level, earlier}]}; `shift` null for verdicts that are no numbers."""
    right, of = agreement_of(watch, check)
    low, high = wilson(right / of, of)
    return {
        "share": asdict(result.share),
        "agreement": {"right": right, "of": of, "rate": right / of, "low": low, "high": high},
        "shift": result.shift,
        "nearness": result.nearness,
        "tests": [asdict(test) for test in result.tests],
    }


def baseline_share(watch: Watch) -> dict[str, Any] | None:
    """{changed, judged, rate, low, high} of the baseline so far; None before its first sitting."""
    baseline = sittings_counted(watch, baseline=True)
    return asdict(share_of(baseline.changed)) if baseline.changed.size else None


def sight_of(watch: Watch) -> dict[str, Any]:
    """{sentinels, by_itself, turned, sensitivity}: what the watch can see from the next check on."""
    checks = watch.sittings.filter(period=watch.period, baseline=False, number__isnull=False).count()
    return asdict(sight(sittings_counted(watch, baseline=True), checks))


def watch_out(watch: Watch) -> dict[str, Any]:
    """A watch as the API gives it."""
    checks = watch.sittings.filter(period=watch.period, baseline=False, number__isnull=False)
    newest = checks.order_by("-number").first()
    return {
        "id": watch.pk,
        "state": watch.state,
        "problem": watch.problem,
        "sentinels": len(watch.sentinels),
        "schedule": watch.schedule,
        "due_at": watch.due_at,
        "ceiling_calls": watch.ceiling_calls,
        "checks": checks.count(),
        "last": _check_out(newest) if newest else None,
        "sight": watch.sight,
    }


def _check_out(check: Sitting) -> dict[str, Any]:
    result = {name: value for name, value in (check.result or {}).items() if name != "tests"}
    return {"number": check.number, "at": check.started_at.isoformat(), **result, "alarm": check.alarm}
