"""Schedules of five cron fields: minute, hour, day of the month, month, day of the week.

Fields take `*`, numbers, ranges, lists and steps (`*/6`, `1-5`, `1,15`), months and days also by their English names
of three letters; 7 is Sunday too. Where day of the month and day of the week are both limited, either is enough, as in
cron. These lines instead of a library: all that is needed is the next time after a moment, and the libraries at hand
guess at times that a change of the clock skips or repeats.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

MOST_DAYS = 366 * 8 + 3  # 29 February recurs within eight years
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


class BadSchedule(ValueError):
    """No schedule of five fields. The message is the field that cannot be read, or '' if their number is wrong."""


class TooOften(ValueError):
    """A schedule with two times less than an hour apart."""


class NeverDue(ValueError):
    """A schedule of a day that does not exist, such as 30 February."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When something is due. `either`: whether a day need only be one of `days` or one of `weekdays` (0: Sunday)."""

    minute: int
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool

    def is_due_on(self, day: date) -> bool:
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return day.month in self.months and (in_month or in_week if self.either else in_month and in_week)

    def next_after(self, moment: datetime, zone: tzinfo) -> datetime:
        """The first time after an aware moment, in UTC; `zone`: that of the fields.

        A time that the clock skips is due when it would have been; one that it repeats is due the first time. Raises
        NeverDue if there is none.
        """
        first = moment.astimezone(zone).date() - timedelta(days=1)
        for after in range(MOST_DAYS):
            day = first + timedelta(days=after)
            if self.is_due_on(day):
                for hour in sorted(self.hours):
                    due = datetime.combine(day, time(hour, self.minute), zone).astimezone(UTC)
                    if due > moment:
                        return due
        raise NeverDue


def schedule_from(text: str) -> Schedule:
    """Read five fields. Raises BadSchedule, or TooOften where they are due more often than hourly, which needs one
    minute, or NeverDue."""
    fields = text.split()
    if len(fields) != 5:
        raise BadSchedule("")
    minutes = _numbers(fields[0], 0, 59)
    days, months = _numbers(fields[2], 1, 31), _numbers(fields[3], 1, 12, _MONTHS, 1)
    weekdays = frozenset(day % 7 for day in _numbers(fields[4], 0, 7, _DAYS, 0))
    if len(minutes) > 1:
        raise TooOften
    either = not fields[2].startswith("*") and not fields[4].startswith("*")
    schedule = Schedule(min(minutes), _numbers(fields[1], 0, 23), days, months, weekdays, either)
    schedule.next_after(datetime(2000, 1, 1, tzinfo=UTC), UTC)
    return schedule


def _numbers(
    field: str, least: int, most: int, names: tuple[str, ...] = (), first: int = 0
) -> frozenset[int]:
    """The numbers of a field. `names`: for the numbers from `first` on."""

    def number(text: str) -> int:
        value = names.index(text.lower()) + first if text.lower() in names else None
        if value is None:
            if not (text.isascii() and text.isdigit()):
                raise BadSchedule(field)
            value = int(text)
        if not least <= value <= most:
            raise BadSchedule(field)
        return value

    numbers: set[int] = set()
    for part in field.split(","):
        span, slash, step = part.partition("/")
        low, dash, high = span.partition("-")
        begin, end = (least, most) if span == "*" else (number(low), number(high) if dash else number(low))
        if slash and not dash and span != "*":
            end = most
        if slash and not (step.isascii() and step.isdigit() and int(step)):
            raise BadSchedule(field)
        if begin > end:
            raise BadSchedule(field)
        numbers.update(range(begin, end + 1, int(step) if slash else 1))
    return frozenset(numbers)
