"""Benchmarks of table imports: 100,000 records of ten columns, each file type in a separate process.

python -m tools.bench.tables FILE    processor seconds and peak memory of one file, as JSON
"""

from __future__ import annotations

import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import openpyxl

from datasets.core.imports import table
from datasets.core.imports.model import Options, SourceFile
from tools.bench.engine import ROOT, Figure

RECORDS = 100_000
MOST_SECONDS = {"csv": 10.0, "xlsx": 60.0}
MOST_MB = 300
HEADER = ("question", "model", "answer", "score", "reference", "lang", "topic", "level", "note", "day")


def record(number: int) -> tuple[object, ...]:
    asked = number // 2  # two models answer each question
    answer = f"The answer number {number} goes on for a while. " * 3
    rest = (f"reference {asked}", "en", f"topic {asked % 20}", asked % 7, f"note {asked}", "2024-02-29")
    return (f"What is question number {asked}?", f"model-{number % 2}", answer, number % 5, *rest)


def write_csv(path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        writer.writerows(map(record, range(RECORDS)))


def write_xlsx(path: Path) -> None:
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("Data")
    sheet.append(HEADER)
    for number in range(RECORDS):
        sheet.append(record(number))
    book.save(path)


def table_figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        for kind, write in (("csv", write_csv), ("xlsx", write_xlsx)):
            path = Path(name) / f"table.{kind}"
            write(path)
            yield _figure(kind, path)


def _figure(kind: str, path: Path) -> Figure:
    command = [sys.executable, "-m", "tools.bench.tables", str(path)]
    found = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    detail = f"{found['rows']:,} rows, {found['mb']:.0f} MB (<= {MOST_MB})"
    most = MOST_SECONDS[kind]
    met = found["seconds"] <= most and found["mb"] <= MOST_MB
    name = f"importing {RECORDS:,} records of {kind.upper()}, processor seconds"
    return Figure(name, found["seconds"], f"<= {most}", met, detail)


def main() -> None:
    imported = table.read([SourceFile.of(Path(sys.argv[1]))], Options())
    rows = sum(1 for _row in imported.rows)
    for _verdict in imported.verdicts:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"rows": rows, "seconds": time.process_time(), "mb": peak}))


if __name__ == "__main__":
    main()
