"""Chunks of a run's judgements: leasing, loading and releasing them, and finishing runs without open chunks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from datasets.core.formats import Format
from datasets.core.variables import data_for, reference_data, response_data, row_data
from evalsite.webhooks.kinds import Event
from judging.core.metric_definition import MetricDefinition
from judging.core.results import JudgedItem, JudgementResult, PreviousReplies
from judging.core.rules.values import exact_json
from judging.engine.generation_store import Generated, Unanswered
from judging.engine.stopping import run_stopped
from judging.records.models import (
    SET_ASIDE,
    BatchState,
    Chunk,
    Judgement,
    JudgementState,
    Reading,
    RequestBatch,
    Run,
    RunMetric,
    RunQuerySet,
    RunState,
)
from judging.records.run_events import emit_run
from judging.records.stored_replies import previous_replies, results_before

LEASE_SECONDS = 30.0
_MAY_FINISH = (RunState.RUNNING, RunState.PAUSED, RunState.CANCELLED)

PARKED = "batches"
"""The owner of chunks whose requests wait for the replies of a batch."""
FAR = 1e12  # Unix seconds
_LEASE = """
UPDATE judging_chunk SET owner = %s, lease_until = %s, leases = leases + 1
 WHERE id = (SELECT id FROM judging_chunk WHERE run_id = %s AND NOT done AND owner = ''
             ORDER BY first LIMIT 1 {lock}) AND owner = '' AND NOT done
RETURNING id, first, last
"""
# Locked chunks are passed over at first; a free one that is only locked at the moment must not count as taken.
_LOCKS = ("FOR UPDATE SKIP LOCKED", "FOR UPDATE")
_ANSWER = ("candidate", "number", "raw")
_ITEM = (
    *("pk", "run_metric", "reading", "replies_from", "row", "row__raw", "shown_first"),
    *("response", *(f"response__{name}" for name in _ANSWER)),
    *("other_response", *(f"other_response__{name}" for name in _ANSWER)),
)


@dataclass(frozen=True, slots=True)
class Leased:
    """A chunk that this process holds."""

    chunk: int
    run: int
    first: int
    last: int


MetricKey = tuple[int, int | None]  # ids of a run metric and of the reading, if the replies are re-parsed
# Numbers of a row as Python values, exactly as written (which rule programs compare), or both.
NumberFormat = Literal["plain", "exact", "both"]


class ToJudge(msgspec.Struct, frozen=True):
    """A judgement to make."""

    judgement: int
    run: int
    chunk: int
    metric: MetricKey
    item: JudgedItem
    previous: PreviousReplies | None = None  # stored replies to re-parse instead of sending requests
    asks: tuple[Unanswered, ...] = ()  # the answers to generate first; `item` lacks them yet
    generated: tuple[Generated, ...] = ()  # the attempts that produced them, if made by this process


class Judged(msgspec.Struct, frozen=True):
    """A finished judgement."""

    of: ToJudge
    result: JudgementResult


def lease(run_id: int, owner: str) -> Leased | None:
    """Lease the first free chunk of a run; None if there is none."""
    for lock in _LOCKS if connection.vendor == "postgresql" else ("",):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_LEASE.format(lock=lock), [owner, time.time() + LEASE_SECONDS, run_id])
            if row := cursor.fetchone():
                return Leased(row[0], run_id, row[1], row[2])
    return None


def renew(chunks: Iterable[int], owner: str) -> None:
    """Extend the leases of these chunks, and take back those that are free again.

    No worker can renew while the database is unavailable, so afterwards the leases of live workers may be freed as if
    they were dead.
    """
    mine = Chunk.objects.filter(pk__in=list(chunks), owner__in=(owner, ""), done=False)
    mine.update(owner=owner, lease_until=time.time() + LEASE_SECONDS)


def release(chunks: Iterable[int], owner: str) -> set[int]:
    """Release unfinished chunks; those of runs that send batches are parked until replies came. Returns such runs."""
    mine = Chunk.objects.filter(pk__in=list(chunks), owner=owner, done=False)
    batched = mine.filter(run__batched=True)
    runs = set(batched.values_list("run", flat=True))
    batched.update(owner=PARKED, lease_until=FAR)
    mine.update(owner="", lease_until=0)
    return runs


def park_free(run: int) -> None:
    """Park the free chunks of a run that sends batches, so that no worker leases them until it goes on."""
    free = Chunk.objects.filter(run=run, run__batched=True, owner="", done=False)
    free.update(owner=PARKED, lease_until=FAR)


def unpark(run: int) -> int:
    """Free the chunks of a run that were parked. Returns how many."""
    return Chunk.objects.filter(run=run, owner=PARKED, done=False).update(owner="", lease_until=0)


def load(
    leased: Leased,
    form: Format,
    numbers: Callable[[MetricKey], NumberFormat] = lambda _key: "plain",
    may_ask_again: Callable[[MetricKey], bool] = lambda _key: False,
) -> list[ToJudge]:
    """Load the unjudged items of a chunk. `numbers` returns the number format that a metric needs; `may_ask_again`,
    whether the scripts before its judges are others than those that its stored replies are based on."""
    unjudged = Judgement.objects.filter(
        run=leased.run, position__range=(leased.first, leased.last), state=JudgementState.NOT_RUN
    )
    items = list(unjudged.order_by("position").values_list(*_ITEM))
    rows = RowReader(form)
    earlier = previous_replies([replies_from for _, _, _, replies_from, *_ in items if replies_from])
    left = results_before(
        [pk for pk, metric, reading, replies, *_ in items if replies and may_ask_again((metric, reading))]
    )
    loaded = []
    for judgement, metric, reading, replies_from, row, raw, shown_first, *answers in items:
        response, candidate, number, answer, other, other_candidate, other_number, other_answer = answers
        item = rows.item(row, raw, answer, numbers((metric, reading)))
        asks = [] if answer else [Unanswered(response, candidate, number)]
        if other is not None:
            item = replace(item, other=response_data(other_answer), other_first=shown_first == 2)
            asks += [] if other_answer else [Unanswered(other, other_candidate, other_number, is_other=True)]
        key, previous = (metric, reading), earlier.get(replies_from)
        if previous and judgement in left:
            previous = replace(previous, left=left[judgement])
        loaded.append(ToJudge(judgement, leased.run, leased.chunk, key, item, previous, tuple(asks)))
    return loaded


class RowReader:
    """Decodes rows for judgements, each row once per number format, however many answers it has."""

    def __init__(self, form: Format) -> None:
        self._form = form
        self._plain: dict[int, dict[str, Any]] = {}
        self._exact: dict[int, dict[str, Any]] = {}

    def item(self, row: int, raw: str, answer: str, numbers: NumberFormat) -> JudgedItem:
        response = response_data(answer)
        if numbers == "plain":
            return JudgedItem(data_for(self._data(row, raw), response), response)
        if row not in self._exact:
            self._exact[row] = reference_data(raw, self._form, exact_json)
        exact = self._exact[row]
        if numbers == "exact" and answer:  # without an answer, a candidate's request needs the plain row
            return JudgedItem(exact, response, exact)
        return JudgedItem(data_for(self._data(row, raw), response), response, exact)

    def _data(self, row: int, raw: str) -> dict[str, Any]:
        if row not in self._plain:
            self._plain[row] = row_data(raw, self._form)
        return self._plain[row]


def definition(key: MetricKey) -> MetricDefinition:
    """The metric definition for judgements with this key."""
    run_metric, reading = key
    stored = Reading.objects.get(pk=reading) if reading else RunMetric.objects.get(pk=run_metric)
    return MetricDefinition.from_json(stored.definition)


def sends_requests(run: Run) -> bool:
    """Whether any open chunk of the run will send requests; re-parsing sends none. The judgements of a chunk are all
    of one kind, so the first one decides."""
    asking = Judgement.objects.filter(run=run, position=OuterRef("first"), replies_from=None)
    return Chunk.objects.filter(Exists(asking), run=run, done=False).exists()


def finish_if_done(run_id: int) -> bool:
    """Finish a run without open chunks, even if it was stopped while its last replies were in progress. A running run
    with unjudged items is cancelled instead. Returns whether the state changed."""
    open_chunks = Chunk.objects.filter(run=run_id, done=False)
    if open_chunks.exists():
        return False
    # Checked again in the UPDATE itself, because chunks may have been added in the meantime.
    going = Run.objects.filter(~Exists(open_chunks), pk=run_id)
    if _set_aside(run_id):
        going, state, event = going.filter(state=RunState.RUNNING), RunState.CANCELLED, Event.RUN_STOPPED
    else:
        going, state, event = going.filter(state__in=_MAY_FINISH), RunState.FINISHED, Event.RUN_FINISHED
    with transaction.atomic():
        if not going.update(state=state, finished_at=timezone.now(), problem="", problem_detail=""):
            return False
        run_stopped(run_id)
        emit_run(event, run_id)
    return True


def _set_aside(run_id: int) -> bool:
    """Whether current judgements were not run. The judgements are queried only if the counters suggest so."""
    run = Run.objects.get(pk=run_id)
    return bool(run.not_run) and run.judgements.filter(current=True, state=JudgementState.NOT_RUN).exists()


_FREE = Chunk.objects.filter(run=OuterRef("pk"), done=False, owner="")


def collecting(runs: RunQuerySet) -> RunQuerySet:
    """Those of these runs that were paused or cancelled, and whose free chunks are judged by the replies of their
    collected batches, without a call."""
    batches = RequestBatch.objects.filter(run=OuterRef("pk"))
    open_or_unread = batches.filter(
        Q(state__in=(BatchState.SENDING, BatchState.SENT)) | Q(state=BatchState.COLLECTED, read=False)
    )
    stopped = runs.filter(batched=True, state__in=(RunState.PAUSED, RunState.CANCELLED))
    return stopped.exclude(problem__in=SET_ASIDE).filter(
        Exists(_FREE), Exists(batches.filter(state=BatchState.COLLECTED)), ~Exists(open_or_unread)
    )


def has_waiting_work() -> bool:
    """Whether there is a run to plan that nobody plans, or a free chunk of a run that is running or collecting."""
    for_anyone = Run.objects.by_workers().filter(only_worker="")
    running = for_anyone.filter(state=RunState.RUNNING).filter(Exists(_FREE))
    return (
        running.exists()
        or for_anyone.to_plan().filter(planner="").exists()
        or collecting(for_anyone).exists()
    )
