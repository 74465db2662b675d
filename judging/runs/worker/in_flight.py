"""What a run worker is busy with: each judgement that is being made and each answer that is being asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from judging.runs.worker.journal import Journal, WorkKey


class InFlight:
    """One judgement or answer, and how many of its requests are under way (endpoints.requests.Waiting)."""

    __slots__ = ("_journal", "key", "requests")

    def __init__(self, key: WorkKey, journal: Journal) -> None:
        self.key = key
        self.requests = 0
        self._journal = journal

    def request_sent(self) -> None:
        self.requests += 1
        self._journal.sent(self.key)

    def request_ended(self, *, failed: bool) -> None:
        self.requests -= 1
        if failed:
            self._journal.failed(self.key)


class WorkInFlight:
    """All that a worker is busy with for one run, with a task each."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._tasks: dict[asyncio.Task[None], InFlight] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def tasks(self) -> set[asyncio.Task[None]]:
        return set(self._tasks)

    def start(self, key: WorkKey, work: Callable[[InFlight], Coroutine[Any, Any, None]]) -> None:
        one = InFlight(key, self._journal)
        task = asyncio.create_task(work(one))
        self._tasks[task] = one
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]

    def cancel_unsent(self) -> None:
        """Abandon whatever has no request under way: the replies that are being paid for are waited for."""
        for task, one in self._tasks.items():
            if not one.requests:
                task.cancel()
