"""How the site scales: python -m tools.bench.scale workers | long [ROWS] | import [ROWS]

workers   two workers compared with one, by processor time and elapsed time, for runs of the same size
long      one run over many responses: memory of the worker, rate by tenths, and page times meanwhile (nice -n 10 …):
          the list of runs, the run's page, its judgements (first page, middle page, by score), its report and the
          system status, requested by a signed-in user
import    one file of many rows of 1 KB: the worker's memory, and page times meanwhile (home page, data sets, the
          version being imported, another version's rows)

All use DATABASE_URL, or SQLite in a temporary folder.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tools.bench import ROOT, Figure, command_line
from tools.bench.engine import judge
from tools.bench.reading_rows import ordinary, write_rows
from tools.bench.stored_runs import open_database, signed_in_client, stored_version

ROWS_OF_WORKERS = 2_000
LONG_ROWS = 1_000_000
FEW_ROWS = 2_000  # rows of the other version, already imported


def make_run(url: str, rows: int, concurrency: int) -> int:
    """Create a run of one judge model over `rows` answers; return its id."""
    from judging.core.metric_definition import JudgeModel, MetricDefinition
    from judging.endpoints.models import Endpoint
    from judging.records.models import Run
    from judging.runs.services import ChosenMetric, run_create

    name = f"{rows} {Run.objects.count()}"
    version = stored_version(name, rows, ["alpha"])
    project, template = version.dataset.project, "{{ data.question }} {{ response.content }}"
    endpoint = Endpoint.objects.create(
        project=project, name=name, url=url, model="m", concurrency=concurrency
    )
    judge_model = JudgeModel(name="j", url=url, model="m", template=template, endpoint=endpoint.pk)
    metrics = [ChosenMetric(MetricDefinition(name="q", judges=(judge_model,)))]
    candidates = list(version.candidates.all())
    run = run_create(
        project=project, name=name, version=version, candidates=candidates, metrics=metrics, user=None
    )
    return run.pk


def uploaded(path: Path) -> Any:
    """A new version of a file that a worker has to import."""
    from datasets.models import Dataset, Version
    from evalsite.accounts.models import Project

    project, _ = Project.objects.get_or_create(slug="bench", defaults={"name": "bench"})
    dataset = Dataset.objects.create(project=project, name=f"{path.stem} {Dataset.objects.count()}")
    return Version.objects.create(dataset=dataset, number=1, stored_as=str(path), size=path.stat().st_size)


@contextmanager
def running(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command of the site, on the database that this process is connected to."""
    environment = {**os.environ, "DEMO_JUDGE": "0", **environment}
    process = subprocess.Popen([sys.executable, "manage.py", *arguments], cwd=ROOT, env=environment)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def done_of(run: int) -> tuple[int, str]:
    from judging.records.models import Run

    found = Run.objects.get(pk=run)
    return found.done, found.state


def judged(url: str, workers: int, rows: int, concurrency: int) -> float:
    """Judgements per second with this number of workers, from the first tenth of the run to its end."""
    run = make_run(url, rows, concurrency)
    with ExitStack() as stack:
        for _ in range(workers):
            stack.enter_context(running("worker", "--queue", "runs"))
        while done_of(run)[0] < rows // 10:
            time.sleep(0.1)
        began, from_count = time.monotonic(), done_of(run)[0]
        while done_of(run)[1] == "running":
            time.sleep(0.1)
        return (rows - from_count) / (time.monotonic() - began)


def workers_figure() -> Figure:
    """Throughput of two workers relative to one, with 32 slots each; the latency leaves processor time to spare."""
    with tempfile.TemporaryDirectory() as name, judge("--median", "0.5") as url:
        open_database(name)
        one = judged(url, 1, ROWS_OF_WORKERS, 32)
        two = judged(url, 2, ROWS_OF_WORKERS, 64)
    return Figure.at_least("two workers to one", two / one, 1.8, f"{one:.0f}/s and {two:.0f}/s")


def scale_figures() -> Iterator[Figure]:
    """Must run last: it connects this process to the benchmark site's database for good."""
    yield workers_figure()


def long_run(rows: int) -> dict[str, object]:
    """One worker's memory (MB) and rate for each tenth of the run, and page times (ms) meanwhile."""
    port = "18945"
    with tempfile.TemporaryDirectory() as name, judge() as url:
        open_database(name)
        signed_in_client()  # creates the administrator account that visitors use
        run = make_run(url, rows, 64)
        deep = f"{rows // 2}~{rows // 2}"
        lists = ("", f"?after={deep}", "?sort=score")
        pages = ("", f"{run}/", *(f"{run}/judgements/{one}" for one in lists), f"{run}/report/")
        paths = (*(f"/p/bench/runs/{page}" for page in pages), "/status/")
        visitor = Visitor(f"http://127.0.0.1:{port}", paths)
        with (
            running("serve", "--web-only", PORT=port) as web,
            visitor.visiting(),
            running("worker", "--queue", "runs") as worker,
        ):
            tenths = []
            for part in range(1, 11):
                tenths.append(_tenth(run, worker.pid, rows * part // 10))
                print(json.dumps(tenths[-1] | visitor.summary()), file=sys.stderr, flush=True)
            cpu_of_web = _cpu_of_group(web.pid)
    visits = sum(len(taken) for taken in visitor.seconds.values())
    return {
        "rows": rows,
        "tenths": tenths,
        "pages": visitor.figures(),
        "web_cpu_ms_a_page": cpu_of_web * 1000 / visits,
        "load": os.getloadavg()[0],
    }


def long_import(rows: int) -> dict[str, object]:
    """Elapsed seconds, processor time and memory (MB) of a worker that imports one file, and page times meanwhile."""
    port = "18946"
    with tempfile.TemporaryDirectory() as name:
        open_database(name)
        signed_in_client()  # creates the administrator account that visitors use
        from datasets.importing.worker import import_version

        few, many = Path(name) / "few.jsonl", Path(name) / "many.jsonl"
        write_rows(few, ordinary, FEW_ROWS)
        write_rows(many, ordinary, rows)
        small, large = uploaded(few), uploaded(many)
        import_version(small.pk)
        sets = "/p/bench/datasets/"
        paths = ("/p/bench/", sets, f"{sets}{large.dataset_id}/v1/", f"{sets}{small.dataset_id}/v1/rows/")
        visitor = Visitor(f"http://127.0.0.1:{port}", paths, rest=0.2)
        with (
            running("serve", "--web-only", PORT=port),
            visitor.visiting(),
            running("worker", "--queue", "data") as worker,
        ):
            _wait_for(large.pk, "reading")
            began = time.monotonic()
            _wait_for(large.pk, "ready")
            seconds = time.monotonic() - began
            used = {"cpu_seconds": _cpu(worker.pid), "peak_mb": _memory(worker.pid, "VmHWM")}
            figures = visitor.figures()
    return {"rows": rows, "seconds": seconds, **used, "pages": figures, "load": os.getloadavg()[0]}


def _wait_for(version: int, state: str) -> None:
    from datasets.models import Version

    while Version.objects.get(pk=version).state != state:
        time.sleep(0.1)


@dataclass
class Visitor:
    """Requests each page repeatedly while other processes work. A redirect or any status but 200 is an error."""

    site: str
    paths: tuple[str, ...]
    rest: float = 1.0  # seconds before each round
    seconds: dict[str, list[float]] = field(default_factory=dict)
    failed: str = ""

    def __post_init__(self) -> None:
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))

    @contextmanager
    def visiting(self) -> Iterator[None]:
        """Visit pages once the site responds, until the block ends; then raise RuntimeError if a page failed."""
        self._wait()
        stop = threading.Event()
        thread = threading.Thread(target=self._visit, args=(stop,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        if self.failed:
            raise RuntimeError(self.failed)

    def figures(self) -> dict[str, dict[str, float]]:
        """{path: number of visits, median and 95th percentile in ms}."""
        return {
            path: {
                "visits": len(taken),
                "median_ms": statistics.median(taken) * 1000,
                "p95_ms": statistics.quantiles(taken, n=20)[18] * 1000,
            }
            for path, taken in self.seconds.items()
        }

    def summary(self) -> dict[str, float]:
        """Median of each page's last twenty visits in ms."""
        return {path: round(statistics.median(taken[-20:]) * 1000) for path, taken in self.seconds.items()}

    def _wait(self) -> None:
        until = time.monotonic() + 120
        while True:
            try:
                self.look(self.paths[0])  # also signs in
                return
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)

    def _visit(self, stop: threading.Event) -> None:
        try:
            while not stop.wait(self.rest):
                for path in self.paths:
                    began = time.perf_counter()
                    self.look(path)
                    self.seconds.setdefault(path, []).append(time.perf_counter() - began)
        except Exception as error:
            self.failed = f"{type(error).__name__}: {error}"

    def look(self, path: str) -> None:
        with self.opener.open(self.site + path, timeout=30) as answer:
            answer.read()
            if (answer.status, unquote(answer.url)) != (200, self.site + path):
                raise RuntimeError(f"{path} was answered by {answer.url} with status {answer.status}")


def _tenth(run: int, pid: int, until: int) -> dict[str, float]:
    began, (count, _) = time.monotonic(), done_of(run)
    cpu = _cpu(pid)
    while (found := done_of(run))[0] < until and found[1] in ("running", "planning"):
        time.sleep(0.5)
    seconds, made = time.monotonic() - began, max(1, found[0] - count)
    return {
        "rate": made / seconds,
        "cpu_ms": (_cpu(pid) - cpu) * 1000 / made,
        "memory_mb": _memory(pid, "VmRSS"),
        "peak_mb": _memory(pid, "VmHWM"),
    }


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _cpu_of_group(pid: int) -> float:
    """Processor seconds of a process and its living descendants."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return _cpu(pid) + sum(_cpu_of_group(int(child)) for child in children)


def _memory(pid: int, which: str) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split(f"{which}:")[1].split()[0]) / 1024


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("what", choices=["workers", "long", "import"])
    parser.add_argument("rows", nargs="?", type=int, default=LONG_ROWS)
    chosen = parser.parse_args()
    if chosen.what == "workers":
        print(workers_figure())
    else:
        measured = {"long": long_run, "import": long_import}[chosen.what]
        print(json.dumps(measured(chosen.rows), indent=1))


if __name__ == "__main__":
    main()
