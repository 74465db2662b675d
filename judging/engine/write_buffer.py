"""A run worker's judgements that are not stored yet, and the chunks that it holds.

Two rules prevent duplicate judgements: only the holder of a chunk's lease writes its judgements, checking the lease
inside the transaction; and a chunk is marked done only in the transaction of its last judgements, if the database
has no unjudged ones left in it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.db.models import Exists, F, OuterRef

from evalsite.tasks import jobs
from evalsite.tasks.workers import Backoff
from judging.core.pipeline import judge_spread
from judging.core.results import JudgeCall, Ruled, ScriptResult, Verdict
from judging.endpoints.gate import RunInThread
from judging.engine import chunks, generation_store
from judging.engine.budget import Ledger, Spent
from judging.engine.chunks import Judged, Leased
from judging.engine.generation_store import Generated
from judging.engine.journal import Journal, Work, WorkKey
from judging.engine.stopping import runs_stopped_before
from judging.records.json_text import as_json as _json
from judging.records.json_text import storable
from judging.records.models import COUNTERS, Chunk, Judgement, JudgementState, Run

log = logging.getLogger("judging.run_worker")

FLUSH_ROWS = 500

_WRITE = """
UPDATE judging_judgement
   SET state = %(state)s, value = %(value)s, score = %(score)s, reason = %(reason)s, detail = %(detail)s,
       scripts = %(scripts)s, verdicts = %(verdicts)s, rules = %(rules)s,
       flags = %(flags)s, checklist = %(checklist)s, spread = %(spread)s, seconds = %(seconds)s,
       finished_at = %(finished_at)s
 WHERE id = %(id)s AND state = 'not_run'
"""
_REPLY = """
INSERT INTO judging_judgereply (judgement_id, judge, repeat, swapped, criterion, endpoint_id, request, content,
       reasoning, extra, error, detail, calls, prompt_tokens, completion_tokens, seconds, first_token_seconds,
       copy_of_id)
VALUES (%(judgement)s, %(judge)s, %(repeat)s, %(swapped)s, %(criterion)s, %(endpoint)s, %(request)s, %(content)s,
       %(reasoning)s, %(extra)s, %(error)s, %(detail)s, %(calls)s, %(prompt_tokens)s, %(completion_tokens)s,
       %(seconds)s, %(first_token_seconds)s, {copy_of})
"""
_REPLY_ASKED = _REPLY.format(copy_of="NULL")
_IN_PROJECT = "project_id = (SELECT project_id FROM judging_run WHERE id = %(run)s)"
_REPLY_COPIED = _REPLY.format(
    copy_of=f"(SELECT reply_id FROM judging_cachedreply WHERE {_IN_PROJECT} AND digest = %(digest)s)"  # noqa: S608
)
_REMEMBER = """
INSERT INTO judging_cachedreply (project_id, digest, reply_id)
SELECT r.project_id, %s, p.id FROM judging_run r, judging_judgereply p
 WHERE r.id = %s AND p.judgement_id = %s AND p.judge = %s AND p.repeat = %s AND p.swapped = %s AND p.criterion = %s
ON CONFLICT DO NOTHING
"""


@dataclass(slots=True)
class HeldChunk:
    """The numbers of open and abandoned judgements and answers of a leased chunk."""

    open: int
    abandoned: int = 0


@dataclass(slots=True)
class WriteBatch:
    """The content of one transaction."""

    judged: list[Judged] = field(default_factory=list)
    answers: list[Generated] = field(default_factory=list)
    finished: set[int] = field(default_factory=set)
    released: set[int] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.judged or self.answers or self.finished or self.released)

    def chunks_judging(self, answers: Set[Generated]) -> set[int]:
        """Ids of the chunks with judgements of these answers."""
        return {judged.of.chunk for judged in self.judged if not answers.isdisjoint(judged.of.generated)}


@dataclass(frozen=True, slots=True)
class Flushed:
    """The result of a flush. `reopened`: chunks that seemed finished were released, because some judgements were based
    on lost answers and must be made again."""

    answers: list[Generated] = field(default_factory=list)
    reopened: bool = False


class WriteBuffer:
    """Buffers writes from one event loop, without loss while the database is unavailable."""

    def __init__(self, owner: str, in_database: RunInThread, journal: Journal) -> None:
        self.owner = owner
        self.in_database = in_database
        self.journal = journal
        self.held: dict[int, HeldChunk] = {}
        self.ledgers: list[tuple[int, Ledger]] = []  # includes released runs until everything is stored
        self._batch = WriteBatch()
        self._lost: set[Generated] = set()
        self._backoff = Backoff()

    @property
    def full(self) -> bool:
        return len(self._batch.judged) >= FLUSH_ROWS

    @property
    def waiting(self) -> bool:
        """Whether there is anything to store."""
        return bool(self._batch) or any(ledger.unstored.calls for _, ledger in self.ledgers)

    def hold(self, leased: Leased, judgements: int, judged: Iterable[Judged]) -> None:
        """Register a leased chunk with `judgements` open ones and the ones already made (`judged`)."""
        self.held[leased.chunk] = HeldChunk(judgements)
        self._batch.judged.extend(judged)
        if not judgements:
            self._close_chunk(leased.chunk)

    def hold_item(self, chunk: int) -> None:
        """Add an open item to a held chunk."""
        self.held[chunk].open += 1

    def judged(self, chunk: int, judged: Judged | None) -> None:
        """Record a judgement; None if it was abandoned, so that another worker makes it."""
        if judged is not None:
            self._batch.judged.append(judged)
        self._close_item(chunk, abandoned=judged is None)

    def answered(self, chunk: int, generated: Generated | None) -> None:
        """Record a generated answer; None if it was abandoned."""
        if generated is not None:
            self._batch.answers.append(generated)
        self._close_item(chunk, abandoned=generated is None)

    def _close_item(self, chunk: int, *, abandoned: bool) -> None:
        held = self.held[chunk]
        held.abandoned += abandoned
        held.open -= 1
        if held.open == 0:
            self._close_chunk(chunk)

    def _close_chunk(self, chunk: int) -> None:
        closed = self._batch.released if self.held[chunk].abandoned else self._batch.finished
        closed.add(chunk)

    async def flush(self, working: Collection[Ledger]) -> Flushed:
        """Renew leases and store the batch. If the database is unavailable, the batch is put back for the next flush.

        `working`: the ledgers of active runs.
        """
        batch, self._batch = self._batch, WriteBatch()
        spending = [(pk, ledger) for pk, ledger in self.ledgers if ledger.unstored.calls]
        spent = [(pk, ledger.take()) for pk, ledger in spending]
        stored = False
        try:
            held, lost_before = list(self.held), self._lost
            lost = await self.in_database(write, batch, self.owner, held, spent, lost_before)
            stored = True
        except DatabaseError as error:
            log.warning("Could not store %d judgements, retrying: %s", len(batch.judged), error)
            self._put_back(batch)
            await asyncio.sleep(self._backoff.failed())
            return Flushed()
        finally:
            for _, ledger in spending:
                ledger.settle(stored)
        self._backoff.succeeded()
        self.ledgers = [entry for entry in self.ledgers if entry[1] in working or entry[1].open]
        self.journal.stored(_keys(batch))
        return self._release_written(batch, lost)

    def _put_back(self, batch: WriteBatch) -> None:
        """Put back a batch that could not be written, before anything added meanwhile."""
        later, self._batch = self._batch, batch
        batch.judged += later.judged
        batch.answers += later.answers
        batch.finished |= later.finished
        batch.released |= later.released

    def _release_written(self, batch: WriteBatch, lost: Set[Generated]) -> Flushed:
        """Stop holding the written chunks. Judgements of lost answers have to be made again."""
        reopened = batch.chunks_judging(lost)
        closed = batch.finished | batch.released
        for chunk in closed:
            del self.held[chunk]
        for chunk in reopened - closed:
            self.held[chunk].abandoned += 1
            if chunk in self._batch.finished:  # closed while this was written
                self._batch.finished.remove(chunk)
                self._batch.released.add(chunk)
        self._lost = set(lost) if self.held else set()
        return Flushed(batch.answers, bool(reopened & batch.finished))


def _keys(batch: WriteBatch) -> list[WorkKey]:
    judgements = [WorkKey(Work.JUDGEMENT, judged.of.judgement) for judged in batch.judged]
    return judgements + [WorkKey(Work.ANSWER, attempt.of.response) for attempt in batch.answers]


def write(
    batch: WriteBatch,
    owner: str,
    held: Iterable[int] = (),
    spent: Sequence[tuple[int, Spent]] = (),
    lost: Set[Generated] = frozenset(),
) -> set[Generated]:
    """Renew the leases of `held` chunks, store the batch and the runs' spending, update the counters, and mark chunks
    done and runs finished, in one transaction. Then release unfinished chunks.

    Returns the lost answers, including those `lost` before. Judgements of lost answers are not stored and must be made
    again.
    """
    with transaction.atomic():  # a lease that was taken back is safe until the batch is written
        chunks.renew(held, owner)
        concerned = (
            {judged.of.chunk for judged in batch.judged}
            | {attempt.chunk for attempt in batch.answers}
            | batch.finished
        )
        mine = _held_chunks(concerned, owner)
        lost = lost | generation_store.write(batch.answers, mine)
        judgements = [
            judged
            for judged in batch.judged
            if judged.of.chunk in mine and lost.isdisjoint(judged.of.generated)
        ]
        _write_judgements(judgements)
        _mark_done(batch.finished, owner)
        for run_id, bill in spent:
            _count_spent(run_id, bill)
        finished_runs = {run_id for run_id in set(mine.values()) if chunks.finish_if_done(run_id)}
        runs_stopped_before({judged.of.run for judged in judgements} - finished_runs)
    for run_id in chunks.release(batch.released | (batch.chunks_judging(lost) & batch.finished), owner):
        jobs.request("run_batches", run_id, again=True)
    return set(lost)


def _mark_done(finished: Set[int], owner: str) -> None:
    """Mark those chunks done that are still held and have no unjudged judgements."""
    of_chunk = Judgement.objects.filter(
        run=OuterRef("run"), position__range=(OuterRef("first"), OuterRef("last"))
    )
    unjudged = Exists(of_chunk.filter(state=JudgementState.NOT_RUN))
    Chunk.objects.filter(~unjudged, pk__in=finished, owner=owner).update(done=True, owner="")


def _write_judgements(judgements: Sequence[Judged]) -> None:
    if judgements:
        with connection.cursor() as cursor:
            cursor.executemany(_WRITE, [_judgement_row(judged) for judged in judgements])
            _write_replies(cursor, judgements)
    for run_id in {judged.of.run for judged in judgements}:
        _count(run_id, [judged for judged in judgements if judged.of.run == run_id])


def _write_replies(cursor: Any, judgements: Sequence[Judged]) -> None:
    """Insert new replies and their cache entries first, then copies, which refer to the cache entries."""
    replies = [(judged.of, call) for judged in judgements for call in new_calls(judged)]
    new = [(of, call) for of, call in replies if not call.copied]
    if new:
        cursor.executemany(_REPLY_ASKED, [_reply_row(of.judgement, call) for of, call in new])
    named = [(of, call) for of, call in new if call.digest and call.failure is None]
    if named:
        places = [(call.digest, of.run, of.judgement, *call.place) for of, call in named]
        cursor.executemany(_REMEMBER, places)
    copied = [
        _reply_row(of.judgement, call) | {"run": of.run, "digest": call.digest}
        for of, call in replies
        if call.copied
    ]
    if copied:
        cursor.executemany(_REPLY_COPIED, copied)


def _held_chunks(concerned: set[int], owner: str) -> dict[int, int]:
    held = Chunk.objects.select_for_update().filter(pk__in=concerned, owner=owner, done=False).order_by("pk")
    return dict(held.values_list("pk", "run_id"))


def new_calls(judged: Judged) -> tuple[JudgeCall, ...]:
    """The judge calls of this attempt. Replies that were only re-parsed stay with the attempt that requested them."""
    return judged.result.calls if judged.of.previous is None else ()


def _count(run_id: int, judgements: list[Judged]) -> None:
    """Add to the run's counters in SQL, because other workers update them concurrently."""
    states = Counter(judged.result.outcome.state for judged in judgements)
    counts = {counter: F(counter) + states[state] for state, counter in COUNTERS.items()}
    reused = sum(call.copied for judged in judgements for call in new_calls(judged))
    Run.objects.filter(pk=run_id).update(**counts, reused=F("reused") + reused, revision=F("revision") + 1)


def _count_spent(run_id: int, spent: Spent) -> None:
    """Add all requests to the run's totals, whether or not their judgements were stored."""
    Run.objects.filter(pk=run_id).update(
        calls=F("calls") + spent.calls,
        calls_failed=F("calls_failed") + spent.failed,
        prompt_tokens=F("prompt_tokens") + spent.read,
        completion_tokens=F("completion_tokens") + spent.written,
        spent=F("spent") + round(spent.money),
    )


def _judgement_row(judged: Judged) -> dict[str, Any]:
    result, outcome = judged.result, judged.result.outcome
    return {
        "id": judged.of.judgement,
        "state": outcome.state,
        "value": storable(outcome.value_json),
        "score": outcome.score,
        "reason": outcome.reason,
        "detail": storable(outcome.detail),
        "scripts": _json_or_blank(result.scripts),
        "verdicts": _json_or_blank(result.verdicts),
        "rules": _rules_json(result.rules),
        "flags": ",".join(result.flags),
        "checklist": storable(result.checklist),
        "spread": judge_spread(result.verdicts),
        "seconds": result.seconds,
        "finished_at": time.time(),
    }


def _reply_row(judgement: int, call: JudgeCall) -> dict[str, Any]:
    reply = call.reply or {}
    extra = {key: value for key, value in reply.items() if key not in ("content", "reasoning_content")}
    return {
        "judgement": judgement,
        "judge": call.judge,
        "repeat": call.repeat,
        "swapped": call.swapped,
        "criterion": call.criterion,
        "endpoint": call.endpoint,
        "request": _json(call.request),
        "content": storable(reply.get("content")),
        "reasoning": storable(reply.get("reasoning_content")),
        "extra": _json(extra) if any(value is not None for value in extra.values()) else "",
        "error": call.failure.code if call.failure else "",
        "detail": storable(call.failure.detail if call.failure else ""),
        "calls": _json(call.calls),
        "prompt_tokens": call.prompt_tokens,
        "completion_tokens": call.completion_tokens,
        "seconds": call.seconds,
        "first_token_seconds": call.first_token_seconds,
    }


def _json_or_blank(value: Sequence[ScriptResult] | Sequence[Verdict]) -> str:
    return _json(value) if value else ""


def _rules_json(ruled: Ruled | None) -> str:
    """JSON whose lines start with number and score, in this order; filters/conditions.py searches for it."""
    return _json({"failure": ruled.failure, "lines": ruled.lines}) if ruled else ""
