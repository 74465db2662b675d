"""Import of output items of OpenAI's hosted evals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.datasets.core.imports.reading import lines, taken


def item(**changes: Any) -> dict[str, Any]:
    given = {
        "object": "eval.run.output_item",
        "datasource_item_id": 5,
        "datasource_item": {"input": "Stock Markets Rally", "ground_truth": "Markets"},
        "results": [
            {"name": "String check-a2486074-d803-4445-b431-ad2262e85d47", "passed": True, "score": 1.0},
            {
                **{"name": "style", "score": 4, "passed": False},
                "sample": {"model": "o3", "output": [{"role": "assistant", "content": "Rather dry."}]},
            },
        ],
        "sample": {
            "input": [
                {"role": "developer", "content": "Categorize."},
                {"role": "user", "content": "Stock …"},
            ],
            "output": [{"role": "assistant", "content": "Markets"}],
            "model": "gpt-4o-mini",
        },
        "status": "pass",
    }
    return given | changes


def test_an_item_is_a_row_its_sample_an_answer_and_each_grader_a_verdict(tmp_path: Path) -> None:
    found = taken(tmp_path, run__jsonl=lines(item()))
    (row,) = found.rows
    assert found.source == "openai_evals"
    assert [one["role"] for one in row["messages"]] == ["system", "user"]
    assert (row["ref_answer"], row["input"], found.answers) == (
        "Markets",
        "Stock Markets Rally",
        {"gpt-4o-mini": ["Markets"]},
    )
    assert found.said("metric", "value", "judge", "reasoning") == [
        ("String check", 1.0, "openai-evals", None),
        ("style", 4.0, "o3", "Rather dry."),
    ]


def test_the_answer_in_an_item_is_the_reference_where_a_model_answered(tmp_path: Path) -> None:
    data = {"question": "Index of <p> in S_5?", "A": "8", "B": "2", "C": "24", "answer": "C"}
    found = taken(tmp_path, run__jsonl=lines(item(datasource_item=data)))
    assert (found.rows[0]["ref_answer"], found.answers) == ("C", {"gpt-4o-mini": ["Markets"]})


def test_results_that_are_no_list_are_named(tmp_path: Path) -> None:
    found = taken(tmp_path, run__jsonl=lines(item(results="none")))
    assert (found.verdicts, found.left_out) == ([], {"no_value": 1})


def test_a_page_of_the_api_and_an_array_are_read(tmp_path: Path) -> None:
    page = json.dumps({"object": "list", "data": [item(), item()], "has_more": False}, indent=1)
    assert len(taken(tmp_path, page__json=page).verdicts) == 4
    assert len(taken(tmp_path, array__json=json.dumps([item()])).verdicts) == 2


def test_answers_that_were_uploaded_are_in_the_item(tmp_path: Path) -> None:
    data = {"input": "2 + 2?", "output": "4", "model": "mine"}
    assert taken(tmp_path, run__jsonl=lines(item(sample=None, datasource_item=data))).answers == {
        "mine": ["4"]
    }


def test_a_grader_without_a_score_says_whether_it_passed_and_else_has_none(tmp_path: Path) -> None:
    results = [{"name": "a", "passed": True, "score": None}, {"name": "b"}, "broken"]
    found = taken(tmp_path, run__jsonl=lines(item(results=results)))
    assert found.said("metric", "value", "state") == [("a", 1.0, None), ("b", None, "no_score")]
    assert found.left_out == {"no_value": 1}


def test_a_sample_that_failed_is_left_out(tmp_path: Path) -> None:
    failed = item(sample={"model": "m", "error": {"message": "rate limit"}}, datasource_item={"input": "x"})
    found = taken(tmp_path, run__jsonl=lines(item(), failed))
    assert found.left_out == {"no_answer": 1, "row_without_answer": 1}


def test_earlier_replies_of_a_sample_are_listed(tmp_path: Path) -> None:
    replies = [{"role": "assistant", "content": "Let me see."}, {"role": "assistant", "content": "Markets"}]
    found = taken(tmp_path, run__jsonl=lines(item(sample={"model": "m", "output": replies})))
    assert (found.answers, found.left_out) == ({"m": ["Markets"]}, {"earlier_answer": 1})
