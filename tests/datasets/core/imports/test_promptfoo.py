"""Results of promptfoo."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.datasets.core.imports.reading import lines, taken


def result(provider: str = "openai:gpt-5", riddle: str = "What echoes?", **changes: Any) -> dict[str, Any]:
    given = {
        "gradingResult": {
            "pass": False,
            "score": 0.5,
            "reason": "Too slow",
            "componentResults": [
                {
                    "pass": True,
                    "score": 1,
                    "reason": "fine",
                    "assertion": {"type": "contains", "value": "echo"},
                },
                {"pass": False, "score": 0, "reason": "Too slow", "assertion": {"type": "latency"}},
            ],
        },
        "prompt": {"raw": f"Solve: {riddle}", "label": "Solve: {{riddle}}"},
        "provider": {"id": provider, "label": ""},
        "response": {"output": f"{provider} says: an echo."},
        "score": 0.5,
        "success": False,
        "testCase": {"vars": {"riddle": riddle}, "assert": [{"type": "contains", "value": "echo"}]},
        **{"promptIdx": 0, "promptId": "409", "testIdx": 0, "failureReason": 1, "latencyMs": 473},
        "vars": {"riddle": riddle, "question": "kept"},
        "namedScores": {},
    }
    return given | changes


def test_json_lines_hold_one_result_each(tmp_path: Path) -> None:
    found = taken(tmp_path, out__jsonl=lines(result(), result("other:model")))
    assert (found.source, len(found.rows), len(found.verdicts)) == ("promptfoo", 1, 2)


def export(*results: dict[str, Any]) -> str:
    prompt = {"raw": "Solve: {{riddle}}", "provider": "openai:gpt-5", "metrics": {"score": 2}}
    inside = {"version": 3, "timestamp": "2026-01-01", "prompts": [prompt], "results": list(results)}
    whole = {"evalId": "eval-1", "results": inside | {"stats": {}}, "config": {}, "shareableUrl": None}
    return json.dumps(whole, indent=2)


def test_providers_answer_one_row_and_each_answer_has_one_verdict(tmp_path: Path) -> None:
    found = taken(tmp_path, out__json=export(result(), result("other:model")))
    (row,) = found.rows
    assert found.source == "promptfoo"
    assert row["messages"] == [{"role": "user", "content": "Solve: What echoes?"}]
    assert (row["riddle"], row["vars_question"]) == ("What echoes?", "kept")
    assert list(found.answers) == ["openai:gpt-5", "other:model"]
    assert found.said("model", "metric", "value") == [
        ("openai:gpt-5", "score", 0.5),
        ("other:model", "score", 0.5),
    ]


def test_what_its_assertions_said_stays_in_the_verdict(tmp_path: Path) -> None:
    ((reasoning,),) = taken(tmp_path, out__json=export(result())).said("reasoning")
    assert reasoning == "Too slow\n- contains: pass, 1. fine\n- latency: fail, 0. Too slow"


def test_repeats_of_a_test_are_answers_of_one_row(tmp_path: Path) -> None:
    again = result(testIdx=1, response={"output": "Wind."})
    found = taken(tmp_path, out__json=export(result(), again))
    assert found.answers == {"openai:gpt-5": ["openai:gpt-5 says: an echo.", "Wind."]}
    assert found.said("response") == [(1,), (2,)]


def test_another_prompt_is_another_row(tmp_path: Path) -> None:
    found = taken(tmp_path, out__json=export(result(), result(prompt={"raw": "Guess: What echoes?"})))
    assert len(found.rows) == 2


def test_an_older_file_with_its_results_at_the_top_is_read(tmp_path: Path) -> None:
    old = json.dumps({"version": 2, "results": [result()], "stats": {}, "table": {}})
    assert taken(tmp_path, out__json=old).source == "promptfoo"


def test_a_chat_prompt_is_messages_and_an_object_is_its_json(tmp_path: Path) -> None:
    chat = json.dumps([{"role": "system", "content": "Brief."}, {"role": "user", "content": "Hi"}])
    found = taken(tmp_path, out__json=export(result(prompt={"raw": chat}, response={"output": {"a": 1}})))
    assert [one["role"] for one in found.rows[0]["messages"]] == ["system", "user"]
    assert found.answers == {"openai:gpt-5": ['{"a": 1}']}


def test_an_error_and_an_answer_that_was_not_graded_are_named(tmp_path: Path) -> None:
    failed = result("down:model", response=None, error="API error: 500", gradingResult=None)
    ungraded = result("other:model", gradingResult=None)
    found = taken(tmp_path, out__json=export(result(), failed, ungraded))
    assert found.left_out == {"no_answer": 1, "no_value": 1}
    assert list(found.answers) == ["openai:gpt-5", "other:model"]
