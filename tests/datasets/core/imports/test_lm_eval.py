"""Import of lm-evaluation-harness samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.datasets.core.imports.reading import lines, taken


def sample(doc_id: int = 0, **changes: Any) -> dict[str, Any]:
    given = {
        "doc_id": doc_id,
        "doc": {"problem": f"{doc_id} + 1?", "level": "1"},
        "target": str(doc_id + 1),
        "arguments": {"gen_args_0": {"arg_0": f"Q: {doc_id} + 1?\nA:", "arg_1": {"until": ["\n"]}}},
        "resps": [[f" {doc_id + 1}"]],
        "filtered_resps": [str(doc_id + 1)],
        "filter": "none",
        "metrics": ["exact_match"],
        "doc_hash": "a",
        "exact_match": 1.0,
    }
    return given | changes


def test_a_sample_is_a_row_with_prompt_reference_answer_and_metric(tmp_path: Path) -> None:
    found = taken(tmp_path, samples__jsonl=lines(sample()))
    (row,) = found.rows
    assert found.source == "lm_eval"
    assert row["messages"] == [{"role": "user", "content": "Q: 0 + 1?\nA:"}]
    assert (row["ref_answer"], row["level"], found.answers) == ("1", "1", {"model": [" 1"]})
    assert found.said("line", "model", "metric", "value") == [(1, "model", "exact_match", 1.0)]


def test_two_filters_of_one_sample_are_two_metrics_of_one_answer(tmp_path: Path) -> None:
    strict = sample(filter="strict-match")
    flexible = sample(filter="flexible-extract", exact_match=0.0)
    found = taken(tmp_path, samples__jsonl=lines(strict, flexible))
    assert found.answers == {"model": [" 1"]}
    assert found.said("metric", "value") == [
        ("exact_match,strict-match", 1.0),
        ("exact_match,flexible-extract", 0.0),
    ]


def test_of_choices_the_likeliest_is_the_answer(tmp_path: Path) -> None:
    arguments = {
        f"gen_args_{i}": {"arg_0": "Sky?", "arg_1": f" {text}"} for i, text in enumerate(("red", "blue"))
    }
    given = sample(
        arguments=arguments, resps=[[["-9.5", "False"]], [["-0.5", "True"]]], metrics=["acc"], acc=1.0
    )
    assert taken(tmp_path, samples__jsonl=lines(given)).answers == {"model": ["blue"]}


def test_arguments_of_older_versions_and_chat_prompts_are_read(tmp_path: Path) -> None:
    chat = json.dumps([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}])
    found = taken(tmp_path, samples__jsonl=lines(sample(arguments=[[[chat], {"until": []}]])))
    assert [one["role"] for one in found.rows[0]["messages"]] == ["system", "user"]


def test_the_results_file_names_the_model_of_its_run(tmp_path: Path) -> None:
    found = taken(
        tmp_path,
        samples_gsm8k_2026__jsonl=lines(sample()),
        results_2026__json=json.dumps({"results": {"gsm8k": {}}, "configs": {}, "model_name": "org/tiny"}),
    )
    assert list(found.answers) == ["org/tiny"]


def test_what_a_filter_found_is_with_its_metric_however_deep_it_lies(tmp_path: Path) -> None:
    given = sample(filter="flexible-extract", filtered_resps=[["4"]])
    assert taken(tmp_path, samples__jsonl=lines(given)).said("reasoning") == [("flexible-extract: 4",)]


def test_repeated_answers_are_answers_of_one_model(tmp_path: Path) -> None:
    assert taken(tmp_path, samples__jsonl=lines(sample(resps=[["1", "2"]]))).answers == {"model": ["1", "2"]}


def test_a_metric_that_is_no_number_is_left_out_by_name(tmp_path: Path) -> None:
    found = taken(tmp_path, samples__jsonl=lines(sample(metrics=["exact_match", "pair"], pair=[1, 2])))
    assert (len(found.verdicts), found.left_out) == (1, {"no_number": 1})


def test_broken_lines_and_samples_without_a_prompt_are_left_out(tmp_path: Path) -> None:
    found = taken(tmp_path, samples__jsonl=lines(sample()) + "{broken\n" + lines(sample(1, arguments={})))
    assert (len(found.rows), found.left_out) == (1, {"json_broken": 1, "no_question": 1})
