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
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import unquote

from tools.bench import help_if_asked
from tools.bench.engine import ROOT, Figure, judge
from tools.bench.reading_rows import ordinary, write_rows

ROWS_OF_WORKERS = 2_000
LONG_ROWS = 1_000_000
FEW_ROWS = 2_000  # rows of the other version, already imported
PREPARE = """
import sys, json, django; django.setup()
from django.db import connection
from evalsite.storage import data_dir; data_dir.prepare()
from datasets.models import Candidate, Dataset, Response, Row, Version
from evalsite.accounts.models import Project, User
from judging.core.pipeline import JudgeModel, MetricDefinition
from judging.runs.services import ChosenMetric, run_create
url, rows, concurrency = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
User.objects.get_or_create(username="admin", defaults={"is_superuser": True, "is_staff": True})
project, _ = Project.objects.get_or_create(slug="bench", defaults={"name": "bench"})
dataset = Dataset.objects.create(project=project, name=f"{rows} {Dataset.objects.count()}")
version = Version.objects.create(dataset=dataset, number=1, state="ready", format="judge_only", rows=rows,
                                 valid_rows=rows)
candidate = Candidate.objects.create(version=version, name="alpha", rows=rows, responses=rows)
for start in range(1, rows + 1, 5000):
    lines = range(start, min(rows + 1, start + 5000))
    made = Row.objects.bulk_create(
        Row(version=version, line=n, valid=True, raw='{"messages": [{"role": "user", "content": "question %d"}]}' % n)
        for n in lines)
    Response.objects.bulk_create(
        Response(row=row, candidate=candidate, number=1, raw='{"content": "answer %d"}' % row.line) for row in made)
from judging.endpoints.models import Endpoint
endpoint = Endpoint.objects.create(project=project, name=dataset.name, url=url, model="m", concurrency=concurrency)
judge = JudgeModel(name="j", url=url, model="m", template="{{ data.question }} {{ response.content }}",
                   endpoint=endpoint.pk)
run = run_create(project=project, name=dataset.name, version=version, candidates=[candidate],
                 metrics=[ChosenMetric(MetricDefinition(name="q", judges=(judge,)))], user=None)
print(run.pk)
"""

PREPARE_IMPORT = """
import sys, django; django.setup()
from pathlib import Path
from datasets.importing.worker import import_version
from datasets.models import Dataset, Version
from evalsite.accounts.models import Project, User
User.objects.get_or_create(username="admin", defaults={"is_superuser": True, "is_staff": True})
project, _ = Project.objects.get_or_create(slug="bench", defaults={"name": "bench"})
for path in sys.argv[1:]:
    dataset = Dataset.objects.create(project=project, name=f"{Path(path).stem} {Dataset.objects.count()}")
    version = Version.objects.create(dataset=dataset, number=1, stored_as=path, size=Path(path).stat().st_size)
    print(dataset.pk, version.pk)
    if path == sys.argv[1]:
        import_version(version.pk, "bench:1:1")
"""


class Site:
    """A database and the processes that use it."""

    def __init__(self, folder: Path) -> None:
        self.environment = {
            **os.environ,
            "DATA_DIR": str(folder),
            "DJANGO_SETTINGS_MODULE": "evalsite.settings",
            "DEMO_JUDGE": "0",
        }

    def make_run(self, url: str, rows: int, concurrency: int) -> int:
        command = [sys.executable, "-c", PREPARE, url, str(rows), str(concurrency)]
        done = subprocess.run(
            command, cwd=ROOT, env=self.environment, check=True, stdout=subprocess.PIPE, text=True
        )
        return int(done.stdout.split()[-1])

    def take_in(self, first: Path, second: Path) -> list[list[int]]:
        """Create a version of each file; import only the first. Return [data set id, version id] of each."""
        command = [sys.executable, "-c", PREPARE_IMPORT, str(first), str(second)]
        done = subprocess.run(
            command, cwd=ROOT, env=self.environment, check=True, stdout=subprocess.PIPE, text=True
        )
        return [[int(key) for key in line.split()] for line in done.stdout.splitlines()]

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        process = subprocess.Popen([sys.executable, "manage.py", *arguments], cwd=ROOT, env=self.environment)
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


def done_of(run: int) -> tuple[int, str]:
    from judging.runs.models import Run

    found = Run.objects.get(pk=run)
    return found.done, found.state


def judged(site: Site, url: str, workers: int, rows: int, concurrency: int) -> float:
    """Judgements per second with this number of workers, from the first tenth of the run to its end."""
    run = site.make_run(url, rows, concurrency)
    processes = [site.running("worker", "--queue", "runs") for _ in range(workers)]
    for process in processes:
        process.__enter__()
    try:
        while done_of(run)[0] < rows // 10:
            time.sleep(0.1)
        began, from_count = time.monotonic(), done_of(run)[0]
        while done_of(run)[1] == "running":
            time.sleep(0.1)
        return (rows - from_count) / (time.monotonic() - began)
    finally:
        for process in processes:
            process.__exit__(None, None, None)


def workers_figure() -> Figure:
    """Throughput of two workers relative to one, with 32 slots each; the latency leaves processor time to spare."""
    with tempfile.TemporaryDirectory() as name, judge("--median", "0.5") as url:
        site = use(Path(name))
        one = judged(site, url, 1, ROWS_OF_WORKERS, 32)
        two = judged(site, url, 2, ROWS_OF_WORKERS, 64)
    ratio = two / one
    return Figure("two workers to one", ratio, ">= 1.8", ratio >= 1.8, f"{one:.0f}/s and {two:.0f}/s")


def scale_figures() -> Iterator[Figure]:
    """Must run last: it connects this process to the benchmark site's database for good."""
    yield workers_figure()


def use(folder: Path) -> Site:
    """Create a site and connect this process to its database."""
    site = Site(folder)
    os.environ.update({name: site.environment[name] for name in ("DATA_DIR", "DJANGO_SETTINGS_MODULE")})
    import django

    django.setup()
    from evalsite.storage import data_dir

    data_dir.prepare()
    return site


def long_run(rows: int) -> dict[str, object]:
    """One worker's memory (MB) and rate for each tenth of the run, and page times (ms) meanwhile."""
    port = "18945"
    with tempfile.TemporaryDirectory() as name, judge() as url:
        site = use(Path(name))
        site.environment["PORT"] = port
        run = site.make_run(url, rows, 64)
        deep = f"{rows // 2}~{rows // 2}"
        lists = ("", f"?after={deep}", "?sort=score")
        pages = ("", f"{run}/", *(f"{run}/judgements/{one}" for one in lists), f"{run}/report/")
        paths = (*(f"/p/bench/runs/{page}" for page in pages), "/status/")
        visitor = Visitor(f"http://127.0.0.1:{port}", paths)
        with (
            site.running("serve", "--web-only") as web,
            visitor.visiting(),
            site.running("worker", "--queue", "runs") as worker,
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
        site = use(Path(name))
        site.environment["PORT"] = port
        few, many = Path(name) / "few.jsonl", Path(name) / "many.jsonl"
        write_rows(few, ordinary, FEW_ROWS)
        write_rows(many, ordinary, rows)
        (small, _), (large, version) = site.take_in(few, many)
        sets = "/p/bench/datasets/"
        paths = ("/p/bench/", sets, f"{sets}{large}/v1/", f"{sets}{small}/v1/rows/")
        visitor = Visitor(f"http://127.0.0.1:{port}", paths, rest=0.2)
        with (
            site.running("serve", "--web-only"),
            visitor.visiting(),
            site.running("worker", "--queue", "data") as worker,
        ):
            _wait_for(version, "reading")
            began = time.monotonic()
            _wait_for(version, "ready")
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
    help_if_asked(__doc__)
    if sys.argv[1] == "workers":
        print(workers_figure())
    else:
        measured = {"long": long_run, "import": long_import}[sys.argv[1]]
        print(json.dumps(measured(int(sys.argv[2]) if len(sys.argv) > 2 else LONG_ROWS), indent=1))


if __name__ == "__main__":
    main()
