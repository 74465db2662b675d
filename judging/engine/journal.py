"""A journal of this process's requests in progress, so that replies lost in a crash can be counted.

A small file of fixed-size entries, written before each request and never synced: it has to survive the process
(kill -9), not the machine. Requests lost with the machine are not counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import F, OuterRef, Q, Subquery

from datasets.models import Response
from evalsite.tasks import workers
from judging.records.models import Judgement, JudgementState, Run, RunCandidate

FOLDER = "under-way"
VERSION = b"journal 2\n"  # files of earlier releases have bare ids and are not counted
_ENTRY = struct.Struct("<BBq")
_CLOCKS = 1.0  # a judgement up to this many seconds after the last entry counts as the same process's


class Work(IntEnum):
    """The purpose of a request."""

    JUDGEMENT = 1
    ANSWER = 2


class Event(IntEnum):
    SENT = 1
    FAILED = 2  # no reply to lose; any worker would have had to send the next request


class WorkKey(NamedTuple):
    """The id of a judgement, or of a response whose answer is being generated."""

    work: Work
    pk: int


class Journal:
    """Written only by the worker's event loop. Disk errors are ignored: the run matters more than the count."""

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
        """Record a request that is about to be sent."""
        self.open[key] += 1
        self._write(key, Event.SENT)

    def failed(self, key: WorkKey) -> None:
        """Record a request that ended without a reply that could be lost."""
        if self.open[key] > 1:
            self.open[key] -= 1
        else:
            self.open.pop(key, None)
        self._write(key, Event.FAILED)

    def _write(self, key: WorkKey, event: Event) -> None:
        with contextlib.suppress(OSError):
            os.write(self.file, _ENTRY.pack(key.work, event, key.pk))

    def stored(self, keys: Iterable[WorkKey]) -> None:
        """Remove entries whose replies are in the database, by rewriting the file."""
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
        """Close the journal of a worker that exits normally; replies it did not wait for are counted."""
        with contextlib.suppress(OSError):
            os.close(self.file)
        count_lost(self.path)


@dataclass(slots=True)
class InFlight:
    """A judgement or answer and the number of its requests in progress. Implements endpoints.requests.Waiting."""

    key: WorkKey
    journal: Journal
    requests: int = 0

    def request_sent(self) -> None:
        self.requests += 1
        self.journal.sent(self.key)

    def request_ended(self, *, failed: bool) -> None:
        self.requests -= 1
        if failed:
            self.journal.failed(self.key)


class WorkInFlight:
    """All judgements and answers in progress for one run of a worker, with a task each."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._tasks: dict[asyncio.Task[None], InFlight] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def tasks(self) -> set[asyncio.Task[None]]:
        return set(self._tasks)

    def start(self, key: WorkKey, work: Callable[[InFlight], Coroutine[Any, Any, None]]) -> None:
        in_flight = InFlight(key, self._journal)
        task = asyncio.create_task(work(in_flight))
        self._tasks[task] = in_flight
        task.add_done_callback(self._tasks.pop)

    def cancel_unsent(self) -> None:
        """Cancel tasks without a request in progress; replies that are already being paid for are awaited.

        A task that was just created takes its first step before: cancelled earlier, it would not run at all, and its
        chunk would be held until the worker ends.
        """
        loop = asyncio.get_running_loop()
        for task, in_flight in self._tasks.items():
            if not in_flight.requests:
                loop.call_soon(task.cancel)


def _folder() -> Path:
    return settings.DATA_DIR / FOLDER


def count_lost_of_ended() -> None:
    """Count the lost requests of processes that are gone. Call it before their chunks are released."""
    if not _folder().is_dir():
        return
    for path in _folder().iterdir():
        with contextlib.suppress(FileNotFoundError):
            changed = path.stat().st_mtime
            if path.name.startswith("."):  # for a moment only, unless its process was killed
                if time.time() - changed > workers.GONE_AFTER_SECONDS:
                    path.unlink()
            elif workers.has_ended(path.name, changed):
                count_lost(path)


def requests_of(owner: str) -> tuple[list[WorkKey], float]:
    """The work that a process had requests in progress for, by its journal, and the time of the last entry."""
    path = _folder() / owner
    try:
        return list(unfinished_requests(path.read_bytes())), path.stat().st_mtime
    except OSError:
        return [], time.time()


def count_lost(path: Path) -> None:
    """Add a journal's requests whose replies were never stored to their runs' counters, and delete the journal."""
    mine = path.with_name(f".settled-{os.getpid()}-{path.name}")
    try:
        path.rename(mine)  # only one of several processes succeeds
        content, ended = mine.read_bytes(), mine.stat().st_mtime
    except OSError:
        return
    requests = unfinished_requests(content)
    lost = Judgement.objects.filter(Q(state=JudgementState.NOT_RUN) | Q(finished_at__gt=ended + _CLOCKS))
    again: Counter[int] = Counter()
    for pk, run in lost.filter(pk__in=_ids(requests, Work.JUDGEMENT)).values_list("pk", "run_id"):
        again[run] += requests[WorkKey(Work.JUDGEMENT, pk)]
    for response, run in _unanswered(_ids(requests, Work.ANSWER)):
        again[run] += requests[WorkKey(Work.ANSWER, response)]
    for run, count in again.items():
        Run.objects.filter(pk=run).update(calls_again=F("calls_again") + count)
    mine.unlink(missing_ok=True)


def unfinished_requests(content: bytes) -> Counter[WorkKey]:
    """Count a journal's unfinished requests, by key. A partial last entry is ignored."""
    unfinished: Counter[WorkKey] = Counter()
    if not content.startswith(VERSION):
        return unfinished
    entries = content[len(VERSION) :]
    for work, event, pk in _ENTRY.iter_unpack(entries[: len(entries) - len(entries) % _ENTRY.size]):
        unfinished[WorkKey(Work(work), pk)] += 1 if event == Event.SENT else -1
    return +unfinished


def _ids(requests: Iterable[WorkKey], work: Work) -> list[int]:
    return [key.pk for key in requests if key.work == work]


def _unanswered(responses: list[int]) -> list[tuple[int, int]]:
    """(response, run) pairs of responses still without an answer, so those answered by another worker don't count."""
    candidates = RunCandidate.objects.filter(candidate=OuterRef("candidate")).values("run")[:1]
    waiting = Response.objects.filter(pk__in=responses, raw="")
    return list(waiting.annotate(run=Subquery(candidates)).values_list("pk", "run"))
