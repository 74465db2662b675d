"""The files of the sample projects: rows, the demo judge's replies to the prompts about their answers, and ratings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from judging.core.judges.demo import WrittenReply

FOLDER = Path(__file__).resolve().parent.parent / "datasets" / "samples"
QUESTIONS, CHECKLISTS, ORDERS = "sample.jsonl", "sample_checklists.jsonl", "sample_orders.jsonl"

Record = dict[str, Any]


def records(name: str) -> list[Record]:
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def rows_in(name: str, language: str) -> bytes:
    """The lines of a file of rows that are in a language."""
    lines = (FOLDER / name).read_bytes().splitlines(keepends=True)
    return b"".join(line for line in lines if json.loads(line)["language"] == language)


@cache
def rows() -> dict[str, Record]:
    """{id: row} of all files of rows."""
    return {row["id"]: row for name in (QUESTIONS, CHECKLISTS, ORDERS) for row in records(name)}


def ratings(language: str) -> Iterator[Record]:
    """People's ratings of the questions in a language: `row` (its line, from 1), `candidate`, `rater` (1 or 2),
    `values` (pass or fail, score, category) and perhaps `comment`."""
    ids = [row["id"] for row in records(QUESTIONS) if row["language"] == language]
    for rating in records("sample_ratings.jsonl"):
        if rating["id"] in ids:
            yield rating | {"row": ids.index(rating["id"]) + 1}


def written_replies() -> list[WrittenReply]:
    return [_written(rows()[reply["id"]], reply) for reply in records("sample_replies.jsonl")]


def _written(row: Record, reply: Record) -> WrittenReply:
    """`candidate`: whose answer the reply is about; of a pair, whose stands first."""
    answers = {output["model_name"]: output["responses"][0]["content"] for output in row["model_outputs"]}
    answer, reference = answers[reply["candidate"]], None
    if reply["kind"] in ("score", "reference"):
        reference = row["ref_answer"]
    elif reply["kind"] == "checklist":
        reference = next(each["criterion"] for each in row["rubric"] if each["id"] == reply["criterion"])
    elif reply["kind"] == "pair":
        (other,) = (text for name, text in answers.items() if name != reply["candidate"])
        answer, reference = other, answer
    return WrittenReply(answer, reference, (row["messages"][-1]["content"],), reply["reply"])
