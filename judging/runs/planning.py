"""From a run's choice of rows, candidates and metrics to its judgements (`not_run`) and the chunks of them."""

from __future__ import annotations

import json
import random
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from datasets.models import Candidate, Row
from judging.core.candidates import CandidateModel
from judging.runs.models import Chunk, Reading, Run, RunCandidate, RunState

CHUNK = 100  # judgements that a worker leases at a time: large enough for batches, small enough to lose
LARGER_CHUNK = 200  # where that is a small part of the run: a batch costs the jail 5 ms, whatever is in it
CHUNKS_AT_LEAST = 50  # before they grow: several workers end at about the same time

_PLANNED_COLUMNS = (
    "run_id, position, run_metric_id, row_id, candidate_id, response_id, attempt, current, state, reason, "
    "detail, preprocess, verdicts, postprocess, rules, flags, asked_by_id, reading_id"
)
_EMPTY_TEXTS = "'not_run', 'waiting', '', '', '', '', '', ''"

# Set-based, because a million judgements are planned in one statement: 2–3 s instead of minutes by the ORM.
_PLAN = """
INSERT INTO judging_judgement ({columns})
SELECT %s, ROW_NUMBER() OVER (ORDER BY {order}, c.candidate_id, a.number, m.number) - 1,
       m.id, r.id, c.candidate_id, a.id, 1, %s, {empty}, NULL, NULL
  FROM datasets_row r {drawn}
  JOIN datasets_response a ON a.row_id = r.id
  JOIN judging_runcandidate c ON c.candidate_id = a.candidate_id AND c.run_id = %s
 CROSS JOIN judging_runmetric m
 WHERE r.version_id = %s AND r.valid AND m.run_id = %s
"""

_ROOM = """
INSERT INTO datasets_response (row_id, candidate_id, number, raw)
SELECT r.id, %s, %s, '' FROM datasets_row r WHERE r.version_id = %s AND r.valid {sampled} ORDER BY r.line
"""

# {asked_by}: whose replies are read again, NULL to ask anew. {which}: the attempts that are followed by another.
_PLAN_FURTHER = """
INSERT INTO judging_judgement ({columns})
SELECT j.run_id, %s + ROW_NUMBER() OVER (ORDER BY j.position) - 1, j.run_metric_id, j.row_id, j.candidate_id,
       j.response_id, j.attempt + 1, %s, {empty}, {asked_by}, {reading}
  FROM judging_judgement j
 WHERE j.run_id = %s AND j.current AND j.rater_id IS NULL AND {which}
"""
_REPLACE = """
UPDATE judging_judgement SET current = %s WHERE id IN (
       SELECT j.id FROM judging_judgement j
        WHERE j.run_id = %s AND j.current AND j.rater_id IS NULL AND {which})
"""
_IN_STATES = "j.state IN (%s, %s)"
# Not what another version of the metric has asked: its judges were asked something else.
_OF_METRIC = """j.run_metric_id = %s AND NOT EXISTS (
    SELECT 1 FROM judging_reading g WHERE g.id = j.reading_id AND g.asks)"""
_WITH_REPLIES = f"""{_OF_METRIC} AND EXISTS (
    SELECT 1 FROM judging_judgereply p WHERE p.judgement_id = COALESCE(j.asked_by_id, j.id))"""  # noqa: S608


def plan(run_id: int) -> None:
    """Make all judgements and chunks of a run that is being planned, and let it run. In one transaction: a worker
    that dies on the way leaves nothing, and the next one plans again."""
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=run_id)
        if run.state != RunState.PLANNING:
            return
        rows = sampled_rows(run)
        make_room_for_answers(run, rows)
        total = _insert_judgements(run, rows)
        make_chunks(run.pk, 0, total, of=run.metrics.count())
        run.total = total
        run.rows = run.judgements.values("row_id").distinct().count()
        run.started_at = timezone.now()
        run.state = RunState.RUNNING if total else RunState.FINISHED
        run.finished_at = None if total else timezone.now()
        run.save()


def sampled_rows(run: Run) -> list[int] | None:
    """Ids of the rows drawn by the run's seed, in the order of the draw, or None for all. The same seed draws the
    same rows."""
    if run.sample_size is None and run.stop_width is None:
        return None
    rows = list(
        Row.objects.filter(version=run.version_id, valid=True).order_by("line").values_list("pk", flat=True)
    )
    size = len(rows) if run.sample_size is None else min(run.sample_size, len(rows))
    if size == len(rows) and run.stop_width is None:
        return None
    return random.Random(run.seed).sample(rows, size)


def _insert_judgements(run: Run, rows: list[int] | None) -> int:
    parameters: list[Any] = [run.pk, True, run.pk, run.version_id, run.pk]
    drawn = ""
    if rows is not None:
        postgres = connection.vendor == "postgresql"
        drawn = (
            "JOIN unnest(%s::bigint[]) WITH ORDINALITY AS s(value, key)"
            if postgres
            else "JOIN json_each(%s) s"
        )
        drawn += " ON s.value = r.id"
        parameters.insert(2, rows if postgres else json.dumps(rows))
    # A run that may end early is judged in the order of the draw, so that what it has seen is a random sample.
    order = "r.line" if run.stop_width is None else "s.key"
    with connection.cursor() as cursor:
        cursor.execute(
            _PLAN.format(columns=_PLANNED_COLUMNS, empty=_EMPTY_TEXTS, drawn=drawn, order=order), parameters
        )
        return int(cursor.rowcount)


def make_room_for_answers(run: Run, rows: list[int] | None) -> None:
    """A response without an answer yet for each that the run is to ask for: `n` of each candidate to each row."""
    for one in RunCandidate.objects.filter(run=run).exclude(definition=""):
        n, made = CandidateModel.from_json(one.definition).n, 0
        for number in range(1, n + 1):
            made += _insert_responses(run, rows, one.candidate_id, number)
        Candidate.objects.filter(pk=one.candidate_id).update(rows=made // n, responses=made)


def _insert_responses(run: Run, rows: list[int] | None, candidate: int, number: int) -> int:
    parameters: list[Any] = [candidate, number, run.version_id]
    sampled = ""
    if rows is not None:
        postgres = connection.vendor == "postgresql"
        sampled = "AND r.id = ANY(%s)" if postgres else "AND r.id IN (SELECT value FROM json_each(%s))"
        parameters.append(rows if postgres else json.dumps(rows))
    with connection.cursor() as cursor:
        cursor.execute(_ROOM.format(sampled=sampled), parameters)
        return int(cursor.rowcount)


def make_chunks(run_id: int, first: int, count: int, of: int = 1) -> None:
    """Divide the positions first … first+count-1 of a run into chunks. What belongs together, so many in a row, stays
    in one: the judgements of one response, which may wait for the same answer."""
    chunk = max(CHUNK, min(LARGER_CHUNK, count // CHUNKS_AT_LEAST))
    end, size = first + count, of * max(1, chunk // of)
    Chunk.objects.bulk_create(
        [Chunk(run_id=run_id, first=at, last=min(at + size, end) - 1) for at in range(first, end, size)],
        batch_size=1000,
    )


def plan_again(run: Run, states: tuple[str, ...]) -> int:
    """New attempts at the judgements that ended in one of `states`, asking anew; the old ones stay. How many.

    Call inside a transaction that holds the run's row.
    """
    return _plan_further(run, _IN_STATES, list((*states, states[-1])[:2]), "NULL", "j.reading_id")


def plan_anew(run: Run, which: str, parameters: list[Any], reading: Reading | None) -> int:
    """New attempts at the judgements whose ids the query `which` gives, asking anew, by `reading` if there is one; the
    old ones stay. How many. Call inside a transaction that holds the run's row."""
    by = str(int(reading.pk)) if reading else "j.reading_id"
    return _plan_further(run, f"j.id IN ({which})", parameters, "NULL", by)


def plan_reading(run: Run, reading: Reading, *, all_of_them: bool = False) -> int:
    """New attempts that read by `reading` what its metric's judges have said; the old ones stay. How many.

    Judgements whose judges were never asked are left as they are, unless `all_of_them` are meant: a rule program needs
    no reply. Call inside a transaction that holds the run's row.
    """
    asked_by = "COALESCE(j.asked_by_id, j.id)"
    return _plan_further(
        run,
        _OF_METRIC if all_of_them else _WITH_REPLIES,
        [reading.run_metric_id],
        asked_by,
        str(int(reading.pk)),
    )


def _plan_further(run: Run, which: str, parameters: list[Any], asked_by: str, reading: str) -> int:
    last = run.judgements.order_by("-position").values_list("position", flat=True).first()
    start = 0 if last is None else last + 1
    insert = _PLAN_FURTHER.format(
        columns=_PLANNED_COLUMNS, empty=_EMPTY_TEXTS, asked_by=asked_by, reading=reading, which=which
    )
    replaced = _REPLACE.format(which=which)
    with connection.cursor() as cursor:
        cursor.execute(insert, [start, False, run.pk, *parameters])
        made = int(cursor.rowcount)
        cursor.execute(replaced, [False, run.pk, *parameters])
        cursor.execute(
            "UPDATE judging_judgement SET current = %s WHERE run_id = %s AND position >= %s",
            [True, run.pk, start],
        )
    make_chunks(run.pk, start, made)
    return made
