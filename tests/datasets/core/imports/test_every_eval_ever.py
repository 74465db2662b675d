"""Import of Every Eval Ever samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.datasets.core.imports.reading import lines, taken


def sample(**changes: Any) -> dict[str, Any]:
    given = {
        **{
            "schema_version": "0.2.1",
            "evaluation_id": "e/1",
            "model_id": "org/a",
            "evaluation_name": "gsm8k",
        },
        **{
            "sample_id": "id1",
            "interaction_type": "single_turn",
            "messages": None,
            "metadata": {"level": "1"},
        },
        "input": {"raw": "1 + 1?", "formatted": None, "reference": ["2"], "choices": None},
        "output": {"raw": [" 2"], "reasoning_trace": ["Easy."]},
        "answer_attribution": [
            {
                **{"turn_idx": 0, "source": "output.raw", "extracted_value": "2"},
                **{"extraction_method": "exact_match", "is_terminal": True},
            }
        ],
        "evaluation": {"score": 1.0, "is_correct": True},
    }
    return given | changes


def test_a_sample_is_a_row_an_answer_and_a_verdict(tmp_path: Path) -> None:
    found = taken(tmp_path, samples__jsonl=lines(sample()))
    (row,) = found.rows
    assert found.source == "every_eval_ever"
    assert (row["id"], row["ref_answer"], row["level"]) == ("id1", "2", "1")
    assert row["model_outputs"][0]["responses"] == [{"content": " 2", "reasoning_content": "Easy."}]
    assert found.said("metric", "value", "reasoning") == [("gsm8k", 1.0, "exact_match: 2")]


def test_models_share_a_row_and_results_of_one_sample_an_answer(tmp_path: Path) -> None:
    other = sample(evaluation_name="style", evaluation_result_id="style/1", evaluation={"score": 0.5})
    found = taken(tmp_path, samples__jsonl=lines(sample(), other, sample(model_id="org/b")))
    assert found.answers == {"org/a": [" 2"], "org/b": [" 2"]}
    assert found.said("model", "response", "metric", "value") == [
        ("org/a", 1, "gsm8k", 1.0),
        ("org/a", 1, "style", 0.5),
        ("org/b", 1, "gsm8k", 1.0),
    ]


def test_a_further_record_of_one_result_is_a_further_answer(tmp_path: Path) -> None:
    again = sample(output={"raw": ["3"]}, evaluation={"score": 0.0, "is_correct": False})
    found = taken(tmp_path, samples__jsonl=lines(sample(), again))
    assert found.answers == {"org/a": [" 2", "3"]}
    assert found.said("response", "value") == [(1, 1.0), (2, 0.0)]


def test_of_a_transcript_the_last_answer_counts(tmp_path: Path) -> None:
    spoken = [("user", "Hi"), ("assistant", "Hello"), ("user", "1 + 1?"), ("assistant", "2")]
    transcript = [{"turn_idx": at, "role": role, "content": text} for at, (role, text) in enumerate(spoken)]
    found = taken(
        tmp_path, s__jsonl=lines(sample(interaction_type="multi_turn", messages=transcript, output=None))
    )
    (row,) = found.rows
    (response,) = row["model_outputs"][0]["responses"]
    assert [one["content"] for one in row["messages"]] == ["Hi", "1 + 1?"]
    assert (response["content"], len(response["earlier_messages"])) == ("2", 2)


def test_one_score_of_several_answers_and_an_aggregate_are_left_out(tmp_path: Path) -> None:
    several = sample(output={"raw": ["1", "2"]})
    aggregate = json.dumps({"schema_version": "0.2", "evaluation_results": []})
    found = taken(tmp_path, run__json=aggregate, samples__jsonl=lines(several))
    assert found.answers == {"org/a": ["1", "2"]}
    assert found.left_out == {"aggregate": 1, "one_score_of_several": 1}


def test_images_are_named_and_one_score_of_two_answers_is_left_out(tmp_path: Path) -> None:
    media = [{"media_type": "image", "uri": f"file://./{number}.png"} for number in range(2)]
    given = sample(
        schema_version="instance_level_eval_0.2.2",
        modality="text_to_image",
        output={"raw": ["<image:0>", "<image:1>"], "media": media},
        evaluation={"score": 0.75, "is_correct": None},
    )
    found = taken(tmp_path, samples__jsonl=lines(given))
    assert found.answers == {"org/a": ["<image:0>", "<image:1>"]}
    assert found.left_out == {"part_dropped": 2, "one_score_of_several": 1}
