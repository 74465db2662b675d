"""The report of a stored run of a million judgements: python -m tools.bench.stored_report [ROWS]

Four candidates and three metrics over ROWS rows (83,334), in the database of DATABASE_URL, or SQLite in DATA_DIR or a
temporary folder; one statement writes the judgements. Then the report is computed as in a worker, and the page is
rendered from the stored result. Processor time excludes that of a PostgreSQL server.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from tools.bench import command_line
from tools.bench.stored_runs import open_database, signed_in_client, stored_version

ROWS, CANDIDATES, METRICS = 83_334, 4, 3
SAID = """UPDATE judging_judgement SET seconds = 0.5, finished_at = 1700000000,
  state = CASE WHEN position % 50 = 0 THEN 'error' ELSE 'scored' END,
  reason = CASE WHEN position % 50 = 0 THEN 'timeout' ELSE '' END,
  score = CASE WHEN position % 50 = 0 THEN NULL ELSE {score} END,
  value = CASE WHEN position % 50 = 0 THEN NULL ELSE CAST({score} AS text) END
  WHERE run_id = {run}"""
SCORE = "((position * 7 + position / 13 + candidate_id * 3) % 10 + 1)"


def make_run(rows: int) -> Any:
    """Create a finished run with made-up scores."""
    from django.db import connection
    from django.utils import timezone

    from judging.core.metric_definition import MetricDefinition, Script
    from judging.engine import planning
    from judging.records.models import Run
    from judging.runs.services import ChosenMetric, run_create

    name = f"report {Run.objects.count()}"
    version = stored_version(name, rows, [f"model-{n}" for n in range(CANDIDATES)])
    script = Script(kind="postprocess", source="def postprocess(**kw): return 1")
    metrics = [ChosenMetric(MetricDefinition(name=f"metric {n}", scripts=(script,))) for n in range(METRICS)]
    run = run_create(
        project=version.dataset.project,
        name=name,
        version=version,
        candidates=list(version.candidates.all()),
        metrics=metrics,
        user=None,
    )
    planning.plan(run.pk)
    with connection.cursor() as cursor:
        cursor.execute(SAID.format(score=SCORE, run=run.pk))
        cursor.execute("ANALYZE")
    total = Run.objects.get(pk=run.pk).total
    errors = -(-total // 50)
    now = timezone.now()
    ended = {"state": "finished", "started_at": now, "finished_at": now, "revision": 1}
    Run.objects.filter(pk=run.pk).update(scored=total - errors, errors=errors, **ended)
    return Run.objects.get(pk=run.pk)


def timed(what: str, do: Callable[[], object]) -> None:
    clock, processor = time.monotonic(), time.process_time()
    do()
    spent = time.monotonic() - clock, time.process_time() - processor
    print(f"{what}: {spent[0]:.3f} s, processor {spent[1]:.3f} s", flush=True)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("rows", nargs="?", type=int, default=ROWS)
    rows = parser.parse_args().rows
    open_database()
    from evalsite.tasks import jobs
    from judging.reports.stored import FIGURES

    def requested() -> None:
        jobs.do_short_work(threading.Event())

    run, client = make_run(rows), signed_in_client()
    print(f"{run.total:,} judgements", flush=True)
    address = f"/p/bench/runs/{run.pk}/report/"
    timed("the page that waits for figures", lambda: client.get(address))
    timed("a worker works them out and keeps them", requested)
    for _ in range(3):
        timed("the page from kept figures", lambda: client.get(address))
    FIGURES.all().filter(subject=run.pk).update(revision=0)
    jobs.request("compute_figures", run.pk)
    timed("a worker works them out again", requested)
    client.get(f"{address}?by=length")
    timed("a worker works out slices by a field and keeps them", requested)
    for _ in range(3):
        timed("the page with kept slices", lambda: client.get(f"{address}?by=length"))


if __name__ == "__main__":
    main()
