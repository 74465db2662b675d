"""`?wait=SECONDS`: a request that waits until background work is done, a few at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Annotated

from ninja import Query

LONGEST = 20  # seconds
PAUSE = 0.2
_waiting = threading.BoundedSemaphore(2)  # each holds a thread of the web server

Wait = Annotated[int, Query(ge=0, le=LONGEST, description="Seconds to wait for the result.")]


def wait_until(done: Callable[[], bool], seconds: int) -> None:
    """Wait until it is done; not at all if other requests wait already."""
    if not seconds or not _waiting.acquire(blocking=False):
        return
    try:
        until = time.monotonic() + seconds
        while not done() and time.monotonic() < until:
            time.sleep(PAUSE)
    finally:
        _waiting.release()
