"""Column roles: guessed from names, and given as text."""

from __future__ import annotations

import pytest

from datasets.core.imports.columns import Columns, Score, guess, parse
from datasets.core.imports.model import NotUsable


@pytest.mark.parametrize(
    ("columns", "mapping"),
    [
        ("question answer reference", "question=question,reference=reference,answer=answer"),
        ("instruction input output", "question=instruction,question=input,answer=output"),
        ("prompt completion", "question=prompt,answer=completion"),
        ("问题 标准答案 模型 回答", "question=问题,reference=标准答案,model=模型,answer=回答"),
        (
            "prompt answer_gpt-4 answer_claude",
            "question=prompt,answer:gpt-4=answer_gpt-4,answer:claude=answer_claude",
        ),
        ("题目 GPT-4回答 通义回答", "question=题目,answer:GPT-4=GPT-4回答,answer:通义=通义回答"),
        (
            "prompt qwen2.5-72b deepseek-v3",
            "question=prompt,answer:qwen2.5-72b=qwen2.5-72b,answer:deepseek-v3=deepseek-v3",
        ),
        ("prompt answer_id output_tokens", "question=prompt"),
        ("id topic", ""),
    ],
)
def test_names_of_columns_tell_what_they_hold(columns: str, mapping: str) -> None:
    assert str(guess(columns.split())) == mapping


def test_a_column_of_numbers_is_no_models_answer() -> None:
    assert guess(["prompt", "gpt-4"], [{"prompt": "a", "gpt-4": 3}]).answers == ()


def test_a_score_is_guessed_where_its_model_is_certain() -> None:
    first = [{"q": "a", "answer_b": "x", "answer_c": "y", "b score": "4", "score": 2}]
    found = guess(["question", "answer_b", "answer_c", "b score", "score"], first)
    assert found.scores == (Score("score", "b score", "b"),)


def test_a_list_under_conversations_is_taken_for_messages_and_a_text_is_not() -> None:
    assert guess(["conversations"], [{"conversations": [{"from": "human", "value": "a"}]}]).messages
    assert not guess(["conversation"], [{"conversation": "we spoke"}]).messages


@pytest.mark.parametrize(
    "columns",
    [
        Columns(question=("a, b", "c"), answers=(("m=1@x", "d=e"), ("50%", "f")), fields=()),
        Columns(messages="m", model="n", answer="o", scores=(Score("s@t", "p", ""),)),
        Columns(question=("q",), scores=(Score("x", "y", "z@1"),), fields=(("name", 'a "quoted" one'),)),
    ],
)
def test_a_mapping_that_is_written_reads_back_the_same(columns: Columns) -> None:
    assert parse(str(columns)) == columns


def test_fields_are_all_other_columns_unless_some_are_named() -> None:
    assert parse("question=a").fields_of(["a", "b", "c"]) == [("b", "b"), ("c", "c")]
    assert parse("question=a,field:x=c").fields_of(["a", "b", "c"]) == [("x", "c")]
    assert parse("question=a,field=").fields_of(["a", "b"]) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("question", "columns_not_understood"),
        ("colour=a", "columns_not_understood"),
        ("answer=a", "no_question_column"),
        ("question=z", "no_such_column"),
    ],
)
def test_a_mapping_that_cannot_be_used_says_why(text: str, code: str) -> None:
    with pytest.raises(NotUsable) as refused:
        parse(text).checked(["a", "b"])
    assert refused.value.code == code
