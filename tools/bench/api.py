"""The HTTP API: a run read by one client, and lists next to their pages: python -m tools.bench.api

A run of 10,000 judgements (as in tools.bench.lists) is read with `fields=core,value` in pages of 1,000, compressed as
clients ask for it. Each list is asked for as many items as its page shows. Elapsed time in the server, without a
network, on SQLite, and on PostgreSQL if a server responds.
"""

from __future__ import annotations

import gzip
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from tools.bench import Figure, command_line, python
from tools.bench.importing import postgresql
from tools.bench.lists import filled
from tools.bench.stored_runs import open_database, signed_in_client

JUDGEMENTS, PAGE = 10_000, 1000
LEAST_A_SECOND = 20_000
MOST_RATIO = 1.3
LISTED = 50  # as many as pages show
ROUNDS = 15
LISTS = {
    "data sets": ("datasets", "datasets/"),
    "rows": ("datasets/{dataset}/versions/1/rows", "datasets/{dataset}/v1/rows/"),
    "metrics": ("metrics", "metrics/"),
    "runs": ("runs", "runs/"),
    "judgements": ("runs/{run}/judgements", "runs/{run}/judgements/"),
    "evaluations": ("evaluations", "evaluations/"),
}
"""Name → address in the API, address of the page."""


def fill(judgements: int) -> Any:
    """A run of so many judgements, in a project with LISTED more of all that is listed."""
    from datasets.models import Dataset, Version
    from judging.core.metric_definition import JudgeModel, MetricDefinition
    from judging.core.people.criteria import Criterion
    from judging.metrics.services import metric_create
    from judging.people.sampling import ItemChoice
    from judging.people.services import evaluation_create
    from judging.records.models import Run

    run = filled(judgements)
    project, version = run.project, run.version
    judge = JudgeModel(name="judge", url="http://127.0.0.1:9/v1", model="m", template="{{ data.question }}")
    criteria = [Criterion(name="quality")]
    choice = ItemChoice(version, candidates=list(version.candidates.all()[:1]), sample_size=3)
    for number in range(LISTED):
        name = f"number {number}"
        dataset = Dataset.objects.create(project=project, name=name)
        Version.objects.create(dataset=dataset, number=1, state="ready", rows=5, valid_rows=5)
        metric_create(project=project, definition=MetricDefinition(name=name, judges=(judge,)), user=None)
        Run.objects.create(project=project, name=name, version=version, state="finished", total=9, scored=9)
        evaluation_create(
            project=project, name=f"people {name}", choice=choice, criteria=criteria, raters=[], user=None
        )
    return run


@dataclass
class Visitor:
    """Requests from a program with a token, or from a browser. `seconds`: what the requests took so far."""

    headers: dict[str, str]
    client: Any
    seconds: float = 0.0

    def get(self, address: str, **query: object) -> Any:
        began = time.perf_counter()
        response = self.client.get(address, query, headers={"Accept-Encoding": "gzip", **self.headers})
        self.seconds += time.perf_counter() - began
        if response.status_code != 200:
            raise RuntimeError(f"{address} was answered with status {response.status_code}")
        return response

    def timed(self, address: str, **query: object) -> float:
        """Seconds of a request."""
        self.seconds = 0.0
        self.get(address, **query)
        return self.seconds


def visitors() -> tuple[Visitor, Visitor]:
    """A program and a browser, both of the same administrator."""
    from django.test import Client

    from evalsite.accounts.models import User
    from evalsite.accounts.tokens import token_create

    browser = signed_in_client()
    _token, secret = token_create(user=User.objects.get(username="admin"), name="bench", days=None)
    program = Client(headers={"host": "127.0.0.1"})
    return Visitor({"Authorization": f"Bearer {secret}"}, program), Visitor({}, browser)


def judgements_a_second(program: Visitor, address: str) -> float:
    """Read all judgements of a run once."""
    program.seconds, count = 0.0, 0
    cursor: str | None = ""
    while cursor is not None:
        response = program.get(address, limit=PAGE, cursor=cursor, fields="core,value")
        document = json.loads(gzip.decompress(response.content))
        count, cursor = count + len(document["items"]), document["next"]
    return count / program.seconds


def measured(judgements: int) -> dict[str, Any]:
    """{"rate": judgements a second, "lists": {name: [seconds of the call, of the page]}} in this process's database."""
    open_database()
    run = fill(judgements)
    program, browser = visitors()
    places = {"run": run.pk, "dataset": run.version.dataset_id}
    lists: dict[str, list[float]] = {}
    for name, (call, page) in LISTS.items():
        call = f"/api/v1/projects/bench/{call.format(**places)}"
        page = f"/p/bench/{page.format(**places)}"
        pairs = [(program.timed(call, limit=LISTED), browser.timed(page)) for _ in range(ROUNDS)]
        lists[name] = [median(times) for times in zip(*pairs[1:], strict=True)]  # the first loads templates
    address = f"/api/v1/projects/bench/runs/{run.pk}/judgements"
    return {"rate": max(judgements_a_second(program, address) for _ in range(5)), "lists": lists}


def api_figures() -> Iterator[Figure]:
    yield from _figures("SQLite", "")
    with postgresql() as url:
        if url:
            yield from _figures("PostgreSQL", url)


def _figures(database: str, url: str) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        found = json.loads(
            python(
                *("-m", "tools.bench.api", "--here"),
                **{"DATA_DIR": folder, "DATABASE_URL": url, "API_REQUESTS_PER_MINUTE": "1000000"},
            )
        )
    name = f"judgements read through the API per second, {database}"
    yield Figure.at_least(name, found["rate"], LEAST_A_SECOND, f"pages of {PAGE:,}")
    for name, (call, page) in found["lists"].items():
        detail = f"{call * 1000:.0f} ms to {page * 1000:.0f} ms"
        yield Figure.at_most(
            f"API, list of {name}, relative to its page, {database}", call / page, MOST_RATIO, detail
        )


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--here", action="store_true", help="only in this process's database, as JSON")
    if parser.parse_args().here:
        print(json.dumps(measured(JUDGEMENTS)))
        return
    for figure in api_figures():
        print(figure, flush=True)


if __name__ == "__main__":
    main()
