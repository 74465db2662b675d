"""Fields common to every row."""

from __future__ import annotations

import pytest

from judging.records.row_fields import format_of, language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Translate 我 into English, please.", "Latin script"),
        ("把 Hello world 翻译成中文，并解释原因。", "Chinese"),
        ("日本語の質問に答えてください", "Japanese"),
        ("请把“ありがとう”翻译成中文并说明它的用法和来源。", "Chinese"),
        ("질문에 답해 주세요", "Korean"),
        ("Ответьте на вопрос", "Cyrillic script"),
        ("2 + 2 = ?", "other"),
        ("", "other"),
    ],
)
def test_a_language_is_what_most_words_are_written_in(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("Fix this:\n```python\nprint(1\n```", "code"),
        ("| name | age |\n| --- | ---: |\n| Ann | 3 |\nHow old is Ann?", "table"),
        ('What is wrong with {"name": "Ann", "age": 3}?', "JSON"),
        ('Sort ["b", "a"].', "JSON"),
        ("Which is right?\n\n1. Paris\n2. Rome", "list"),
        ("请按要求回答：\n1、先分析\n2、再总结", "list"),
        ("Which is larger?\n- nine", "plain text"),
        ("1.5 or\n2.5 - which is larger?", "plain text"),
        ("Why is the sky blue - and not green? {maybe}", "plain text"),
        ("", "plain text"),
    ],
)
def test_a_format_is_what_a_text_holds_besides_sentences(text: str, form: str) -> None:
    assert format_of(text) == form
