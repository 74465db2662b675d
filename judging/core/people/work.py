"""What raters did and how long they worked at it: active time, sessions, days."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from statistics import median
from typing import Literal

BREAK_SECONDS = 300.0
SESSION_SECONDS = 1800.0
Category = Literal[
    "items", "extra", "set_aside", "gold", "training", "repeats", "skips", "changes", "undone", "imported"
]
RATED: tuple[Category, ...] = ("items", "extra", "set_aside", "gold", "training", "repeats")
"""Ratings: each is in exactly one of these."""


@dataclass(frozen=True, slots=True)
class Action:
    """A rater's action. `seconds`: active time on the item, as the page measured it. `hit`: a gold item of which all
    known answers were hit."""

    at: datetime
    seconds: float
    category: Category
    hit: bool = False


@dataclass(slots=True)
class WorkDay:
    """A rater's work on a day. `active`: seconds; `sessions`: those that began on it; `times`: active seconds of each
    ordinary rating, set aside or not."""

    day: date
    counts: Counter[Category] = field(default_factory=Counter)
    gold_hits: int = 0
    active: float = 0.0
    sessions: int = 0
    times: list[float] = field(default_factory=list)

    @property
    def rated(self) -> int:
        return sum(self.counts[category] for category in RATED)

    @property
    def ordinary(self) -> int:
        """Ratings of ordinary items that count and are not extra."""
        return self.counts["items"]

    @property
    def pace(self) -> float | None:
        """Median active seconds of an ordinary rating."""
        return median(self.times) if self.times else None


def work_by_day(actions: Iterable[Action], zone: tzinfo) -> list[WorkDay]:
    """One rater's days in a time zone, oldest first.

    The time since the action before counts as active if it is at most five minutes, so that reading in between is
    work and nothing is counted twice; a longer gap is a break, and only the seconds measured on the item count. A
    session ends after 30 minutes without an action. Imported ratings are counted and take no time.
    """
    days: dict[date, WorkDay] = {}
    before: datetime | None = None
    for action in sorted(actions, key=lambda action: action.at):
        today = action.at.astimezone(zone).date()
        day = days.setdefault(today, WorkDay(today))
        day.counts[action.category] += 1
        if action.category == "imported":
            continue
        gap = None if before is None else (action.at - before).total_seconds()
        day.active += active_between(gap, action.seconds)
        day.sessions += gap is None or gap > SESSION_SECONDS
        day.gold_hits += action.hit
        if action.category in ("items", "extra", "set_aside") and action.seconds > 0:
            day.times.append(action.seconds)
        before = action.at
    return sorted(days.values(), key=lambda day: day.day)


def active_between(gap: float | None, seconds: float) -> float:
    """Active seconds of an action, `gap` seconds after the one before (None: the first)."""
    if gap is None:
        return seconds
    return gap if gap <= BREAK_SECONDS else min(seconds, gap)


def together(days: Iterable[Sequence[WorkDay]]) -> WorkDay | None:
    """All days of all raters as one, the last day; None without any."""
    every = [day for own in days for day in own]
    if not every:
        return None
    total = WorkDay(max(day.day for day in every))
    for day in every:
        total.counts.update(day.counts)
        total.gold_hits += day.gold_hits
        total.active += day.active
        total.sessions += day.sessions
        total.times += day.times
    return total


def by_day(raters: Mapping[int, Sequence[WorkDay]]) -> dict[date, WorkDay]:
    """{day: the work of all raters}, oldest first."""
    days = sorted({day.day for own in raters.values() for day in own})
    merged = {
        today: together([[day for day in own if day.day == today] for own in raters.values()])
        for today in days
    }
    return {today: day for today, day in merged.items() if day is not None}
