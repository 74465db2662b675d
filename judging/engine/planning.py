"""Run planning: creates judgements (`not_run`) and chunks from rows, candidates and metrics."""

from __future__ import annotations

import json
import random
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef
from django.db.models.functions import Coalesce
from django.utils import timezone

from datasets.models import Candidate, Row
from evalsite.webhooks.kinds import Event
from judging.core.candidates import CandidateModel
from judging.core.metric_definition import MetricDefinition
from judging.engine.rubric_rows import unreadable_rows
from judging.records.models import (
    Chunk,
    JudgementQuerySet,
    JudgementState,
    JudgeReply,
    Reading,
    Run,
    RunCandidate,
    RunMetric,
    RunState,
)
from judging.records.run_events import emit_run

CHUNK = 100  # judgements leased at a time: large enough for batches, small enough to lose
LARGER_CHUNK = 200  # in large runs, since a sandbox batch costs 5 ms whatever its size
CHUNKS_AT_LEAST = 50  # before chunks grow, so that several workers end at about the same time

_PLANNED_COLUMNS = (
    "run_id, position, run_metric_id, row_id, candidate_id, response_id, attempt, current, state, reason, "
    "detail, scripts, verdicts, rules, flags, checklist, repeat, replies_from_id, reading_id"
)
_EMPTY_TEXTS = "'not_run', 'waiting', '', '', '', '', '', '', 1"

SLICE = 20_000  # rows planned in one transaction, which blocks other writers on SQLite

# In SQL, because a million judgements take seconds this way, but minutes through the ORM.
_PLAN = """
INSERT INTO judging_judgement ({columns})
SELECT %s, %s + ROW_NUMBER() OVER (ORDER BY s.key, c.candidate_id, a.number, m.number) - 1,
       m.id, s.value, c.candidate_id, a.id, 1, %s, {empty}, NULL, NULL
  FROM {rows}
  JOIN datasets_response a ON a.row_id = s.value
  JOIN judging_runcandidate c ON c.candidate_id = a.candidate_id AND c.run_id = %s
 CROSS JOIN judging_runmetric m
 WHERE m.run_id = %s
"""

# The same for metrics that judge answers, and for those that compare candidates ({pairs}: metric, its number, A, B,
# whether all their answers, whether a judge sees one order only, number of the pair). Which answer stands first in that
# order depends on the row's `coin`, 0 or 1.
_PLAN_WITH_PAIRS = """
INSERT INTO judging_judgement ({columns}, other_response_id, shown_first)
SELECT %s, %s + ROW_NUMBER() OVER (ORDER BY j.key, j.other IS NOT NULL, j.candidate, j.other_candidate, j.n, j.m,
                                         j.metric_number) - 1,
       j.metric, j.row_id, j.candidate, j.answer, 1, %s, {empty}, NULL, NULL, j.other, j.shown_first
  FROM (
    SELECT s.key AS key, s.value AS row_id, m.id AS metric, m.number AS metric_number, c.candidate_id AS candidate,
           a.number AS n, a.id AS answer, 0 AS other_candidate, 0 AS m, CAST(NULL AS BIGINT) AS other,
           CAST(NULL AS INTEGER) AS shown_first
      FROM {rows}
      JOIN datasets_response a ON a.row_id = s.value
      JOIN judging_runcandidate c ON c.candidate_id = a.candidate_id AND c.run_id = %s
     CROSS JOIN judging_runmetric m
     WHERE m.run_id = %s AND m.id NOT IN ({comparing})
    UNION ALL
    SELECT s.key, s.value, p.column1, p.column2, a.candidate_id, a.number, a.id, b.candidate_id, b.number, b.id,
           CASE WHEN p.column6 = 0 THEN NULL ELSE 1 + (s.coin + p.column7 + a.number + b.number) %% 2 END
      FROM {rows}
     CROSS JOIN (VALUES {pairs}) p
      JOIN datasets_response a ON a.row_id = s.value AND a.candidate_id = p.column3
      JOIN datasets_response b ON b.row_id = s.value AND b.candidate_id = p.column4
     WHERE p.column5 = 1 OR (a.number = 1 AND b.number = 1)) j
"""

_ANSWERS = """
INSERT INTO datasets_response (row_id, candidate_id, number, raw)
SELECT s.value, %s, %s, '' FROM {rows} ORDER BY s.key
"""

# {replies_from}: the attempt whose replies are re-parsed, NULL to send new requests. {replaced}: ids of the attempts to
# replace. An override in force is copied to the new attempt.
_PLAN_FURTHER = """
INSERT INTO judging_judgement ({columns}, other_response_id, shown_first, override_value, override_score, override_at)
SELECT j.run_id, %s + ROW_NUMBER() OVER (ORDER BY j.position) - 1, j.run_metric_id, j.row_id, j.candidate_id,
       j.response_id, j.attempt + 1, %s, {empty}, {replies_from}, {reading}, j.other_response_id, j.shown_first,
       j.override_value, j.override_score, j.override_at
  FROM judging_judgement j
 WHERE j.id IN ({replaced})
"""

# Ranges of unjudged positions before a given one. Judgements that send requests and re-parsed ones are kept separate.
_UNJUDGED_RANGES = """
SELECT MIN(position), COUNT(*) FROM (
    SELECT j.position, j.replies_from_id IS NULL AS asks,
           j.position - ROW_NUMBER() OVER (PARTITION BY j.replies_from_id IS NULL ORDER BY j.position) AS block
      FROM judging_judgement j WHERE j.run_id = %s AND j.current AND j.state = 'not_run' AND j.position < %s) s
 GROUP BY asks, block ORDER BY 1
"""
_BEYOND = 2**31


def plan(run_id: int) -> None:
    """Create the missing judgements of a run in slices of rows, one transaction each, then the chunks, and start the
    run.

    If a worker dies, only complete slices remain, and the next worker plans the rows that are left.
    """
    run = Run.objects.get(pk=run_id)
    if run.state != RunState.PLANNING:
        return
    rows = rows_to_plan(run)
    total = run.total
    for at in range(0, len(rows), SLICE):
        planned = plan_slice(run_id, rows[at : at + SLICE], total)
        if planned is None:
            return
        total += planned
    _start_run(run_id, total)


def plan_slice(run_id: int, rows: list[int], total: int) -> int | None:
    """Plan these rows of a run with `total` judgements so far. Returns the number of new judgements, or None without
    doing anything if the run was stopped or another worker is planning it."""
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=run_id)
        if run.state != RunState.PLANNING or run.total != total:
            return None
        start = _next_position(run)
        plan_answers(run, rows)
        planned = _plan_judgements(run, start, rows)
        run.total += planned
        run.rows += run.judgements.filter(position__gte=start).values("row_id").distinct().count()
        run.worker_deaths = 0
        run.save(update_fields=["total", "rows", "worker_deaths"])
        return planned


def _plan_judgements(run: Run, start: int, rows: list[int]) -> int:
    """Create the judgements of these rows from position `start` on. Returns how many."""
    compared = [metric for metric in run.metrics.all() if definition_of(metric).compares_candidates]
    if not compared:
        return _of_rows(_PLAN, [run.pk, start, True], rows, [run.pk, run.pk])
    pairs = [pair for metric in compared for pair in _pairs_of(run, metric)]
    coins = _coins(run, start, len(rows))
    if connection.vendor == "postgresql":
        table = "unnest(%s::bigint[], %s::int[]) WITH ORDINALITY AS s(value, coin, key)"
        drawn: list[Any] = [rows, coins]
    else:
        columns = "key, json_extract(value, '$[0]') AS value, json_extract(value, '$[1]') AS coin"
        table = f"(SELECT {columns} FROM json_each(%s)) AS s"  # noqa: S608 - names of our own
        drawn = [json.dumps(list(zip(rows, coins, strict=True)))]
    statement = _PLAN_WITH_PAIRS.format(
        columns=_PLANNED_COLUMNS,
        empty=_EMPTY_TEXTS,
        rows=table,
        comparing=", ".join(str(metric.pk) for metric in compared),
        pairs=", ".join(map(str, pairs)),
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [run.pk, start, True, *drawn, run.pk, run.pk, *drawn])
        return int(cursor.rowcount)


def _pairs_of(run: Run, metric: RunMetric) -> list[tuple[int, ...]]:
    """What `_PLAN_WITH_PAIRS` needs to know about the pairs that a metric compares."""
    definition = definition_of(metric)
    ids = dict(run.run_candidates.order_by("candidate").values_list("candidate__name", "candidate"))
    settings = int(definition.all_answers), int(definition.sees_one_order)
    return [
        (metric.pk, metric.number, ids[a], ids[b], *settings, number)
        for number, (a, b) in enumerate(definition.pairs(list(ids)))
    ]


def _coins(run: Run, start: int, rows: int) -> list[int]:
    """As many 0 as 1, in an order drawn by the run's seed."""
    coins = [number % 2 for number in range(rows)]
    random.Random(f"{run.seed} {start}").shuffle(coins)
    return coins


def definition_of(metric: RunMetric) -> MetricDefinition:
    return MetricDefinition.from_json(metric.definition)


def _judgements_together(run: Run) -> int:
    """How many consecutive judgements may wait for the same answers, so that one worker should make them."""
    if run.rows and run.total % run.rows == 0 and run.judgements.exclude(other_response=None).exists():
        return run.total // run.rows
    return run.metrics.count()


def _start_run(run_id: int, total: int) -> None:
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=run_id)
        if run.state != RunState.PLANNING or run.total != total:
            return
        last = run.chunks.order_by("-last").values_list("last", flat=True).first()
        first = 0 if last is None else last + 1
        more = _next_position(run) - first
        make_chunks(run.pk, first, more, of=_judgements_together(run))
        works = run.chunks.filter(done=False).exists()
        run.started_at = run.started_at or timezone.now()
        run.state = RunState.RUNNING if works else RunState.FINISHED
        run.finished_at = None if works else timezone.now()
        run.save(update_fields=["started_at", "state", "finished_at"])
        if not works:
            emit_run(Event.RUN_FINISHED, run.pk)


def _next_position(run: Run) -> int:
    last = run.judgements.order_by("-position").values_list("position", flat=True).first()
    return 0 if last is None else last + 1


def is_planned(run: Run) -> bool:
    """Whether the run needs no planning: it has open chunks, or all its rows were judged. An extension that stopped
    before its end has neither."""
    chunks = run.chunks.all()
    size = run.version.valid_rows if run.sample_size is None else min(run.sample_size, run.version.valid_rows)
    return chunks.filter(done=False).exists() or (run.rows >= size and chunks.exists())


def rows_to_plan(run: Run) -> list[int]:
    """Ids of the rows to judge that have no judgements yet, in file order. If the run may end early, in the order they
    were drawn, so that the rows judged by then are a random sample. The same seed draws the same rows; an extended run
    draws from the rows not judged yet."""
    rows = list(
        Row.objects.filter(version=run.version_id, valid=True).order_by("line").values_list("pk", flat=True)
    )
    if run.rubric_rows_left_out:
        unreadable = unreadable_rows(run.version)
        rows = [row for row in rows if row not in unreadable]
    if run.only_rows is not None:
        only = set(run.only_rows)
        rows = [row for row in rows if row in only]
    size = len(rows) if run.sample_size is None else min(run.sample_size, len(rows))
    planned = set(run.judgements.values_list("row_id", flat=True).distinct())
    if size == len(rows) and run.stop_width is None:
        return [row for row in rows if row not in planned]
    drawn = random.Random(run.seed).sample(range(len(rows)), size)
    rest = [index for index in drawn if rows[index] not in planned][: size - len(planned)]
    return [rows[index] for index in (rest if run.stop_width is not None else sorted(rest))]


def plan_answers(run: Run, rows: list[int]) -> None:
    """Create empty responses for the answers to generate: `n` per candidate and row."""
    for run_candidate in RunCandidate.objects.filter(run=run).exclude(definition=""):
        n = CandidateModel.from_json(run_candidate.definition).n
        for number in range(1, n + 1):
            _of_rows(_ANSWERS, [run_candidate.candidate_id, number], rows, [])
        Candidate.objects.filter(pk=run_candidate.candidate_id).update(
            rows=F("rows") + len(rows), responses=F("responses") + len(rows) * n
        )


def _of_rows(statement: str, before: list[Any], rows: list[int], after: list[Any]) -> int:
    """Execute a statement in which {rows} becomes a table `s` of row ids (`value`) with their order (`key`). Returns
    the row count."""
    postgres = connection.vendor == "postgresql"
    table = "unnest(%s::bigint[]) WITH ORDINALITY AS s(value, key)" if postgres else "json_each(%s) AS s"
    with connection.cursor() as cursor:
        cursor.execute(
            statement.format(columns=_PLANNED_COLUMNS, empty=_EMPTY_TEXTS, rows=table),
            [*before, rows if postgres else json.dumps(rows), *after],
        )
        return int(cursor.rowcount)


def make_chunks(run_id: int, first: int, count: int, of: int = 1) -> None:
    """Divide the positions first … first+count-1 of a run into chunks. Groups of `of` consecutive positions stay in one
    chunk: the judgements of one response, which may wait for the same answer."""
    chunk = max(CHUNK, min(LARGER_CHUNK, count // CHUNKS_AT_LEAST))
    end, size = first + count, of * max(1, chunk // of)
    Chunk.objects.bulk_create(
        [Chunk(run_id=run_id, first=at, last=min(at + size, end) - 1) for at in range(first, end, size)],
        batch_size=1000,
    )


def remove_open_chunks(run: Run) -> bool:
    """Delete the run's open chunks, so that it makes no calls for them. False if a worker still holds one, or if there
    are no chunks yet. Call inside a transaction that holds the run's row."""
    if not run.chunks.exists():
        return False
    rest = run.chunks.filter(done=False)
    rest.filter(owner="").delete()
    return not rest.exists()


def restore_open_chunks(run: Run) -> None:
    """Recreate the chunks that `remove_open_chunks` removed, if any. Call inside a transaction that holds the run's
    row."""
    if not run.not_run:
        return
    waiting = run.judgements.filter(current=True, state=JudgementState.NOT_RUN).order_by("position")
    first = waiting.values_list("position", flat=True).first()
    chunks = run.chunks.filter(done=False)
    if first is None or chunks.filter(first__lte=first, last__gte=first).exists():
        return  # chunks are set aside all or none, and new attempts come after them
    end = chunks.order_by("first").values_list("first", flat=True).first()
    with connection.cursor() as cursor:
        cursor.execute(_UNJUDGED_RANGES, [run.pk, _BEYOND if end is None else end])
        ranges = cursor.fetchall()
    for at, count in ranges:
        make_chunks(run.pk, at, count, of=_judgements_together(run))


def plan_attempts(run: Run, attempts: JudgementQuerySet, reading: Reading | None = None) -> int:
    """Create new attempts for those of `attempts` that are current; old attempts are kept. Returns the number
    created.

    They send new requests, with `reading` if given, or re-parse stored replies if `reading` does not ask. Call inside a
    transaction that holds the run (overrides.run_lock).
    """
    replaced, replies_from = attempts.by_metrics().filter(run=run, current=True), "NULL"
    if reading and not reading.sends_requests:
        replaced, replies_from = _reparseable(replaced, reading), "COALESCE(j.replies_from_id, j.id)"
    start = _next_position(run)
    try:
        ids, parameters = replaced.order_by().values("pk").query.sql_with_params()
    except EmptyResultSet:
        return 0
    insert = _PLAN_FURTHER.format(
        columns=_PLANNED_COLUMNS,
        empty=_EMPTY_TEXTS,
        replies_from=replies_from,
        reading=int(reading.pk) if reading else "j.reading_id",
        replaced=ids,
    )
    with connection.cursor() as cursor:
        cursor.execute(insert, [start, False, *parameters])
        created = int(cursor.rowcount)
    older = run.judgements.filter(pk__in=replaced.order_by().values("pk"))
    older.update(current=False, override_value=None, override_score=None, override_at=None)
    run.judgements.filter(position__gte=start).update(current=True)
    make_chunks(run.pk, start, created)
    return created


def _reparseable(attempts: JudgementQuerySet, reading: Reading) -> JudgementQuerySet:
    """The judgements that a reading can re-parse. Excludes those re-judged with another version of the metric, whose
    prompts were different, and those without replies, unless a rule program needs none."""
    judgements = attempts.filter(run_metric=reading.run_metric_id).exclude(state=JudgementState.NOT_RUN)
    judgements = judgements.exclude(reading__sends_requests=True)
    if MetricDefinition.from_json(reading.definition).rules:
        return judgements
    replies = JudgeReply.objects.filter(judgement=Coalesce(OuterRef("replies_from"), OuterRef("pk")))
    return judgements.filter(Exists(replies))
