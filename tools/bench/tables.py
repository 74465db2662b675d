"""Benchmarks of table imports: 100,000 records of ten columns, each file type in a separate process.

python -m tools.bench.tables FILE    processor seconds and peak memory of one file, as JSON
"""

from __future__ import annotations

import csv
import json
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import openpyxl

from datasets.core.imports import table
from datasets.core.imports.model import Options, SourceFile
from tools.bench import Figure, command_line, python

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
            yield from _figures(kind, path)


def _figures(kind: str, path: Path) -> Iterator[Figure]:
    found = json.loads(python("-m", "tools.bench.tables", str(path)))
    name = f"importing {RECORDS:,} records of {kind.upper()}"
    detail = f"{found['rows']:,} rows"
    yield Figure.at_most(f"{name}, processor seconds", found["seconds"], MOST_SECONDS[kind], detail)
    yield Figure.at_most(f"{name}, MB of memory", found["mb"], MOST_MB, detail)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("file", type=Path)
    imported = table.read([SourceFile.of(parser.parse_args().file)], Options())
    rows = sum(1 for _row in imported.rows)
    for _verdict in imported.verdicts:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"rows": rows, "seconds": time.process_time(), "mb": peak}))


if __name__ == "__main__":
    main()
