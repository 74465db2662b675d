"""Import of AlpacaEval files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.datasets.core.imports.reading import taken


def raw_completion(token: str) -> dict[str, Any]:
    """An OpenAI API completion as stored by an annotator that weights tokens."""
    top = [{"token": token, "bytes": [109], "logprob": -0.01}, {"token": "M", "bytes": [77], "logprob": -4.6}]
    message = {"content": token, "role": "assistant", "function_call": None, "refusal": None}
    logprobs = {"content": [{**top[0], "top_logprobs": top}], "refusal": None}
    return {"finish_reason": "length", "index": 0, "logprobs": logprobs, "message": message, "text": token}


def annotation(preference: float | None, **changes: Any) -> dict[str, Any]:
    given = {
        **{"instruction": "Name a play.", "dataset": "helpful_base", "annotator": "weighted_gpt4"},
        **{"output_1": "Hamlet", "generator_1": "base", "output_2": "Annie", "generator_2": "new"},
        **{"preference": preference, "price_per_example": 0.01, "time_per_example": 0.5},
        **{"datasplit": "eval", "raw_completion": raw_completion("m")},
    }
    return given | changes


OUTPUTS = [{"instruction": "Name a play.", "output": "Annie", "generator": "new", "dataset": "helpful_base"}]


def test_an_annotation_is_a_comparison_of_two_answers(tmp_path: Path) -> None:
    found = taken(tmp_path, annotations__json=json.dumps([annotation(1.99)], indent=1))
    assert found.source == "alpaca_eval"
    assert (found.rows[0]["dataset"], found.answers) == (
        "helpful_base",
        {"base": ["Hamlet"], "new": ["Annie"]},
    )
    assert found.said("model", "other_model", "value", "judge", "reasoning") == [
        ("base", "new", "B>>A", "weighted_gpt4", "m\npreference: 1.99")
    ]


@pytest.mark.parametrize(
    ("preference", "value"), [(1, "A>B"), (1.5, "A=B"), (0, "A=B"), (2, "B>A"), (2.5, None), (None, None)]
)
def test_a_preference_says_which_is_better(
    tmp_path: Path, preference: float | None, value: str | None
) -> None:
    found = taken(tmp_path, annotations__json=json.dumps([annotation(preference)]))
    assert found.said("value", "state") == [(value, None if value else "unparsed")]


def test_a_weighted_annotator_is_clear_in_the_outer_quarters(tmp_path: Path) -> None:
    """Preferences in the outer quarters of 1…2 are clear. A record with full certainty has a whole number."""
    given = [annotation(preference) for preference in (1.01, 1.4, 1.4593660117, 1.6, 1.9900139974, 2.0)]
    found = taken(tmp_path, annotations__json=json.dumps(given))
    assert found.said("value") == [("A>>B",), ("A>B",), ("A>B",), ("B>A",), ("B>>A",), ("B>>A",)]


def test_outputs_and_annotations_share_their_answers(tmp_path: Path) -> None:
    found = taken(
        tmp_path, model_outputs__json=json.dumps(OUTPUTS), annotations__json=json.dumps([annotation(1)])
    )
    assert found.answers == {"new": ["Annie"], "base": ["Hamlet"]}


def test_a_verdict_on_another_answer_than_the_file_of_outputs_has_is_about_that_answer(
    tmp_path: Path,
) -> None:
    outputs = json.dumps([OUTPUTS[0] | {"output": "Cats"}])
    found = taken(tmp_path, model_outputs__json=outputs, annotations__json=json.dumps([annotation(1)]))
    assert found.answers["new"] == ["Cats", "Annie"]
    assert found.said("response", "other_response") == [(1, 2)]


def test_records_of_another_kind_and_without_an_instruction_are_left_out(tmp_path: Path) -> None:
    given = json.dumps([annotation(1), {"instruction": "x"}, annotation(2, instruction=" ")])
    found = taken(tmp_path, annotations__json=given)
    assert (len(found.verdicts), found.left_out) == (1, {"not_a_record": 1, "no_question": 1})
