"""`manage.py evaluate` with a metric that compares candidates."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from judging.core.judges.scripted import Received, ScriptedJudge
from judging.management.command_line import CannotStart
from judging.management.commands.evaluate import document, start_run, work_until_finished

METRICS = """\
metrics:
- name: better
  gives: {comparison: all}
  pipeline:
  - type: JUDGE_MODEL
    judge_model:
      name: judge
      url: %s
      model: scripted
      judge_template_content: |-
        A: {{ a.content }}
        B: {{ b.content }}
        Which is better, [[A>B]] or [[B>A]]?
"""


@pytest.fixture
def folder(transactional_db: None, tmp_path: Path, settings: LazySettings) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path


def write_files(folder: Path, url: str, models: str, rows: int = 4) -> tuple[Path, Path]:
    answers, metrics = folder / "answers.jsonl", folder / "metrics.yaml"
    lines = [
        {
            "messages": [{"role": "user", "content": f"question {number}"}],
            "model_outputs": [
                {"model_name": model, "responses": [{"content": f"{model} says {number}"}]}
                for model in models
            ],
        }
        for number in range(rows)
    ]
    answers.write_text("".join(json.dumps(line) + "\n" for line in lines))
    metrics.write_text(METRICS % url)
    return answers, metrics


def evaluated(folder: Path, says: Any) -> dict[str, Any]:
    with ScriptedJudge(reply=says) as judge:
        run = start_run(*write_files(folder, judge.url, "abc"), "")
        return document(*work_until_finished(run, folder, threading.Event()))


def attentive(request: Received) -> str:
    first, second = re.findall(r"^[AB]: (\w)", request.prompt, re.MULTILINE)
    return "[[A>B]]" if first < second else "[[B>A]]"


def test_a_judge_that_always_names_the_first_side_is_never_settled(folder: Path) -> None:
    result = evaluated(folder, "[[A>B]]")
    assert (result["judgements"], result["unsettled"], result["scored"]) == (12, 12, 0)
    lines = [json.loads(line) for line in (folder / "judgements.jsonl").read_text().splitlines()]
    assert {(line["model"], line["other_model"]) for line in lines} == {("a", "b"), ("a", "c"), ("b", "c")}
    assert {(line["state"], line["value"], line["reason"]) for line in lines} == {
        ("unsettled", None, "orders_disagree")
    }


def test_an_attentive_judge_settles_every_pair(folder: Path) -> None:
    result = evaluated(folder, attentive)
    assert (result["unsettled"], result["scored"]) == (0, 12)
    assert result["report"]["side_by_side"][0]["candidates"]["a"]["win_rate"] == 1


def test_all_pairs_of_five_candidates_are_refused_before_anything_is_asked(folder: Path) -> None:
    with ScriptedJudge(reply=attentive) as judge:
        with pytest.raises(CannotStart, match="10 for each row"):
            start_run(*write_files(folder, judge.url, "abcde"), "")
        assert judge.requests == []
