"""The state of a study at a moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from judging.core.people.study import Course, StudyState, state_at

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
BEFORE, AFTER = NOW - timedelta(minutes=1), NOW + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("course", "state"),
    [
        (Course(), "open"),
        (Course(draft=True), "draft"),
        (Course(draft=True, starts_at=AFTER), "draft"),
        (Course(draft=True, starts_at=NOW), "open"),
        (Course(draft=True, starts_at=BEFORE, ends_at=NOW), "closed"),
        (Course(draft=True, ends_at=BEFORE), "draft"),
        (Course(draft=True, closed=True), "closed"),
        (Course(paused=True), "paused"),
        (Course(paused=True, ends_at=BEFORE), "closed"),
        (Course(ends_at=AFTER), "open"),
        (Course(ends_at=NOW), "closed"),
        (Course(closed=True, ends_at=AFTER), "closed"),
    ],
)
def test_the_state_goes_by_what_was_done_and_by_the_dates(course: Course, state: StudyState) -> None:
    assert state_at(course, NOW) == state
