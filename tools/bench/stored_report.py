"""The report of a stored run of a million judgements: python -m tools.bench.stored_report [ROWS]

Four candidates and three metrics over ROWS rows (83,334), in the database of DATA_DIR or DATABASE_URL; one statement
writes the judgements. Then the report is computed as in a worker, and the page is rendered from the stored result.
Processor time excludes that of a PostgreSQL server.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from tools.bench import help_if_asked

ROWS, CANDIDATES, METRICS, SLICE = 83_334, 4, 3, 5_000
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

    from datasets.models import Candidate, Dataset, Response, Row, Version
    from evalsite.accounts.models import Project, User
    from judging.core.metric_definition import MetricDefinition
    from judging.runs import planning
    from judging.runs.models import Run
    from judging.runs.services import ChosenMetric, run_create

    User.objects.get_or_create(username="admin", defaults={"is_superuser": True, "is_staff": True})
    project, _ = Project.objects.get_or_create(slug="bench", defaults={"name": "bench"})
    dataset = Dataset.objects.create(project=project, name=f"report {Dataset.objects.count()}")
    ready = {"state": "ready", "format": "judge_only", "rows": rows, "valid_rows": rows}
    version = Version.objects.create(dataset=dataset, number=1, **ready)
    candidates = [Candidate.objects.create(version=version, name=f"model-{n}") for n in range(CANDIDATES)]
    question = '{"messages": [{"role": "user", "content": "question %d"}]}'
    answer = '{"content": "answer %d"}'
    for start in range(1, rows + 1, SLICE):
        lines = range(start, min(rows + 1, start + SLICE))
        made = Row.objects.bulk_create(
            Row(version=version, line=line, valid=True, raw=question % line) for line in lines
        )
        Response.objects.bulk_create(
            Response(row=row, candidate=one, number=1, raw=answer % row.line)
            for row in made
            for one in candidates
        )
    metrics = [
        ChosenMetric(MetricDefinition(name=f"metric {n}", postprocess="def postprocess(**kw): return 1"))
        for n in range(METRICS)
    ]
    run = run_create(
        project=project, name=dataset.name, version=version, candidates=candidates, metrics=metrics, user=None
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


def main(rows: int) -> None:
    import django

    django.setup()
    from django.test import Client

    from evalsite.accounts.models import User
    from evalsite.storage import data_dir
    from judging.reports import figures
    from judging.reports.models import KeptFigures

    data_dir.prepare()
    run = make_run(rows)
    print(f"{run.total:,} judgements", flush=True)
    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(User.objects.get(username="admin"))
    address = f"/p/bench/runs/{run.pk}/report/"
    timed("the page that waits for figures", lambda: client.get(address))
    timed("a worker works them out and keeps them", figures.keep_wanted)
    for _ in range(3):
        timed("the page from kept figures", lambda: client.get(address))
    KeptFigures.objects.filter(run=run).update(wanted=True, revision=0)
    timed("a worker works them out again", figures.keep_wanted)
    client.get(f"{address}?by=length")
    timed("a worker works out slices by a field and keeps them", figures.keep_wanted)
    for _ in range(3):
        timed("the page with kept slices", lambda: client.get(f"{address}?by=length"))


if __name__ == "__main__":
    help_if_asked(__doc__)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
