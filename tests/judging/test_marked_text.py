"""Words that are marked in a reply, as written and rendered."""

from __future__ import annotations

import html
import re

import pytest

from judging.markdown import html_of
from judging.marked_text import Piece, pieces


def marked(source: str, words: str) -> list[str]:
    """The marked texts of the rendered source, without tags."""
    start = source.rindex(words)
    rendered = html_of(source, marks=[(start, start + len(words))])
    assert re.sub("</?mark>", "", rendered) == html_of(source)
    return [
        html.unescape(re.sub("<[^>]*>", "", part))
        for part in re.findall("<mark>(.*?)</mark>", rendered, re.DOTALL)
    ]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("Good. Score: [[8]]", "[[8]]"),
        ("I said 8 first, then\n\n**8**", "8"),
        ("# Score: 8", "Score: 8"),
        ("| part | score |\n| --- | --- |\n| total | 8 |", "8"),
        ('{"reasoning": "8 of 10", "score": 8}', "8"),
        ('```json\n{"score": 8}\n```', "8"),
        ("1. 很好\n2. 评分：【8】", "【8】"),
        ("A is better: [[A>B]]", "[[A>B]]"),
        ("See [8](http://x.y/8). Score: 8", "8"),
    ],
)
def test_the_words_are_marked_where_they_stand_in_the_rendered_text(source: str, words: str) -> None:
    assert "".join(marked(source, words)) == words
    start = source.rindex(words)
    before = re.sub("<mark>.*", "", html_of(source, marks=[(start, start + len(words))]), flags=re.DOTALL)
    assert re.sub(r"\W", "", re.sub("<[^>]*>", "", before)).endswith(
        re.sub(r"\W", "", source[:start].rsplit(")", 1)[-1])[-2:]
    )


def test_emphasis_within_the_words_divides_the_mark() -> None:
    assert marked("**Score**: 8", "**Score**: 8") == ["Score", ": 8"]


def test_words_of_a_formula_are_not_marked() -> None:
    assert marked(r"So $\boxed{8}$", "8") == []


def test_a_text_as_written_is_divided_at_the_places() -> None:
    assert pieces("a 8 b", [(2, 3)]) == [Piece("a ", False), Piece("8", True), Piece(" b", False)]


def test_places_beyond_the_text_are_left_out() -> None:
    assert pieces("8", [(5, 9)]) == [Piece("8", False)]
