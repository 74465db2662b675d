"""From a run's choice of rows, candidates and metrics to its judgements (`not_run`) and the chunks of them."""

from __future__ import annotations

import json
import random
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from datasets.models import Row
from judging.runs.models import Chunk, Reading, Run, RunState

CHUNK = 100  # judgements that a worker leases at a time: large enough for batches, small enough to lose

_PLANNED_COLUMNS = (
    "run_id, position, run_metric_id, row_id, candidate_id, response_id, attempt, current, state, reason, "
    "detail, preprocess, verdicts, postprocess, rules, flags, asked_by_id, reading_id"
)
_EMPTY_TEXTS = "'not_run', 'waiting', '', '', '', '', '', ''"

# Set-based, because a million judgements are planned in one statement: 2–3 s instead of minutes by the ORM.
_PLAN = f"""
INSERT INTO judging_judgement ({_PLANNED_COLUMNS})
SELECT %s, ROW_NUMBER() OVER (ORDER BY r.line, c.candidate_id, a.number, m.number) - 1,
       m.id, r.id, c.candidate_id, a.id, 1, %s, {_EMPTY_TEXTS}, NULL, NULL
  FROM datasets_row r
  JOIN datasets_response a ON a.row_id = r.id
  JOIN judging_runcandidate c ON c.candidate_id = a.candidate_id AND c.run_id = %s
 CROSS JOIN judging_runmetric m
 WHERE r.version_id = %s AND r.valid AND m.run_id = %s {{sampled}}
"""  # noqa: S608 (constants only)

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
_WITH_REPLIES = (
    "j.run_metric_id = %s AND EXISTS (SELECT 1 FROM judging_judgereply p "
    "WHERE p.judgement_id = COALESCE(j.asked_by_id, j.id))"
)


def plan(run_id: int) -> None:
    """Make all judgements and chunks of a run that is being planned, and let it run. In one transaction: a worker
    that dies on the way leaves nothing, and the next one plans again."""
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=run_id)
        if run.state != RunState.PLANNING:
            return
        rows = sampled_rows(run)
        total = _insert_judgements(run, rows)
        make_chunks(run.pk, 0, total)
        run.total = total
        run.rows = run.judgements.values("row_id").distinct().count()
        run.started_at = timezone.now()
        run.state = RunState.RUNNING if total else RunState.FINISHED
        run.finished_at = None if total else timezone.now()
        run.save()


def sampled_rows(run: Run) -> list[int] | None:
    """Ids of the rows drawn by the run's seed, or None for all. The same seed draws the same rows."""
    if run.sample_size is None:
        return None
    rows = list(
        Row.objects.filter(version=run.version_id, valid=True).order_by("line").values_list("pk", flat=True)
    )
    if run.sample_size >= len(rows):
        return None
    return random.Random(run.seed).sample(rows, run.sample_size)


def _insert_judgements(run: Run, rows: list[int] | None) -> int:
    parameters: list[Any] = [run.pk, True, run.pk, run.version_id, run.pk]
    sampled = ""
    if rows is not None:
        postgres = connection.vendor == "postgresql"
        sampled = "AND r.id = ANY(%s)" if postgres else "AND r.id IN (SELECT value FROM json_each(%s))"
        parameters.append(rows if postgres else json.dumps(rows))
    with connection.cursor() as cursor:
        cursor.execute(_PLAN.format(sampled=sampled), parameters)
        return int(cursor.rowcount)


def make_chunks(run_id: int, first: int, count: int) -> None:
    """Divide the positions first … first+count-1 of a run into chunks."""
    end = first + count
    Chunk.objects.bulk_create(
        [Chunk(run_id=run_id, first=at, last=min(at + CHUNK, end) - 1) for at in range(first, end, CHUNK)],
        batch_size=1000,
    )


def plan_again(run: Run, states: tuple[str, ...]) -> int:
    """New attempts at the judgements that ended in one of `states`, asking anew; the old ones stay. How many.

    Call inside a transaction that holds the run's row.
    """
    return _plan_further(run, _IN_STATES, list((*states, states[-1])[:2]), "NULL", "j.reading_id")


def plan_reading(run: Run, reading: Reading) -> int:
    """New attempts that read by `reading` what its metric's judges have said; the old ones stay. How many.

    Judgements whose judges were never asked are left as they are. Call inside a transaction that holds the run's row.
    """
    asked_by = "COALESCE(j.asked_by_id, j.id)"
    return _plan_further(run, _WITH_REPLIES, [reading.run_metric_id], asked_by, str(int(reading.pk)))


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
