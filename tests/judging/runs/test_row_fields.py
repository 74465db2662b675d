"""Fields that every row has."""

from __future__ import annotations

import pytest

from judging.runs.row_fields import language_of


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
