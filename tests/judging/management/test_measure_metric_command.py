"""manage.py measure_metric writes the record of a gallery metric."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from judging.core.gallery import gallery
from judging.core.judges.scripted import Received, ScriptedJudge, refusal

pytestmark = pytest.mark.django_db(transaction=True)


def said(request: Received) -> str:
    return "[[FAIL]]" if "wrong" in request.body["messages"][-1]["content"] else "[[PASS]]"


@pytest.fixture
def judge() -> Iterator[ScriptedJudge]:
    with ScriptedJudge(said) as server:
        yield server


def measure(out: Path, judge: ScriptedJudge, *arguments: str, name: str = "correct") -> dict[str, Any]:
    call_command("measure_metric", name, "--url", judge.url, "--model", "m", "--out", str(out), *arguments)
    record: dict[str, Any] = json.loads(out.read_text())
    return record


def test_the_examples_make_a_self_check(tmp_path: Path, judge: ScriptedJudge) -> None:
    record = measure(tmp_path / "record.json", judge)
    examples = gallery()["correct"].examples
    assert (record["data"], record["n"], record["judge"]) == ("examples", len(examples), "m")
    assert record["agreement"] is None
    assert record["calls"] == len(judge.requests) == len(examples)


def test_labelled_answers_of_a_file_give_rates(tmp_path: Path, judge: ScriptedJudge) -> None:
    lines = [
        {"language": "en", "question": f"{n}?", "row": {"expected_output": "x"},
         "answer": "wrong" if n % 2 else "x", "verdict": "fail" if n % 2 else "pass"}
        for n in range(40)
    ]  # fmt: skip
    file = tmp_path / "labelled.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    record = measure(tmp_path / "record.json", judge, "--data", str(file), "--lang", "zh")
    assert (record["data"], record["language"], record["n"]) == ("labelled.jsonl", "zh", 40)
    assert (record["agreement"], record["tpr"], record["tnr"]) == (1, 1, 1)


def test_a_metric_without_a_judge_needs_none(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    call_command("measure_metric", "exact_match", "--out", str(out))
    assert json.loads(out.read_text())["calls"] == 0


@pytest.mark.parametrize(
    ("arguments", "why", "status"),
    [
        (["nothing"], "no metric nothing", 2),
        (["correct"], "Name the judge", 2),
        (["correct", "--endpoint", "nobody"], "no endpoint", 2),
        (["correct", "--data", "missing.jsonl"], "missing.jsonl", 2),
    ],
)
def test_wrong_usage_is_refused(tmp_path: Path, arguments: list[str], why: str, status: int) -> None:
    with pytest.raises(CommandError, match=why) as refused:
        call_command("measure_metric", *arguments, "--out", str(tmp_path / "record.json"))
    assert refused.value.returncode == status


def test_a_server_that_refuses_ends_it_with_status_1(tmp_path: Path) -> None:
    with (
        ScriptedJudge(lambda _request: refusal(401, "bad key")) as server,
        pytest.raises(CommandError, match="Stopped") as refused,
    ):
        measure(tmp_path / "record.json", server)
    assert refused.value.returncode == 1
