"""The requests in progress in this process, so that those whose replies are lost with it are counted.

A small file of fixed-size entries, written before each request and never synced: it must survive the process
(kill -9), not the machine. Requests of a machine that is lost are not counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import F, OuterRef, Q, Subquery

from datasets.models import Response
from evalsite.tasks import workers
from judging.runs.models import Judgement, JudgementState, Run, RunCandidate

FOLDER = "under-way"
VERSION = b"journal 2\n"  # the released versions wrote bare ids: what they left is not counted
_ENTRY = struct.Struct("<BBq")
_CLOCKS = 1.0  # seconds that a judgement's time may lie after the last entry and still be of the same process


class Work(IntEnum):
    """What a request is sent for."""

    JUDGEMENT = 1
    ANSWER = 2


class Event(IntEnum):
    SENT = 1
    FAILED = 2  # without a reply that could be lost; the request after it would have been made by any worker


class WorkKey(NamedTuple):
    """A judgement, or a response whose answer is asked for, by its id."""

    work: Work
    pk: int


class Journal:
    """Written only by the worker's loop. Disk errors are ignored: the run is more important than the count."""

    def __init__(self, owner: str) -> None:
        self.path = _folder() / owner
        self.open: Counter[WorkKey] = Counter()
        self.file = -1
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(exist_ok=True, mode=settings.DATA_FOLDER_MODE)
            self.file = os.open(
                self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC, settings.DATA_FILE_MODE
            )
            os.write(self.file, VERSION)

    def sent(self, key: WorkKey) -> None:
        """A request is about to be sent."""
        self.open[key] += 1
        self._write(key, Event.SENT)

    def failed(self, key: WorkKey) -> None:
        """One of its requests has ended, without a reply that could be lost."""
        if self.open[key] > 1:
            self.open[key] -= 1
        else:
            self.open.pop(key, None)
        self._write(key, Event.FAILED)

    def _write(self, key: WorkKey, event: Event) -> None:
        with contextlib.suppress(OSError):
            os.write(self.file, _ENTRY.pack(key.work, event, key.pk))

    def stored(self, keys: Iterable[WorkKey]) -> None:
        """Their replies are in the database: the file is rewritten, with what is left."""
        before = len(self.open)
        for key in keys:
            self.open.pop(key, None)
        if len(self.open) == before:
            return
        draft = self.path.with_name(f".{self.path.name}")
        entries = (_ENTRY.pack(key.work, Event.SENT, key.pk) for key in self.open.elements())
        with contextlib.suppress(OSError):
            draft.write_bytes(VERSION + b"".join(entries))
            file = os.open(draft, os.O_WRONLY | os.O_APPEND)
            draft.rename(self.path)
            os.close(self.file)
            self.file = file

    def close(self) -> None:
        """At the end of a worker that had time to wait for its replies; what it did not wait for is counted."""
        with contextlib.suppress(OSError):
            os.close(self.file)
        settle(self.path)


class InFlight:
    """One judgement or answer, and how many of its requests are in progress (endpoints.requests.Waiting)."""

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
        """Abandon whatever has no request in progress: the replies that are being paid for are waited for."""
        for task, one in self._tasks.items():
            if not one.requests:
                task.cancel()


def _folder() -> Path:
    return Path(settings.DATA_DIR) / FOLDER


def settle_dead() -> None:
    """Count the requests of dead processes. Call it before their judgements are given to others."""
    if not _folder().is_dir():
        return
    for path in _folder().iterdir():
        if not path.name.startswith(".") and not workers.is_alive(path.name):
            settle(path)


def settle(path: Path) -> None:
    """Add the requests of a journal whose replies were never stored by its process to their runs, and remove it."""
    mine = path.with_name(f".settled-{os.getpid()}-{path.name}")
    try:
        path.rename(mine)  # of two who settle, one gets it
        content, ended = mine.read_bytes(), mine.stat().st_mtime
    except OSError:
        return
    requests = under_way(content)
    lost = Judgement.objects.filter(Q(state=JudgementState.NOT_RUN) | Q(finished_at__gt=ended + _CLOCKS))
    again: Counter[int] = Counter()
    for pk, run in lost.filter(pk__in=_ids(requests, Work.JUDGEMENT)).values_list("pk", "run_id"):
        again[run] += requests[WorkKey(Work.JUDGEMENT, pk)]
    for response, run in _unanswered(_ids(requests, Work.ANSWER)):
        again[run] += requests[WorkKey(Work.ANSWER, response)]
    for run, count in again.items():
        Run.objects.filter(pk=run).update(calls_again=F("calls_again") + count)
    mine.unlink(missing_ok=True)


def under_way(content: bytes) -> Counter[WorkKey]:
    """How many requests of a journal had not ended. The process may have died within the last entry."""
    found: Counter[WorkKey] = Counter()
    if not content.startswith(VERSION):
        return found
    entries = content[len(VERSION) :]
    for work, event, pk in _ENTRY.iter_unpack(entries[: len(entries) - len(entries) % _ENTRY.size]):
        found[WorkKey(Work(work), pk)] += 1 if event == Event.SENT else -1
    return +found


def _ids(requests: Iterable[WorkKey], work: Work) -> list[int]:
    return [key.pk for key in requests if key.work == work]


def _unanswered(responses: list[int]) -> list[tuple[int, int]]:
    """(response, run) of those that have no answer still. One that another worker asked for since is not counted."""
    candidates = RunCandidate.objects.filter(candidate=OuterRef("candidate")).values("run")[:1]
    waiting = Response.objects.filter(pk__in=responses, raw="")
    return list(waiting.annotate(run=Subquery(candidates)).values_list("pk", "run"))
