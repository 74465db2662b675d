"""The current time for what goes by dates and leases of human evaluations. Tests and simulations can move it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.utils import timezone

_ahead = timedelta()


def now() -> datetime:
    """The current time, aware."""
    return timezone.now() + _ahead


@contextmanager
def moved_to(moment: datetime) -> Iterator[None]:
    """Let `now` go on from `moment` in this process, until the block ends. Blocks can be nested."""
    global _ahead
    before = _ahead
    _ahead = moment - timezone.now()
    try:
        yield
    finally:
        _ahead = before
