"""`?wait=SECONDS`: requests that wait until background work is done, a few at a time, leaving their turns to others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Annotated

from django.http import HttpRequest
from ninja import Query

from evalsite.web.request_limits import step_aside
from evalsite.web.threads import ThreadsBusy

LONGEST = 20  # seconds
PAUSE = 0.2
_waiting = threading.BoundedSemaphore(2)

Wait = Annotated[int, Query(ge=0, le=LONGEST, description="Seconds to wait for the result.")]


def wait_until(request: HttpRequest, done: Callable[[], bool], seconds: int) -> None:
    """Wait until it is done; not at all if too many requests wait already."""
    if not seconds or not _waiting.acquire(blocking=False):
        return
    try:
        step_aside(request)
        until = time.monotonic() + seconds
        while not done() and time.monotonic() < until:
            time.sleep(PAUSE)
    except ThreadsBusy:
        return
    finally:
        _waiting.release()
