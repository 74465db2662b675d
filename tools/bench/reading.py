"""Benchmarks of reading uploads: processor time relative to a bare json.loads loop over the same file, and memory.

python -m tools.bench.reading FILE.jsonl…    the ratios for other files
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from datasets.core.reader import read
from tools.bench.engine import ROOT, Figure
from tools.bench.reading_rows import KINDS, write_rows

ROUNDS = 5
RATIO_ROWS = 100_000
FEW_ROWS, MANY_ROWS = 100_000, 1_000_000
MOST_VALIDATED, MOST_KEPT = 3.0, 4.5
MOST_MB = 60


def bare(path: Path) -> None:
    with path.open("rb") as file:
        for line in file:
            json.loads(line)


def validated(path: Path) -> None:
    with read(path, digest=False) as reading:
        assert reading.summary.rows


def streamed(path: Path) -> None:
    """Validate, then iterate over every row."""
    with read(path, digest=False) as reading:
        for _ in reading:
            pass


def kept(path: Path) -> None:
    """Validate, and split every row into what is stored, as the importer does."""
    with read(path, digest=False) as reading:
        for _ in reading.kept(lambda: None):
            pass


def processor_time(task: Callable[[Path], None], path: Path) -> float:
    before = time.process_time()
    task(path)
    return time.process_time() - before


def ratios(path: Path) -> dict[str, float]:
    """Processor time of each task relative to the bare loop; minimum of ROUNDS alternating rounds."""
    tasks = (bare, validated, streamed, kept)
    least = dict.fromkeys(tasks, float("inf"))
    for _ in range(ROUNDS):
        for task in tasks:
            least[task] = min(least[task], processor_time(task, path))
    return {task.__name__: least[task] / least[bare] for task in tasks}


def reading_figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, make in KINDS.items():
            path = folder / "rows.jsonl"
            write_rows(path, make, RATIO_ROWS)
            yield _ratio(kind, path)
        yield _memory(folder)


def _ratio(kind: str, path: Path) -> Figure:
    found = ratios(path)
    value, kept = found["validated"], found["kept"]
    others = f"rows handed out {found['streamed']:.2f}, cut to be stored {kept:.2f} (<= {MOST_KEPT})"
    detail = f"{others}; {path.stat().st_size / 1e6:.0f} MB"
    met = value <= MOST_VALIDATED and kept <= MOST_KEPT
    return Figure(f"validating {kind}, to bare json.loads", value, f"<= {MOST_VALIDATED}", met, detail)


def _memory(folder: Path) -> Figure:
    few, many = (_peak_mb(folder, rows) for rows in (FEW_ROWS, MANY_ROWS))
    detail = f"{few:.0f} MB for {FEW_ROWS:,} rows, {many:.0f} MB for {MANY_ROWS:,}"
    name = "memory of validate, MB more for ten times the rows"
    return Figure(name, many - few, f"<= {MOST_MB}", many - few <= MOST_MB, detail)


def _peak_mb(folder: Path, rows: int) -> float:
    path, usage = folder / "many.jsonl", folder / "usage.json"
    with path.open("w", encoding="utf-8") as file:
        for number in range(rows):
            asked = f'{{"role": "user", "content": "question {number} of many 问题"}}'
            file.write(f'{{"id": {number}, "messages": [{asked}], "ref_answer": "42"}}\n')
    command = [sys.executable, "manage.py", "validate", str(path), "--json"]
    watched = [sys.executable, "-m", "tools.bench.watched", str(usage), *command]
    environment = {**os.environ, "DATA_DIR": str(folder / "data"), "DATABASE_URL": ""}
    subprocess.run(watched, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    return float(json.loads(usage.read_text())["peak_mb"])


def main() -> None:
    for name in sys.argv[1:]:
        found = ratios(Path(name))
        print(f"{name}:", ", ".join(f"{task} {ratio:.2f}" for task, ratio in found.items()))


if __name__ == "__main__":
    main()
