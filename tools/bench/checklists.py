"""Benchmark of checklists: rows with twelve criteria each, compared with as many plain judgements."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tools.bench import Figure
from tools.bench.engine import Measured, evaluate, judge, write_rows

ROWS, CRITERIA = 500, 12
MOST_TIMES = 2.0  # the processor time of as many plain judgements
_TEMPLATE = "Question: {{ data.question }}\nAnswer: {{ response.content }}\nCriterion: {{ criterion.text }}"


def write_rubrics(path: Path, rows: int, criteria: int) -> None:
    """A file as `write_rows` makes it, each row with a rubric as HealthBench has them."""
    write_rows(path, rows, 1000)
    rubric = [
        {
            "criterion": f"Names point {number} " + "of those a good answer names " * 4,
            "points": number % 10 - 2 or 1,
        }
        for number in range(criteria)
    ]
    lines = [json.loads(line) | {"rubric": rubric} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def checklist_figures() -> Iterator[Figure]:
    listed = _measured("I looked. Verdict: met", lambda path: write_rubrics(path, ROWS, CRITERIA), _TEMPLATE)
    plain = _measured("Score: [[7]]", lambda path: write_rows(path, ROWS * CRITERIA, 1000), "")
    yield _figure(listed, plain)


def _measured(reply: str, write: Callable[[Path], None], checklist: str) -> Measured:
    with tempfile.TemporaryDirectory() as name, judge("--reply", reply) as url:
        folder = Path(name)
        write(folder / "rows.jsonl")
        return evaluate(folder, folder / "data", url, folder / "rows.jsonl", "measured", checklist=checklist)


def _figure(listed: Measured, plain: Measured) -> Figure:
    detail = f"{listed.cpu:.1f} s of processor time, {plain.cpu:.1f} s for {ROWS * CRITERIA} plain judgements"
    name = f"processor time of {ROWS} checklists of {CRITERIA} criteria, relative to plain judgements"
    return Figure.at_most(name, listed.cpu / plain.cpu, MOST_TIMES, detail)


def main() -> None:
    for figure in checklist_figures():
        print(figure)


if __name__ == "__main__":
    main()
