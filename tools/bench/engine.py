"""Benchmarks of the run engine: `manage.py evaluate` with the scripted judge, compared with bare loops."""

from __future__ import annotations

import json
import math
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tools.bench import ROOT, Figure, python
from tools.bench.watched import run_watched

IN_FLIGHT = 64
TEMPLATE = (
    "Question: {{ data.question }}\nReference: {{ data.ref_answer }}\nAnswer: {{ response.content }}\n[[n]]"
)


@contextmanager
def judge(*options: str) -> Iterator[str]:
    """Start a scripted judge in a separate process; yield its URL."""
    command = [sys.executable, "-m", "judging.core.judges.scripted", "--port", "0", *options]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def write_rows(path: Path, rows: int, size: int) -> None:
    """A judge-only file of `rows` rows of about `size` bytes, one candidate with one answer each."""
    filler = "the quick brown fox jumps over the lazy dog " * (size // 44)
    with path.open("w") as file:
        for number in range(rows):
            answer = {"content": f"answer {number} {filler[: size // 2]}"}
            row = {
                "messages": [{"role": "user", "content": f"question {number} {filler[: size // 2]}"}],
                "ref_answer": "forty-two",
                "model_outputs": [{"model_name": "alpha", "responses": [answer]}],
            }
            file.write(json.dumps(row) + "\n")


def write_metrics(path: Path, name: str, url: str, *, rules: str = "", checklist: str = "") -> None:
    """A metrics file with the rule program `rules` if given, otherwise with the judge model at `url`."""
    judge_model = {"name": "j", "source": "URL", "url": url, "model": "scripted"}
    judge_model["judge_template_content"] = checklist or TEMPLATE
    judged = {"type": "JUDGE_MODEL", "judge_model": judge_model}
    pipeline = [{"type": "RULES", "file_content": rules} if rules else judged]
    metric = {"name": "quality", "pipeline": pipeline} | ({"gives": "checklist"} if checklist else {})
    path.write_text(json.dumps({"data_name": name, "metrics": [metric]}))


def write_requests(data: Path, path: Path) -> None:
    """Write the bodies of the requests that `evaluate` sent, one per line, for a bare loop."""
    with sqlite3.connect(data / "evalsite.sqlite3") as database, path.open("w") as file:
        for (request,) in database.execute("SELECT request FROM judging_judgereply"):
            file.write(request + "\n")


@dataclass(frozen=True)
class Measured:
    cpu: float
    seconds: float
    peak_mb: float
    judgements: int


def evaluate(
    folder: Path,
    data: Path,
    url: str,
    rows: Path,
    name: str,
    *,
    rules: str = "",
    checklist: str = "",
    in_flight: int = IN_FLIGHT,
) -> Measured:
    """Run `manage.py evaluate`; measure processor time and peak memory with all children, and the run's elapsed time.

    Judges with the rule program `rules` if given, otherwise with the judge model at `url`; by the rows' rubrics if
    there is a template for a `checklist`.
    """
    metrics = folder / "metrics.yaml"
    write_metrics(metrics, name, url, rules=rules, checklist=checklist)
    command = ["manage.py", "evaluate", str(rows), "--metrics", str(metrics)]
    command += ["--out", str(folder / "out"), "--name", name, "--json"]
    environment = {"DATA_DIR": str(data), "DATABASE_URL": "", "JUDGE_CONCURRENCY": str(in_flight)}
    printed, usage = run_watched(folder, *command, **environment)
    result = json.loads(printed)
    assert result["scored"] == result["judgements"], result
    with sqlite3.connect(data / "evalsite.sqlite3") as database:
        times = database.execute(
            "SELECT started_at, finished_at FROM judging_run WHERE name = ?", [name]
        ).fetchone()
    began, ended = (datetime.fromisoformat(time) for time in times)
    return Measured(usage["cpu"], (ended - began).total_seconds(), usage["peak_mb"], result["judgements"])


def bare(kind: str, url: str, requests: Path, in_flight: int = IN_FLIGHT) -> dict[str, float]:
    address = f"{url}/chat/completions"
    printed = python("-m", "tools.bench.bare", kind, address, str(requests), str(in_flight))
    measured: dict[str, float] = json.loads(printed)
    return measured


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "data"
        rows = folder / "rows.jsonl"
        with judge() as url:
            write_rows(rows, 500, 1000)
            small = evaluate(folder, data, url, rows, "small")
            yield from _processor_time(folder, data, url, rows)
            yield from _processor_time_at(folder, data, url, rows)
            yield from _memory(folder, data, url, small)
        yield from _rate_of_one_worker(folder, data, rows)
        yield from _rates(folder, data, rows)


def _processor_time(folder: Path, data: Path, url: str, rows: Path) -> Iterator[Figure]:
    write_rows(rows, 10_000, 1000)
    ours = evaluate(folder, data, url, rows, "processor time")
    write_requests(data, folder / "requests.jsonl")
    loop = bare("httpx", url, folder / "requests.jsonl")
    requests = sum(1 for _ in (folder / "requests.jsonl").open())
    per_judgement, per_request = ours.cpu / ours.judgements, loop["cpu"] / requests
    ratio = per_judgement / per_request
    detail = f"{per_judgement * 1000:.2f} ms per judgement, upload to report; {per_request * 1000:.2f} ms per request"
    yield Figure.at_most("processor time, relative to a bare httpx loop", ratio, 0.40, detail)


def _processor_time_at(folder: Path, data: Path, url: str, rows: Path) -> Iterator[Figure]:
    """Processor time of the whole job, including start, upload and report, at two concurrency levels."""
    write_rows(rows, 10_000, 1000)
    for in_flight in (IN_FLIGHT, 512):
        ours = evaluate(folder, data, url, rows, f"in flight {in_flight}", in_flight=in_flight)
        loop = bare("aiohttp", url, folder / "requests.jsonl", in_flight)
        each = ours.cpu / ours.judgements * 1000
        detail = f"a bare aiohttp loop {loop['cpu'] / ours.judgements * 1000:.2f} ms"
        name = f"milliseconds of processor time per judgement at {in_flight} in flight"
        yield Figure.at_most(name, each, 1.0, detail)


def _rate_of_one_worker(folder: Path, data: Path, rows: Path) -> Iterator[Figure]:
    write_rows(rows, 20_000, 500)
    with judge("--median", "0.2") as url:
        ours = evaluate(folder, data, url, rows, "256 in flight", in_flight=256)
        loop = bare("aiohttp", url, folder / "requests.jsonl", 256)
    rate = ours.judgements / ours.seconds
    bare_rate = 10_000 / loop["seconds"]
    detail = f"a bare aiohttp loop {bare_rate:.0f}/s; the slots allow {256 / 0.2:.0f}/s"
    name = "judgements per second of one worker at 200 ms and 256 in flight"
    yield Figure.at_least(name, rate, 900, detail)


def _memory(folder: Path, data: Path, url: str, small: Measured) -> Iterator[Figure]:
    large_rows = folder / "large.jsonl"
    write_rows(large_rows, 10_000, 20_000)
    large = evaluate(folder, data, url, large_rows, "large")
    more = large.peak_mb - small.peak_mb
    detail = f"{small.peak_mb:.0f} MB for 500 rows, {large.peak_mb:.0f} MB for {large_rows.stat().st_size / 1e6:.0f} MB"
    yield Figure.at_most("memory, MB more for a 200 MB file", more, 100, detail)


def _rates(folder: Path, data: Path, rows: Path) -> Iterator[Figure]:
    write_rows(rows, 9_600, 500)
    with judge("--median", "0.2") as url:
        ours = evaluate(folder, data, url, rows, "200 ms")
        with sqlite3.connect(data / "evalsite.sqlite3") as database:
            last = database.execute(
                "SELECT request FROM judging_judgereply ORDER BY id DESC LIMIT 9600"
            ).fetchall()
        (folder / "requests.jsonl").write_text("\n".join(request for (request,) in last) + "\n")
        loop = bare("aiohttp", url, folder / "requests.jsonl")
    ratio = loop["seconds"] / ours.seconds
    detail = f"{ours.judgements / ours.seconds:.0f}/s, bare {len(last) / loop['seconds']:.0f}/s"
    yield Figure.at_least(
        "rate at 200 ms and 64 in flight, relative to a bare aiohttp loop", ratio, 0.97, detail
    )
    write_rows(rows, 5_000, 500)
    median, sigma = 0.5, 0.9
    with judge("--median", str(median), "--sigma", str(sigma)) as url:
        uneven = evaluate(folder, data, url, rows, "log-normal")
    ceiling = IN_FLIGHT / (median * math.exp(sigma**2 / 2))
    rate = uneven.judgements / uneven.seconds
    detail = f"{rate:.1f}/s of {ceiling:.1f}/s"
    yield Figure.at_least("rate at log-normal latency, relative to the maximum", rate / ceiling, 0.85, detail)
