"""Which calls are under way in this process: so that those whose replies died with it are counted.

A small file of ids, eight bytes each: of judgements, and negative ones of responses whose answers are asked for;
written before a judge is called and never synced: it must survive
the process (kill -9), not the machine. Calls that a lost machine had under way are not known. A call that failed is
written once more, OVER further from 0: the call after it would have been made by any worker.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from django.conf import settings
from django.db.models import F, OuterRef, Q, Subquery

from datasets.models import Response
from evalsite.tasks import workers
from judging.runs.models import Judgement, JudgementState, Run, RunCandidate

FOLDER = "under-way"
_ID = struct.Struct("<q")
OVER = 2**62
_CLOCKS = 1.0  # seconds that a judgement's time may lie after the last entry and still be of the same process


class Journal:
    """Written by the pump's loop alone. What the disk refuses is left out: the count matters less than the run."""

    def __init__(self, owner: str) -> None:
        self.path = _folder() / owner
        self.open: Counter[int] = Counter()
        self.file = -1
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(exist_ok=True, mode=settings.DATA_FOLDER_MODE)
            self.file = os.open(
                self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC, settings.DATA_FILE_MODE
            )

    def asking(self, judgement: int) -> None:
        """A call is about to be made."""
        self.open[judgement] += 1
        self._note(judgement)

    def failed(self, judgement: int) -> None:
        """One of its calls has ended, without a reply that could be lost."""
        if self.open[judgement] > 1:
            self.open[judgement] -= 1
        else:
            self.open.pop(judgement, None)
        self._note(judgement + OVER if judgement > 0 else judgement - OVER)

    def _note(self, number: int) -> None:
        with contextlib.suppress(OSError):
            os.write(self.file, _ID.pack(number))

    def stored(self, judgements: Iterable[int]) -> None:
        """Their replies are in the database."""
        before = len(self.open)
        for judgement in judgements:
            self.open.pop(judgement, None)
        if len(self.open) == before:
            return
        draft = self.path.with_name(f".{self.path.name}")
        with contextlib.suppress(OSError):
            draft.write_bytes(b"".join(map(_ID.pack, self.open.elements())))
            file = os.open(draft, os.O_WRONLY | os.O_APPEND)
            draft.rename(self.path)
            os.close(self.file)
            self.file = file

    def close(self) -> None:
        """At the end of a pump that had time to wait for its replies; what it did not wait for is counted."""
        with contextlib.suppress(OSError):
            os.close(self.file)
        settle(self.path)


def _folder() -> Path:
    return Path(settings.DATA_DIR) / FOLDER


def settle_dead() -> None:
    """Count what dead processes had under way. Call it before their judgements are given to others."""
    if not _folder().is_dir():
        return
    for path in _folder().iterdir():
        if not path.name.startswith(".") and not workers.is_alive(path.name):
            settle(path)


def settle(path: Path) -> None:
    """Add the calls of a journal whose replies were never stored by its process to their runs, and remove it."""
    mine = path.with_name(f".settled-{os.getpid()}-{path.name}")
    try:
        path.rename(mine)  # of two who settle, one gets it
        told, ended = mine.read_bytes(), mine.stat().st_mtime
    except OSError:
        return
    whole = len(told) - len(told) % _ID.size
    calls = _under_way(number for (number,) in _ID.iter_unpack(told[:whole]))
    lost = Judgement.objects.filter(Q(state=JudgementState.NOT_RUN) | Q(finished_at__gt=ended + _CLOCKS))
    again: Counter[int] = Counter()
    for pk, run in lost.filter(pk__in=list(calls)).values_list("pk", "run_id"):
        again[run] += calls[pk]
    for response, run in _unanswered(-pk for pk in calls if pk < 0):
        again[run] += calls[-response]
    for run, count in again.items():
        Run.objects.filter(pk=run).update(calls_again=F("calls_again") + count)
    mine.unlink(missing_ok=True)


def _under_way(noted: Iterable[int]) -> Counter[int]:
    """How many calls had not ended, by judgement or negative response."""
    found: Counter[int] = Counter()
    for number in noted:
        if abs(number) < OVER:
            found[number] += 1
        else:
            found[number - OVER if number > 0 else number + OVER] -= 1
    return +found


def _unanswered(responses: Iterable[int]) -> list[tuple[int, int]]:
    """(response, run) of those that have no answer still. One that another worker asked for since is not counted."""
    candidates = RunCandidate.objects.filter(candidate=OuterRef("candidate")).values("run")[:1]
    waiting = Response.objects.filter(pk__in=list(responses), raw="")
    return list(waiting.annotate(run=Subquery(candidates)).values_list("pk", "run"))
