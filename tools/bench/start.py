"""How long `manage.py evaluate` of five rows takes next to `manage.py check`, and `manage.py serve` until its first
page: python -m tools.bench.start

With a DATA_DIR that exists, and with an empty one, where the tables are created first. Elapsed times; the runs
alternate, since times vary on a machine with other programs.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.starting import free_port
from tools.bench import ROOT, Figure, command_line
from tools.bench.engine import judge, write_metrics, write_rows
from tools.try_run import Installation, Site, started, stop, wait

RUNS = 5
ROWS = 5


def seconds(data: Path, *arguments: str) -> float:
    """Elapsed time of a command of manage.py with this DATA_DIR."""
    environment = {**os.environ, "DATA_DIR": str(data), "DATABASE_URL": ""}
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.perf_counter() - began


def measured(folder: Path, url: str, runs: int) -> dict[str, list[float]]:
    """Elapsed times of `check`, and of `evaluate` with an `existing` and an `empty` DATA_DIR."""
    rows, metrics, existing = folder / "rows.jsonl", folder / "metrics.yaml", folder / "existing"
    write_rows(rows, ROWS, 1000)
    write_metrics(metrics, "short", url)
    evaluate = ("evaluate", str(rows), "--metrics", str(metrics), "--out", str(folder / "out"), "--json")
    seconds(existing, *evaluate)  # creates the tables, and the bytecode of all modules
    seconds(existing, "check")
    times: dict[str, list[float]] = {"check": [], "existing": [], "empty": []}
    for run in range(runs):
        times["check"].append(seconds(existing, "check"))
        times["existing"].append(seconds(existing, *evaluate))
        times["empty"].append(seconds(folder / f"empty {run}", *evaluate))
    return times


def first_page(data: Path) -> float:
    """Elapsed time until `serve` with an empty DATA_DIR shows its first page."""
    port = free_port()
    with started(Installation([sys.executable, "manage.py", "serve"], ROOT), data, port) as process:
        _, elapsed = wait("the first page", lambda: Site(port).get("/"))
        stop(process, data)
    return elapsed


def start_figures(runs: int = RUNS) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name, judge() as url:
        times = measured(Path(name), url, runs)
        page = statistics.median(first_page(Path(name) / f"site {run}") for run in range(3))
    check, existing, empty = (statistics.median(times[key]) for key in ("check", "existing", "empty"))
    yield Figure.at_most(
        "evaluate of five rows, relative to check",
        existing / check,
        1.5,
        f"{existing:.2f} s to {check:.2f} s",
    )
    yield Figure.at_most(
        "the same with an empty DATA_DIR", empty / check, 2.5, f"{empty:.2f} s to {check:.2f} s"
    )
    yield Figure.at_most("serve with an empty DATA_DIR until its first page (s)", page, 8.0, "median of 3")


def main() -> None:
    command_line(__doc__).parse_args()
    for figure in start_figures():
        print(figure, flush=True)


if __name__ == "__main__":
    main()
