"""Chunks of a run's judgements: leased by a worker, loaded, given back; and when a run has none left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from django.db import connection, transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from datasets.core.formats import Format
from datasets.core.variables import data_for, reference_data, response_data, row_data
from judging.core.metric_definition import MetricDefinition
from judging.core.results import Item, JudgementResult, PreviousReplies
from judging.core.rules.values import exact_json
from judging.runs.models import Chunk, Judgement, JudgementState, Reading, Run, RunMetric, RunState
from judging.runs.stopping import run_stopped
from judging.runs.stored_replies import previous_replies
from judging.runs.worker.generation_store import Generated, Unanswered

LEASE_SECONDS = 30.0
_MAY_FINISH = (RunState.RUNNING, RunState.PAUSED, RunState.CANCELLED)

_LEASE = """
UPDATE judging_chunk SET owner = %s, lease_until = %s, leases = leases + 1
 WHERE id = (SELECT id FROM judging_chunk WHERE run_id = %s AND NOT done AND owner = ''
             ORDER BY first LIMIT 1 {lock}) AND owner = '' AND NOT done
RETURNING id, first, last
"""
_ITEMS = """
SELECT j.id, j.run_metric_id, j.reading_id, j.asked_by_id, j.candidate_id, j.response_id, a.number, j.row_id,
       r.raw, a.raw
  FROM judging_judgement j JOIN datasets_row r ON r.id = j.row_id JOIN datasets_response a ON a.id = j.response_id
 WHERE j.run_id = %s AND j.position BETWEEN %s AND %s AND j.state = 'not_run'
 ORDER BY j.position
"""


@dataclass(frozen=True, slots=True)
class Leased:
    """A chunk that this process holds."""

    chunk: int
    run: int
    first: int
    last: int


MetricKey = tuple[int, int | None]  # ids of a run's metric and of a later reading, if it is one
# A row's numbers as Python has them, as they are written (rule programs compare those), or each where it is wanted.
Seen = Literal["plain", "exact", "both"]


class ToJudge(msgspec.Struct, frozen=True):
    """One judgement to make."""

    judgement: int
    run: int
    chunk: int
    metric: MetricKey
    item: Item
    previous: PreviousReplies | None = None  # replies to be read again: no one is asked
    asks: Unanswered | None = None  # what is to be answered first; `item` has no answer yet
    generated: Generated | None = None  # the try that gave the answer, if this process made it


class Judged(msgspec.Struct, frozen=True):
    """One judgement made."""

    of: ToJudge
    result: JudgementResult


def lease(run_id: int, owner: str) -> Leased | None:
    """Take the first free chunk of a run, or None."""
    lock = "FOR UPDATE SKIP LOCKED" if connection.vendor == "postgresql" else ""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LEASE.format(lock=lock), [owner, time.time() + LEASE_SECONDS, run_id])
        row = cursor.fetchone()
    return Leased(row[0], run_id, row[1], row[2]) if row else None


def renew(chunks: Iterable[int], owner: str) -> None:
    """Put the end of the leases off again, and take back what no one holds.

    While the database is unavailable no one can renew: who then looks for the dead first takes the living for dead.
    """
    mine = Chunk.objects.filter(pk__in=list(chunks), owner__in=(owner, ""), done=False)
    mine.update(owner=owner, lease_until=time.time() + LEASE_SECONDS)


def release(chunks: Iterable[int], owner: str) -> None:
    """Give chunks back that were not finished."""
    Chunk.objects.filter(pk__in=list(chunks), owner=owner, done=False).update(owner="", lease_until=0)


def load(
    leased: Leased,
    form: Format,
    seen: Callable[[MetricKey], Seen] = lambda _key: "plain",
) -> list[ToJudge]:
    """What is still to be judged of a chunk. `seen`: as what a metric wants to see numbers."""
    with connection.cursor() as cursor:
        cursor.execute(_ITEMS, [leased.run, leased.first, leased.last])
        found = cursor.fetchall()
    rows = RowReader(form)
    earlier = previous_replies([asked_by for _, _, _, asked_by, *_ in found if asked_by])
    return [
        ToJudge(
            judgement,
            leased.run,
            leased.chunk,
            (metric, reading),
            rows.item(row_id, raw, answer, seen((metric, reading))),
            earlier.get(asked_by),
            None if answer else Unanswered(response, candidate, number),
        )
        for judgement, metric, reading, asked_by, candidate, response, number, row_id, raw, answer in found
    ]


class RowReader:
    """Rows as judgements see them, each decoded once in each way, however many answers it has."""

    def __init__(self, form: Format) -> None:
        self._form = form
        self._plain: dict[int, dict[str, Any]] = {}
        self._exact: dict[int, dict[str, Any]] = {}

    def item(self, row: int, raw: str, answer: str, seen: Seen) -> Item:
        response = response_data(answer)
        if seen == "plain":
            return Item(data_for(self._data(row, raw), response), response)
        if row not in self._exact:
            self._exact[row] = reference_data(raw, self._form, exact_json)
        exact = self._exact[row]
        if seen == "exact" and answer:  # without an answer, the row is sent to a candidate
            return Item(exact, response, exact)
        return Item(data_for(self._data(row, raw), response), response, exact)

    def _data(self, row: int, raw: str) -> dict[str, Any]:
        if row not in self._plain:
            self._plain[row] = row_data(raw, self._form)
        return self._plain[row]


def definition(key: MetricKey) -> MetricDefinition:
    """What judgements with this key are judged and read by."""
    run_metric, reading = key
    found = Reading.objects.get(pk=reading) if reading else RunMetric.objects.get(pk=run_metric)
    return MetricDefinition.from_json(found.definition)


def asks_further(run: Run) -> bool:
    """Whether someone will be asked for what is left of a running run; what is read again asks no one. A chunk's
    judgements are all of one sort."""
    asking = Judgement.objects.filter(run=run, position=OuterRef("first"), asked_by=None)
    return Chunk.objects.filter(Exists(asking), run=run, done=False).exists()


def finish_if_done(run_id: int) -> bool:
    """A run without an open chunk is finished, though it was stopped while its last replies were in progress; one that
    was running and of which a part is set aside is cancelled."""
    open_chunks = Chunk.objects.filter(run=run_id, done=False)
    if open_chunks.exists():
        return False
    # Looked at again in the statement that ends it: meanwhile someone may have made it continue with more chunks.
    going = Run.objects.filter(~Exists(open_chunks), pk=run_id)
    if _set_aside(run_id):
        going, state = going.filter(state=RunState.RUNNING), RunState.CANCELLED
    else:
        going, state = going.filter(state__in=_MAY_FINISH), RunState.FINISHED
    if not going.update(state=state, finished_at=timezone.now(), problem="", problem_detail=""):
        return False
    run_stopped(run_id)
    return True


def _set_aside(run_id: int) -> bool:
    """Whether something was not judged. The counters nearly always say no; where they do not, the judgements tell."""
    run = Run.objects.get(pk=run_id)
    return bool(run.not_run) and run.judgements.filter(current=True, state=JudgementState.NOT_RUN).exists()


def work_waits() -> bool:
    """Is there a run to plan, or a chunk that no one holds?"""
    free = Chunk.objects.filter(run=OuterRef("pk"), done=False, owner="")
    for_anyone = Run.objects.by_workers().filter(only_worker="")
    running = for_anyone.filter(state=RunState.RUNNING).filter(Exists(free))
    return running.exists() or for_anyone.to_plan().exists()
