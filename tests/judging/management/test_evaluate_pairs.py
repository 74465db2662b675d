"""`manage.py evaluate` with a metric that compares candidates."""

from __future__ import annotations

import itertools
import json
import random
import re
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from judging.core.judges.scripted import Answer, Received, ScriptedJudge
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
      model: scripted%s
      judge_template_content: |-
        A: {{ a.content }}
        B: {{ b.content }}
        Which is better, [[A>B]] or [[B>A]]?
"""


@pytest.fixture
def folder(transactional_db: None, tmp_path: Path, settings: LazySettings) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path


def write_files(
    folder: Path, url: str, models: str, rows: int = 4, keys: Sequence[str] = ()
) -> tuple[Path, Path]:
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
    metrics.write_text(METRICS % (url, "".join(f"\n      {key}" for key in keys)))
    return answers, metrics


def evaluated(
    folder: Path, says: Any, *keys: str, models: str = "abc", rows: int = 4, **server: Any
) -> dict[str, Any]:
    with ScriptedJudge(reply=says, **server) as judge:
        run = start_run(*write_files(folder, judge.url, models, rows, keys), "")
        return document(*work_until_finished(run, folder, threading.Event()))


def judgement_lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "judgements.jsonl").read_text().splitlines()]


def attentive(request: Received) -> str:
    first, second = re.findall(r"^[AB]: (\w)", request.prompt, re.MULTILINE)
    return "[[A>B]]" if first < second else "[[B>A]]"


def test_a_judge_that_always_names_the_first_side_is_never_settled(folder: Path) -> None:
    result = evaluated(folder, "[[A>B]]")
    assert (result["judgements"], result["unsettled"], result["scored"]) == (12, 12, 0)
    lines = judgement_lines(folder)
    assert {(line["model"], line["other_model"]) for line in lines} == {("a", "b"), ("a", "c"), ("b", "c")}
    assert {(line["state"], line["value"], line["reason"]) for line in lines} == {
        ("unsettled", None, "orders_disagree")
    }


def test_an_attentive_judge_settles_every_pair(folder: Path) -> None:
    result = evaluated(folder, attentive)
    assert (result["unsettled"], result["scored"]) == (0, 12)
    assert result["report"]["side_by_side"][0]["candidates"]["a"]["win_rate"] == 1


def moody(request: Received) -> str:
    """Draws its verdict by the prompt, so the same prompt gets the same one."""
    return random.Random(request.prompt).choice(["[[A>B]]", "[[A=B]]", "[[B>A]]"])


def test_a_moody_judge_settles_a_third_of_the_pairs(folder: Path) -> None:
    result = evaluated(folder, moody, models="ab", rows=60)
    assert result["scored"] + result["unsettled"] == result["judgements"] == 60
    assert 10 <= result["scored"] <= 30
    cell = result["report"]["side_by_side"][0]["candidates"]["a"]
    assert cell["unsettled"] == result["unsettled"]
    assert cell["low_bound"] < cell["win_rate"] < cell["high_bound"]


def every_tenth_malformed() -> Any:
    counted = itertools.count(1)

    def says(request: Received) -> str:
        again = len(request.body["messages"]) > 1
        return "It depends." if next(counted) % 10 == 0 and not again else attentive_first(request)

    return says


def attentive_first(request: Received) -> str:
    """As `attentive`, also where it is asked again: the first message holds the answers."""
    first, second = re.findall(r"^[AB]: (\w)", request.body["messages"][0]["content"], re.MULTILINE)
    return "[[A>B]]" if first < second else "[[B>A]]"


def test_a_pair_of_which_one_order_cannot_be_read_is_unparsed(folder: Path) -> None:
    result = evaluated(folder, every_tenth_malformed(), models="ab", rows=20)
    assert (result["judgements"], result["scored"], result["unparsed"]) == (20, 16, 4)
    assert Counter(line["reason"] for line in judgement_lines(folder) if line["state"] == "unparsed") == {
        "nothing_offered": 4
    }


def test_asking_again_repairs_what_could_not_be_read_in_each_order(folder: Path) -> None:
    result = evaluated(folder, every_tenth_malformed(), "ask_again: 1", models="ab", rows=20)
    assert (result["scored"], result["unparsed"], result["unsettled"]) == (20, 0, 0)
    assert result["report"]["cost"]["requests"] > 40
    assert result["report"]["side_by_side"][0]["candidates"]["a"]["win_rate"] == 1


def as_json(request: Received) -> str:
    return json.dumps({"reasoning": "Read both.", "verdict": attentive_first(request)[2:-2]})


def test_a_judge_that_only_calls_tools_settles_every_pair(folder: Path) -> None:
    result = evaluated(folder, lambda request: Answer(None, arguments=as_json(request)), "structured: 'on'")
    assert (result["scored"], result["unsettled"]) == (12, 0)


def test_a_structured_judge_is_asked_for_one_of_the_verdicts_in_both_orders(folder: Path) -> None:
    schemas = []

    def says(request: Received) -> str:
        schemas.append(request.body["response_format"]["json_schema"]["schema"]["properties"]["verdict"])
        return as_json(request)

    result = evaluated(folder, says, "structured: 'on'", models="ab", rows=2)
    assert (result["scored"], len(schemas)) == (2, 4)
    assert schemas[0] == {"type": "string", "enum": ["A>>B", "A>B", "A=B", "B>A", "B>>A"]}


def test_a_judge_that_refuses_schemas_is_asked_without(folder: Path) -> None:
    refuses = frozenset({"response_format"})
    result = evaluated(folder, attentive, "structured: 'on'", refuses=refuses)
    assert (result["scored"], result["unsettled"], result["errors"]) == (12, 0, 0)


def test_all_pairs_of_five_candidates_are_refused_before_anything_is_asked(folder: Path) -> None:
    with ScriptedJudge(reply=attentive) as judge:
        with pytest.raises(CannotStart, match="10 for each row"):
            start_run(*write_files(folder, judge.url, "abcde"), "")
        assert judge.requests == []
