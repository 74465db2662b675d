"""A run worker's plain SQL: leasing chunks, loading what is to be judged, writing what was judged.

Rules that keep every judgement single: only the holder of a chunk's lease writes its judgements, and looks at
the lease inside the transaction that writes; a chunk is done only in the transaction of its last judgements,
and only if the database holds no unjudged one of it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from django.db import connection, transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from datasets.core.formats import Format
from datasets.core.variables import data_for, reference_data, response_data, row_data
from judging.core.metric_definition import MetricDefinition
from judging.core.results import Item, JudgeCall, JudgementResult, PreviousReplies, Ruled, ScriptResult
from judging.core.rules.values import exact_json
from judging.core.votes import judge_spread
from judging.runs.budget import Spent
from judging.runs.json_storage import as_json as _json
from judging.runs.json_storage import storable
from judging.runs.models import Chunk, Judgement, JudgementState, Reading, Run, RunMetric, RunState
from judging.runs.stopping import run_stopped, runs_stopped_before
from judging.runs.stored_replies import previous_replies
from judging.runs.worker import generation_store
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
_WRITE = """
UPDATE judging_judgement
   SET state = %s, value = %s, score = %s, reason = %s, detail = %s, preprocess = %s, verdicts = %s,
       postprocess = %s, rules = %s, flags = %s, spread = %s, seconds = %s, finished_at = %s
 WHERE id = %s AND state = 'not_run'
"""
_REPLY = """
INSERT INTO judging_judgereply (judgement_id, judge, repeat, swapped, endpoint_id, request, content, reasoning,
       extra, error, detail, calls, prompt_tokens, completion_tokens, seconds, first_token_seconds, copy_of_id)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, {copy_of})
"""
_REPLY_ASKED = _REPLY.format(copy_of="NULL")
_IN_PROJECT = "project_id = (SELECT project_id FROM judging_run WHERE id = %s)"
_REPLY_COPIED = _REPLY.format(
    copy_of=f"(SELECT reply_id FROM judging_cachedreply WHERE {_IN_PROJECT} AND digest = %s)"  # noqa: S608
)
_REMEMBER = """
INSERT INTO judging_cachedreply (project_id, digest, reply_id)
SELECT r.project_id, %s, p.id FROM judging_run r, judging_judgereply p
 WHERE r.id = %s AND p.judgement_id = %s AND p.judge = %s AND p.repeat = %s AND p.swapped = %s
ON CONFLICT DO NOTHING
"""
_DONE = """
UPDATE judging_chunk SET done = %s, owner = ''
 WHERE id = %s AND owner = %s AND NOT EXISTS (
       SELECT 1 FROM judging_judgement j WHERE j.run_id = judging_chunk.run_id
          AND j.position BETWEEN judging_chunk.first AND judging_chunk.last AND j.state = 'not_run')
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
    previous: PreviousReplies | None = None  # replies to be read again: nobody is asked
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
    """Put the end of the leases off again, and take back what nobody holds.

    While the database is away nobody can renew: who then looks for the dead first takes the living for dead.
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


def write(
    judged: Sequence[Judged],
    finished: Iterable[int],
    owner: str,
    spent: Sequence[tuple[int, Spent]] = (),
    answers: Sequence[Generated] = (),
    lost: Set[Generated] = frozenset(),
) -> set[Generated]:
    """Store answers and judgements with their replies, count them and what runs have spent, mark chunks done and runs
    finished: all or nothing. Returns the answers that are lost, with those that were `lost` before: what was judged
    by one of them is left to be judged again."""
    with transaction.atomic():
        concerned = {one.of.chunk for one in judged} | {one.chunk for one in answers} | set(finished)
        held = _held_chunks(concerned, owner)
        lost = lost | generation_store.write(answers, held)
        kept = [one for one in judged if one.of.chunk in held and one.of.generated not in lost]
        with connection.cursor() as cursor:
            if kept:
                cursor.executemany(_WRITE, [_judgement_row(one) for one in kept])
                _write_replies(cursor, kept)
            for chunk in finished:
                cursor.execute(_DONE, [True, chunk, owner])
        for run_id in {one.of.run for one in kept}:
            _count(run_id, [one for one in kept if one.of.run == run_id])
        for run_id, bill in spent:
            _count_spent(run_id, bill)
        finished_runs = {run_id for run_id in set(held.values()) if finish_if_done(run_id)}
        runs_stopped_before({one.of.run for one in kept} - finished_runs)
    return set(lost)


def _write_replies(cursor: Any, kept: Sequence[Judged]) -> None:
    """First what was asked, with what may be taken again; then what was taken, which says where from."""
    replies = [(one.of, asked) for one in kept for asked in newly_asked(one)]
    new = [(of, asked) for of, asked in replies if not asked.copied]
    if new:
        cursor.executemany(_REPLY_ASKED, [_reply_row(of.judgement, asked) for of, asked in new])
    named = [(of, asked) for of, asked in new if asked.digest and asked.failure is None]
    if named:
        places = [(asked.digest, of.run, of.judgement, *asked.place) for of, asked in named]
        cursor.executemany(_REMEMBER, places)
    copied = [
        (*_reply_row(of.judgement, asked), of.run, asked.digest) for of, asked in replies if asked.copied
    ]
    if copied:
        cursor.executemany(_REPLY_COPIED, copied)


def _held_chunks(chunks: set[int], owner: str) -> dict[int, int]:
    held = Chunk.objects.select_for_update().filter(pk__in=chunks, owner=owner, done=False).order_by("pk")
    return dict(held.values_list("pk", "run_id"))


def newly_asked(judged: Judged) -> tuple[JudgeCall, ...]:
    """Replies that were only read again stay with the attempt that asked."""
    return judged.result.asked if judged.of.previous is None else ()


def _count(run_id: int, judged: list[Judged]) -> None:
    """Add to the run's counters; in SQL, because other workers add to them too."""
    states = Counter(one.result.outcome.state for one in judged)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE judging_run SET scored = scored + %s, no_score = no_score + %s, unparsed = unparsed + %s, "
            "errors = errors + %s, reused = reused + %s, revision = revision + 1 WHERE id = %s",
            [
                *(states[name] for name in ("scored", "no_score", "unparsed", "error")),
                sum(asked.copied for one in judged for asked in newly_asked(one)),
                run_id,
            ],
        )


def _count_spent(run_id: int, spent: Spent) -> None:
    """Every request, whatever became of its judgement."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE judging_run SET calls = calls + %s, calls_failed = calls_failed + %s, "
            "prompt_tokens = prompt_tokens + %s, completion_tokens = completion_tokens + %s, "
            "spent = spent + %s WHERE id = %s",
            [spent.calls, spent.failed, spent.read, spent.written, round(spent.money), run_id],
        )


def asks_further(run: Run) -> bool:
    """Whether somebody will be asked for what is left of a running run; what is read again asks nobody. A chunk's
    judgements are all of one sort."""
    asking = Judgement.objects.filter(run=run, position=OuterRef("first"), asked_by=None)
    return Chunk.objects.filter(Exists(asking), run=run, done=False).exists()


def finish_if_done(run_id: int) -> bool:
    """A run without an open chunk is finished, though it was stopped while its last replies were under way; one that
    was running and of which a part is set aside is cancelled."""
    open_chunks = Chunk.objects.filter(run=run_id, done=False)
    if open_chunks.exists():
        return False
    # Looked at again in the statement that ends it: meanwhile somebody may have made it go on with further chunks.
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


def _judgement_row(one: Judged) -> tuple[Any, ...]:
    result, outcome = one.result, one.result.outcome
    return (
        outcome.state,
        storable(outcome.value_json),
        outcome.score,
        outcome.reason,
        storable(outcome.detail),
        _script_json(result.preprocess),
        _json(result.verdicts) if result.verdicts else "",
        _script_json(result.postprocess),
        _rules_json(result.rules),
        ",".join(result.flags),
        judge_spread(result.verdicts),
        result.seconds,
        time.time(),
        one.of.judgement,
    )


def _reply_row(judgement: int, asked: JudgeCall) -> tuple[Any, ...]:
    reply = asked.reply or {}
    extra = {key: value for key, value in reply.items() if key not in ("content", "reasoning_content")}
    return (
        judgement,
        asked.judge,
        asked.repeat,
        asked.swapped,
        asked.endpoint,
        _json(asked.request),
        storable(reply.get("content")),
        storable(reply.get("reasoning_content")),
        _json(extra) if any(value is not None for value in extra.values()) else "",
        asked.failure.code if asked.failure else "",
        storable(asked.failure.detail if asked.failure else ""),
        _json(asked.calls),
        asked.prompt_tokens,
        asked.completion_tokens,
        asked.seconds,
        asked.first_token_seconds,
    )


def _script_json(result: ScriptResult | None) -> str:
    return _json(result) if result else ""


def _rules_json(ruled: Ruled | None) -> str:
    """Each line begins with its number and its score, in this order: runs.filters looks for that."""
    return _json({"failure": ruled.failure, "lines": ruled.lines}) if ruled else ""


def work_waits() -> bool:
    """Is there a run to plan, or a chunk that nobody holds?"""
    free = Chunk.objects.filter(run=OuterRef("pk"), done=False, owner="")
    for_anyone = Run.objects.by_workers().filter(only_worker="")
    running = for_anyone.filter(state=RunState.RUNNING).filter(Exists(free))
    return running.exists() or for_anyone.to_plan().exists()
