"""A judge that replies with GPT-4's published MT-bench verdicts.

To some questions two models gave the same answer and got different verdicts, and a judge does not know whose answer
it reads. So the uploaded rows carry the model's name in a field of the response, for this judge only.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

from judging.core.judges.scripted import Received
from tests.real_data import real_data

TEMPLATE = "[{{ data.id }}|{{ response.answered_by }}] {{ response.content }}"
Verdicts = dict[tuple[str, str], dict[str, Any]]


def verdicts() -> Verdicts:
    """(row id, model) → the published verdict on the first turn."""
    published = _lines(real_data("mtbench_llama2_gpt4_judgments.jsonl"))
    return {(f"mtbench-{one['question_id']}", one["model"]): one for one in published if one["turn"] == 1}


def rows_that_name_their_model(path: Path) -> Path:
    """Write the upload file with the model's name as `answered_by` in every response."""
    rows = _lines(real_data("mtbench_llama2_upload.jsonl"))
    for output in (output for row in rows for output in row["model_outputs"]):
        for response in output["responses"]:
            response["answered_by"] = output["model_name"]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def judge(published: Verdicts) -> Callable[[Received], str]:
    """Reply function for ScriptedJudge: the published judgement of the row and model named at the prompt's start."""

    def reply(asked: Received) -> str:
        row, _, model = asked.prompt[1 : asked.prompt.index("]")].partition("|")
        return str(published[row, model]["judgment"])

    return reply


def published_means(published: Verdicts) -> dict[str, float]:
    """Model → mean published score."""
    scores = defaultdict(list)
    for (_, model), one in published.items():
        scores[model].append(one["score"])
    return {model: mean(values) for model, values in scores.items()}


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
