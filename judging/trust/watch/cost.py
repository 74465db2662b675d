"""What a watch costs: calls and money of a sitting, and what a month has cost so far."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Sum
from django.utils import timezone

from datasets.models import Version
from judging.core.metric_definition import MetricDefinition
from judging.engine.budget import Budget
from judging.engine.rubric_rows import mean_criteria
from judging.metrics.models import MetricVersion
from judging.metrics.rule_editor.sample_rows import mean_fields
from judging.runs.preflight import preflight
from judging.runs.selectors import Cost, MetricChoice
from judging.trust.watch.models import Sitting, Watch

SPARE = 2
"""A sitting may make so many times the calls that it needs if all succeed: requests that fail are repeated."""


@dataclass(frozen=True, slots=True)
class Price:
    """Of one sitting: calls if all succeed, money in units of `currency` (None without prices), seconds."""

    calls: int
    money: float | None
    currency: str
    seconds: float

    def times(self, sittings: int) -> Price:
        money = None if self.money is None else self.money * sittings
        return Price(self.calls * sittings, money, self.currency, self.seconds * sittings)


def price_of_sitting(
    definition: MetricDefinition, metric_version: MetricVersion, version: Version, sentinels: int
) -> Price:
    """The price of judging so many sentinels once: judges, repeats and both orders of each."""
    fields = mean_fields(version) if definition.rules else 1
    criteria = mean_criteria(version) if definition.asks_by_criterion else 1
    calls = math.ceil(sentinels * definition.calls_over(fields, criteria))
    cost = Cost(sentinels, sentinels, calls, about=True, criteria=criteria, of_metrics=(sentinels,))
    estimate = preflight(version, [MetricChoice(metric_version, definition, [])], cost)
    if estimate is None:
        return Price(calls, None, "", 0.0)
    return Price(calls, estimate.money, estimate.currency, estimate.seconds)


@dataclass(frozen=True, slots=True)
class Spent:
    """Calls, and money in millionths, that a watch's sittings of a month have cost."""

    calls: int
    money: int
    currency: str


def month_of(moment: datetime) -> datetime:
    """When its month began, in the site's time zone."""
    return timezone.localtime(moment).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def spent_in_month(watch: Watch, now: datetime) -> Spent:
    """What the sittings cost that began in this month and have ended."""
    sittings = Sitting.objects.filter(watch=watch, started_at__gte=month_of(now))
    sums = sittings.aggregate(calls=Sum("calls"), money=Sum("money"))
    currency = sittings.exclude(currency="").values_list("currency", flat=True).first() or ""
    return Spent(sums["calls"] or 0, sums["money"] or 0, currency)


def budget_left(watch: Watch, now: datetime) -> Budget | None:
    """What the next sitting may spend; None if the ceiling leaves no room for it."""
    spent = spent_in_month(watch, now)
    calls = watch.ceiling_calls - spent.calls
    money = None if watch.ceiling_money is None else watch.ceiling_money - spent.money
    if calls < watch.sitting_calls or (money is not None and money <= 0):
        return None
    return Budget(calls=min(calls, SPARE * watch.sitting_calls), money=money)
