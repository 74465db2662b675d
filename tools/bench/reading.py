"""Benchmarks of reading uploads: processor time relative to a bare json.loads loop over the same file, and memory.

python -m tools.bench.reading FILE.jsonl…    the ratios for other files
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from datasets.core.reader import read
from tools.bench import Figure, command_line
from tools.bench.reading_rows import KINDS, write_rows
from tools.bench.watched import run_watched

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
        for _ in reading.parts(lambda: None):
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
            yield from _ratios(kind, path)
        yield _memory(folder)


def _ratios(kind: str, path: Path) -> Iterator[Figure]:
    found = ratios(path)
    detail = f"{path.stat().st_size / 1e6:.0f} MB"
    others = f"rows yielded {found['streamed']:.2f}; {detail}"
    yield Figure.at_most(
        f"validating {kind}, relative to bare json.loads", found["validated"], MOST_VALIDATED, others
    )
    yield Figure.at_most(
        f"validating and splitting {kind} for storage, relative to bare json.loads",
        found["kept"],
        MOST_KEPT,
        detail,
    )


def _memory(folder: Path) -> Figure:
    few, many = (_peak_mb(folder, rows) for rows in (FEW_ROWS, MANY_ROWS))
    detail = f"{few:.0f} MB for {FEW_ROWS:,} rows, {many:.0f} MB for {MANY_ROWS:,}"
    name = "memory of validate, MB more for ten times the rows"
    return Figure.at_most(name, many - few, MOST_MB, detail)


def _peak_mb(folder: Path, rows: int) -> float:
    path = folder / "many.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(rows):
            asked = f'{{"role": "user", "content": "question {number} of many 问题"}}'
            file.write(f'{{"id": {number}, "messages": [{asked}], "ref_answer": "42"}}\n')
    command = ("manage.py", "validate", str(path), "--json")
    return run_watched(folder, *command, DATA_DIR=str(folder / "data"), DATABASE_URL="")[1]["peak_mb"]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("files", nargs="+")
    for name in parser.parse_args().files:
        found = ratios(Path(name))
        print(f"{name}:", ", ".join(f"{task} {ratio:.2f}" for task, ratio in found.items()))


if __name__ == "__main__":
    main()
