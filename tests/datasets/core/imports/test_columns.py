"""Column roles: guessed from names, and given as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from datasets.core.imports.columns import SETTLING, Columns, LazyLooks, Score, guess, looks_of, parse
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
        ("question gpt-4 gpt-4.text", "question=question,answer:gpt-4=gpt-4"),
        (
            "question response response.choices response.choices.message.content",
            "question=question,answer=response.choices.message.content",
        ),
    ],
)
def test_names_of_columns_tell_what_they_hold(columns: str, mapping: str) -> None:
    assert str(guess(columns.split())) == mapping


def test_a_column_of_numbers_is_no_models_answer() -> None:
    assert guess(["prompt", "gpt-4"], looks_of([{"prompt": "a", "gpt-4": 3}])).answers == ()


def test_a_score_is_guessed_where_its_model_is_certain() -> None:
    first = [{"q": "a", "answer_b": "x", "answer_c": "y", "b score": "4", "score": 2}]
    found = guess(["question", "answer_b", "answer_c", "b score", "score"], looks_of(first))
    assert found.scores == (Score("score", "b score", "b"),)


def test_a_list_under_conversations_is_taken_for_messages_and_a_text_is_not() -> None:
    assert guess(["conversations"], looks_of([{"conversations": [{"from": "human", "value": "a"}]}])).messages
    assert not guess(["conversation"], looks_of([{"conversation": "we spoke"}])).messages


@pytest.mark.parametrize(
    "columns",
    [
        Columns(question=("a, b", "c"), answers=(("m=1@x", "d=e"), ("50%", "f")), fields=()),
        Columns(messages="m", answers=(("gpt", "m"),), outputs="o"),
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


def test_all_records_are_read_only_for_a_column_that_the_first_ones_do_not_settle() -> None:
    begun = []

    def records() -> Iterator[dict[str, Any]]:
        begun.append(len(begun))
        yield from ({"text": "a", "score": 1} for _number in range(SETTLING))
        yield {"text": 1, "score": "none"}

    looks = LazyLooks(records)
    assert (looks["text"].all_numbers, len(begun)) == (False, 1)
    assert (looks["score"].all_numbers, len(begun)) == (False, 2)


@pytest.mark.parametrize("answers", [["B", "a"], ["no", "yes"], [1, "A"], ["(B)", "yes"]])
def test_letters_and_texts_of_choices_are_the_reference(answers: list[Any]) -> None:
    records = [{"question": "q", "choices": ["yes", "no"], "answer": answer} for answer in answers]
    assert guess(["question", "choices", "answer"], looks_of(records)).reference == "answer"


@pytest.mark.parametrize("more", [{"answer": "I think B"}, {"answer": "B", "model": "m"}])
def test_other_texts_and_those_of_a_model_beside_choices_are_answers(more: dict[str, Any]) -> None:
    records = [{"question": "q", "choices": ["yes", "no"]} | more]
    assert guess(list(records[0]), looks_of(records)).answer == "answer"
