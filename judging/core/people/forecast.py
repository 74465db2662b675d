"""When a study will be done, at the pace measured so far."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

WINDOW = timedelta(days=7)
LEAST = timedelta(hours=1)
"""A pace measured over less time says nothing about days."""


@dataclass(frozen=True, slots=True)
class Pace:
    """`ratings` since `begun`: the first rating of the study, or seven days ago if that is later."""

    ratings: int
    begun: datetime

    def a_day(self, now: datetime) -> float:
        """Ratings in 24 hours, nights and weekends in it."""
        return self.ratings * timedelta(days=1) / max(now - self.begun, LEAST)


def pace_begun(first: datetime, now: datetime) -> datetime:
    """Since when the pace is measured; `first`: the time of the study's first rating."""
    return max(first, now - WINDOW)


def forecast_end(left: int, pace: Pace | None, now: datetime) -> datetime | None:
    """The time at which `left` ratings will have been given at this pace; None without a rating in the window."""
    if pace is None or not pace.ratings:
        return None
    days = left / pace.a_day(now)
    return now + timedelta(days=days) if days < 3650 else None


def behind(end: datetime | None, due: datetime | None) -> bool:
    """Whether it will end after the date at which it closes by itself."""
    return end is not None and due is not None and end > due
