"""A study over days: ratings by day, what is missing, and the end at the measured pace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Case, Count, F, IntegerField, Max, Min, Q, Value, When
from django.utils import timezone

from evalsite import clock
from evalsite.rounding import rounded
from judging.core.people.forecast import WINDOW, Pace, behind, forecast_end, pace_begun
from judging.people.attention import FILLS_PLACE
from judging.people.models import Assignment, Evaluation, Item

MOST_DAYS = 30


@dataclass(frozen=True, slots=True)
class DayCount:
    """Ratings in force of a day in the site's time zone, each in one of these. `extra`: beyond those needed."""

    day: date
    items: int
    extra: int
    gold: int
    repeats: int

    @property
    def rated(self) -> int:
        return self.items + self.extra + self.gold + self.repeats


@dataclass(frozen=True, slots=True)
class Timeline:
    """`days`: newest first, of the last MOST_DAYS; `missing`: [(ratings, number of items that lack so many)]; `a_day`:
    ratings in 24 hours over the last seven days; `end`: when the rest will be done at that pace, None if it can't be
    said; `late`: after the evaluation closes by itself."""

    days: list[DayCount]
    missing: list[tuple[int, int]]
    a_day: float | None
    end: datetime | None
    late: bool

    @property
    def pace(self) -> Decimal | None:
        """`a_day` as it is said: in whole ratings, under ten with a decimal."""
        return None if self.a_day is None else rounded(self.a_day, 0 if self.a_day >= 10 else 1)


def timeline_of(evaluation: Evaluation) -> Timeline:
    """Ratings that are set aside are left out."""
    missing = missing_of(evaluation)
    left = sum(ratings * items for ratings, items in missing)
    now = clock.now()
    days, pace = _days_and_pace(evaluation, now)
    end = forecast_end(left, pace, now) if left else None
    a_day = pace.a_day(now) if pace is not None and pace.ratings else None
    return Timeline(days, missing, a_day, end, behind(end, evaluation.ends_at))


def _days_and_pace(evaluation: Evaluation, now: datetime) -> tuple[list[DayCount], Pace | None]:
    """Ratings by day, newest first, and the pace: one pass over the ratings, two if the last was given long ago."""
    days = _days_until(now)
    rows = _counts_by_day(evaluation, days, now)
    if rows and rows[0]["day_place"] == len(days):
        days = _days_until(rows[0]["last"])
        rows = _counts_by_day(evaluation, days, now)
    begun = [row["first"] for row in rows if row["first"] is not None]
    pace = Pace(sum(row["recent"] for row in rows), pace_begun(min(begun), now)) if begun else None
    shown = [row for row in rows if row["day_place"] < min(rows[0]["day_place"] + MOST_DAYS, len(days))]
    counts = [
        DayCount(days[row["day_place"]], row["in_places"], row["beyond"], row["gold"], row["repeats"])
        for row in shown
    ]
    return counts, pace


def _days_until(last: datetime) -> list[date]:
    """Days of the site up to that of `last`, newest first: twice as many as are listed, for a study that rests."""
    newest = timezone.localdate(last, timezone.get_default_timezone())
    return [newest - timedelta(days=ago) for ago in range(2 * MOST_DAYS)]


def _counts_by_day(evaluation: Evaluation, days: Sequence[date], now: datetime) -> list[dict[str, Any]]:
    """Counts of each day with ratings, by its place in `days`; those before them all are in one row, the last. The
    database only compares times with the days' beginnings: to truncate each to its day takes SQLite ten times as
    long."""
    zone = timezone.get_default_timezone()
    begins = [datetime.combine(day, time(), zone) for day in days]
    whens = [When(rated_at__gte=begin, then=Value(place)) for place, begin in enumerate(begins)]
    ordinary = Q(item__gold="", item__repeat_of=None)
    rated = Assignment.objects.counted().filter(evaluation=evaluation, rated_at__isnull=False, entry=None)
    rows = (
        rated.annotate(day_place=Case(*whens, default=Value(len(days)), output_field=IntegerField()))
        .order_by("day_place")
        .values("day_place")
        .annotate(
            in_places=Count("pk", filter=ordinary & Q(extra=False)),
            beyond=Count("pk", filter=ordinary & Q(extra=True)),
            gold=Count("pk", filter=~Q(item__gold="")),
            repeats=Count("pk", filter=Q(item__repeat_of__isnull=False)),
            recent=Count("pk", filter=FILLS_PLACE & Q(rated_at__gte=now - WINDOW)),
            first=Min("rated_at", filter=FILLS_PLACE),
            last=Max("rated_at"),
        )
    )
    return [dict(row) for row in rows]


def missing_of(evaluation: Evaluation) -> list[tuple[int, int]]:
    """[(ratings, number of items that lack so many)], fewest first; items that are complete are left out."""
    items = Item.objects.filter(evaluation=evaluation, needed__gt=0, rated__lt=F("needed"))
    counts = items.order_by().values("needed", "rated").annotate(count=Count("pk"))
    missing: Counter[int] = Counter()
    for row in counts:
        missing[row["needed"] - row["rated"]] += row["count"]
    return sorted(missing.items())
