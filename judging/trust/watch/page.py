"""A watch as its page shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evalsite import clock
from evalsite.templatetags.show import percents
from judging.core.charts.axis import Axis, percent_texts
from judging.core.charts.inline import axis_head, interval_bar, shared_axis
from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.watch import BASELINE
from judging.engine.budget import MILLION
from judging.trust.watch.cost import spent_in_month
from judging.trust.watch.models import Sitting, Watch
from judging.trust.watch.results import baseline_share
from judging.trust.watch.sentinels import has_numbers
from judging.trust.watch.steps import learnt_sittings

SHOWN = 50
"""Sittings that a page shows, newest first."""


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A check, with its share of changed verdicts drawn on the shared axis; `near`: how near the alarm is, 0…1."""

    sitting: Sitting
    bar: str
    near: float | None


@dataclass(frozen=True, slots=True)
class WatchPage:
    """`share`: that of the baseline with its interval, None before its first sitting; `head`: the axis of the column of
    bars. `learnt`: sittings of the baseline that count, of `of`. `calls`, `money`: of this month."""

    checks: list[CheckRow]
    others: list[Sitting]
    share: dict[str, Any] | None
    head: str
    baseline_bar: str
    learnt: int
    of: int
    numbers: bool
    calls: int
    money: float
    currency: str
    ceiling_money: float | None


def watch_page(watch: Watch) -> WatchPage:
    """What the page of a watch shows: this period's baseline and checks, and sittings that did not count."""
    sittings = watch.sittings.filter(period=watch.period).select_related("run").order_by("-started_at", "-pk")
    checks = list(sittings.filter(baseline=False, number__isnull=False)[:SHOWN])
    share = baseline_share(watch)
    axis = shared_axis(
        [0.0, *(_share(check)["high"] for check in checks), *([share["high"]] if share else [])]
    )
    spent = spent_in_month(watch, clock.now())
    return WatchPage(
        checks=[
            CheckRow(check, _bar(axis, _share(check)), (check.result or {})["nearness"]) for check in checks
        ],
        others=list(sittings.exclude(baseline=False, number__isnull=False)[:SHOWN]),
        share=share,
        head=axis_head(axis, list(map(percents, percent_texts(axis.ticks)))),
        baseline_bar=_bar(axis, share) if share else "",
        learnt=learnt_sittings(watch),
        of=BASELINE,
        numbers=has_numbers(MetricDefinition.from_json(watch.definition)),
        calls=spent.calls,
        money=spent.money / MILLION,
        currency=spent.currency,
        ceiling_money=None if watch.ceiling_money is None else watch.ceiling_money / MILLION,
    )


def _share(check: Sitting) -> dict[str, Any]:
    share: dict[str, Any] = (check.result or {})["share"]
    return share


def _bar(axis: Axis, share: dict[str, Any]) -> str:
    return interval_bar(0, axis, share["rate"], share["low"], share["high"])
