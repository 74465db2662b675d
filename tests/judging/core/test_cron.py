"""Schedules of five fields."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from judging.core.cron import BadSchedule, NeverDue, TooOften, schedule_from

SHANGHAI, BERLIN = ZoneInfo("Asia/Shanghai"), ZoneInfo("Europe/Berlin")


def following(fields, moment, zone=UTC, count=3):
    times = []
    for _ in range(count):
        moment = schedule_from(fields).next_after(moment, zone)
        times.append(moment.astimezone(zone).strftime("%m-%d %H:%M"))
    return times


@pytest.mark.parametrize(
    ("fields", "times"),
    [
        ("0 3 * * *", ["11-27 03:00", "11-28 03:00", "11-29 03:00"]),
        ("15 */6 * * *", ["11-27 00:15", "11-27 06:15", "11-27 12:15"]),
        ("30 9 * * mon-fri", ["11-27 09:30", "11-30 09:30", "12-01 09:30"]),
        ("0 8,20 1 * *", ["12-01 08:00", "12-01 20:00", "01-01 08:00"]),
        ("0 0 13 * 5", ["11-27 00:00", "12-04 00:00", "12-11 00:00"]),  # the 13th, or a Friday
        ("5 4 * jan 7", ["01-03 04:05", "01-10 04:05", "01-17 04:05"]),
        ("0 22/1 * * *", ["11-27 22:00", "11-27 23:00", "11-28 22:00"]),
    ],
)
def test_the_next_times(fields, times):
    assert following(fields, datetime(2026, 11, 26, 23, 59, tzinfo=UTC)) == times


def test_fields_are_local_times():
    due = schedule_from("0 3 * * *").next_after(datetime(2026, 11, 27, 12, tzinfo=UTC), SHANGHAI)
    assert due == datetime(2026, 11, 27, 19, tzinfo=UTC)


def test_an_hour_that_the_clock_skips_or_repeats_is_due_once():
    before = datetime(2026, 3, 28, 12, tzinfo=UTC)
    assert following("30 2 * * *", before, BERLIN, 2) == ["03-29 03:30", "03-30 02:30"]
    before = datetime(2026, 10, 24, 12, tzinfo=UTC)
    assert following("30 2 * * *", before, BERLIN, 2) == ["10-25 02:30", "10-26 02:30"]


@pytest.mark.parametrize(
    "fields",
    ["", "* * *", "0 3 * * * *", "61 3 * * *", "0 24 * * *", "0 3 0 * *", "0 3 * 13 *", "0 3 * * 8",
     "x 3 * * *", "0 3 * * fri-mon", "0 3 */0 * *", "0 3 1- * *", "²0 3 * * *"],
)  # fmt: skip
def test_what_is_no_schedule_is_refused(fields):
    with pytest.raises(BadSchedule):
        schedule_from(fields)


@pytest.mark.parametrize("fields", ["* * * * *", "*/30 3 * * *", "0,59 * * * *"])
def test_closer_than_hourly_is_refused(fields):
    with pytest.raises(TooOften):
        schedule_from(fields)


def test_a_day_that_does_not_exist_is_refused_and_a_leap_day_is_waited_for():
    with pytest.raises(NeverDue):
        schedule_from("0 3 30 2 *")
    assert following("0 3 29 2 *", datetime(2026, 1, 1, tzinfo=UTC), count=1) == ["02-29 03:00"]
