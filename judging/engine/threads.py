"""Work outside the event loop: a thread runner for database work, and batching of calls from many coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from django.db import DatabaseError, close_old_connections

from judging.endpoints.gate import RunInThread

Result = TypeVar("Result")


def in_thread(threads: ThreadPoolExecutor) -> RunInThread:
    """Return a function that runs work in one of the threads; each thread keeps its database connection."""

    async def run(work: Callable[..., Result], *arguments: Any) -> Result:
        return await asyncio.get_running_loop().run_in_executor(threads, _reconnecting, work, *arguments)

    return run


def _reconnecting(work: Callable[..., Result], *arguments: Any) -> Result:
    """Call `work`. After a DatabaseError, close broken connections so that the next call opens a new one."""
    try:
        return work(*arguments)
    except DatabaseError:
        close_old_connections()
        raise


Question = TypeVar("Question")
Answer = TypeVar("Answer")


MOST_IN_BATCH = 200


class Batcher(Generic[Question, Answer]):
    """Collects calls while a batch is in progress and processes them as the next batch, in order.

    `work` runs in a thread and returns one answer per question. If it raises, every caller in the batch gets the
    exception.
    """

    def __init__(self, run: RunInThread, work: Callable[[list[Question]], list[Answer]]) -> None:
        self._run = run
        self._work = work
        self._waiting: list[tuple[Question, asyncio.Future[Answer]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def __call__(self, question: Question) -> Answer:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._drain())
        return await future

    async def _drain(self) -> None:
        await asyncio.sleep(0)  # let all coroutines started together enqueue first
        while self._waiting:
            batch, self._waiting = self._waiting[:MOST_IN_BATCH], self._waiting[MOST_IN_BATCH:]
            try:
                answers = await self._run(self._work, [question for question, _ in batch])
            except Exception as error:  # raised again where the answers are awaited
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), answer in zip(batch, answers, strict=True):
                if not future.done():  # not cancelled in the meantime
                    future.set_result(answer)
