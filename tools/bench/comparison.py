"""How long comparing two large runs takes: python -m tools.bench.comparison [ITEMS]

Two runs over one version, of 5 candidates and 2 metrics, with ITEMS judgements each (100,000); every third score
differs. The second run has the same settings, another prompt, or another parser, with which all stored replies of the
first run are re-parsed. Prints processor time and elapsed time of the worker that computes and stores the comparison,
and of the page that shows it. Uses DATABASE_URL, or SQLite in DATA_DIR or a temporary folder; existing runs are
reused.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

from tools.bench import command_line
from tools.bench.lists import filled, judged_run
from tools.bench.stored_runs import open_database, signed_in_client

ITEMS = 100_000
LATER: dict[str, dict[str, Any]] = {
    "same settings": {},
    "another prompt": {"template": "Judge this: {{ data.question }}"},
    "another parser": {"parse": {"regex": r"Score: \[\[(\d+)\]\]"}},
}


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("items", nargs="?", type=int, default=ITEMS)
    items = parser.parse_args().items
    open_database()
    before = filled(items)
    figures = {name: _compared(before, _later(before, name, judge)) for name, judge in LATER.items()}
    print(json.dumps({"load": os.getloadavg()[0], "items": items, "seconds": figures}, indent=1))


def _later(before: Any, name: str, judge: dict[str, Any]) -> Any:
    """Return the second run, created on first use."""
    from django.db import transaction
    from django.db.models import F, Value
    from django.db.models.functions import Mod

    from judging.records.models import Run

    called = f"{before.name}, {name}"
    if found := Run.objects.filter(name=called).first():
        return found
    with transaction.atomic():
        run = judged_run(called, before.version, **judge)
        third = run.judgements.annotate(third=Mod("position", Value(3))).filter(third=0, score__isnull=False)
        third.update(score=Mod(F("score"), Value(10.0)) + 1)
    return run


def _compared(before: Any, after: Any) -> dict[str, float]:
    from django.urls import reverse

    from evalsite.tasks import jobs
    from judging.reports.comparison.results import JOB, changes_of, stored_comparison
    from judging.reports.comparison.stored import CHANGES, part_of

    row = CHANGES.place(after.pk, *part_of(before.pk))
    jobs.request(JOB, row.pk, here=True)
    found = _timed("worker", lambda: jobs.run(JOB, row.pk))
    comparison = stored_comparison(before, after)
    if comparison is None or not changes_of(comparison):
        raise RuntimeError("The runs were not compared")
    client = signed_in_client()
    address = reverse("runs:compare", args=(after.project.slug, after.pk)) + f"?with={before.pk}"
    client.get(address)  # warm up: load the templates, compute the reports
    return found | _timed("page", lambda: client.get(address))


def _timed(name: str, work: Callable[[], object]) -> dict[str, float]:
    began, used = time.perf_counter(), time.process_time()
    work()
    taken = {"processor": time.process_time() - used, "elapsed": time.perf_counter() - began}
    return {f"{name}, {what}": round(seconds, 2) for what, seconds in taken.items()}


if __name__ == "__main__":
    main()
