"""A study over days: ratings by day, what is missing, and the end at the measured pace."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal

from django.db.models import Case, Count, F, IntegerField, Max, Q, Value, When
from django.utils import timezone

from evalsite import clock
from evalsite.rounding import rounded
from judging.core.people.forecast import behind, forecast_end
from judging.people.attention import paces_of
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
    """Four queries. Ratings that are set aside are left out."""
    missing = missing_of(evaluation)
    left = sum(ratings * items for ratings, items in missing)
    pace, now = paces_of([evaluation.pk]).get(evaluation.pk), clock.now()
    end = forecast_end(left, pace, now) if left else None
    a_day = pace.a_day(now) if pace is not None and pace.ratings else None
    return Timeline(days_of(evaluation), missing, a_day, end, behind(end, evaluation.ends_at))


def days_of(evaluation: Evaluation) -> list[DayCount]:
    """Ratings by day, newest first. The database only compares times with the days' beginnings: to truncate each to its
    day takes SQLite ten times as long."""
    rated = Assignment.objects.counted().filter(evaluation=evaluation, rated_at__isnull=False, entry=None)
    last = rated.aggregate(last=Max("rated_at"))["last"]
    if last is None:
        return []
    newest, zone = timezone.localdate(last, timezone.get_default_timezone()), timezone.get_default_timezone()
    days = [newest - timedelta(days=ago) for ago in range(MOST_DAYS)]
    begins = [datetime.combine(day, time(), zone) for day in days]
    whens = [When(rated_at__gte=begin, then=Value(place)) for place, begin in enumerate(begins)]
    ordinary = Q(item__gold="", item__repeat_of=None)
    counts = (
        rated.filter(rated_at__gte=begins[-1])
        .annotate(day_place=Case(*whens, output_field=IntegerField()))
        .order_by("day_place")
        .values("day_place")
        .annotate(
            rated_items=Count("pk", filter=ordinary & Q(extra=False)),
            extra_ratings=Count("pk", filter=ordinary & Q(extra=True)),
            gold=Count("pk", filter=~Q(item__gold="")),
            repeats=Count("pk", filter=Q(item__repeat_of__isnull=False)),
        )
    )
    return [
        DayCount(
            days[row["day_place"]], row["rated_items"], row["extra_ratings"], row["gold"], row["repeats"]
        )
        for row in counts
    ]


def missing_of(evaluation: Evaluation) -> list[tuple[int, int]]:
    """[(ratings, number of items that lack so many)], fewest first; items that are complete are left out."""
    items = Item.objects.filter(evaluation=evaluation, needed__gt=0, rated__lt=F("needed"))
    counts = items.order_by().values("needed", "rated").annotate(count=Count("pk"))
    missing: Counter[int] = Counter()
    for row in counts:
        missing[row["needed"] - row["rated"]] += row["count"]
    return sorted(missing.items())
