"""The states of a study: draft → open → paused ↔ open → closed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

StudyState = Literal["draft", "open", "paused", "closed"]


@dataclass(frozen=True, slots=True)
class Course:
    """What was done by hand, and the two dates at which a study opens and closes by itself."""

    draft: bool = False
    paused: bool = False
    closed: bool = False
    starts_at: datetime | None = None
    ends_at: datetime | None = None


def state_at(course: Course, now: datetime) -> StudyState:
    """The state at a moment. A draft opens at its start, if it has one; a study that was opened closes at its end."""
    begun = not course.draft or (course.starts_at is not None and course.starts_at <= now)
    if course.closed or (begun and course.ends_at is not None and course.ends_at <= now):
        return "closed"
    if not begun:
        return "draft"
    return "paused" if course.paused else "open"
