"""Text diffs mark what a reader would mark, and both texts can be reconstructed from them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsite.text_diff import MOST_TOKENS, Passage, excerpts, pieces

texts = st.text(alphabet="ab 你好,\n", max_size=60)


def shown(before: str, after: str) -> str:
    marks = {"same": "%s", "removed": "[-%s-]", "added": "[+%s+]", "gap": "…%s"}
    return "".join(marks[piece.kind] % piece.text for piece in pieces(before, after))


@pytest.mark.parametrize(
    ("before", "after", "result"),
    [
        ("same", "same", "same"),
        ("", "new", "[+new+]"),
        ('{"a": 1,}', '{"a": 1}', '{"a": 1[-,-]}'),
        ("one red fox", "one blue fox", "one [-red-][+blue+] fox"),
        ("答案等于三十二", "答案等于三十三", "答案等于三十[-二-][+三+]"),
        ("a\nb\nc\n", "a\nx\nc\n", "a\n[-b-][+x+]\nc\n"),
    ],
)
def test_what_differs_is_marked(before: str, after: str, result: str) -> None:
    assert shown(before, after) == result


@given(texts, texts)
def test_both_texts_can_be_read_off(before: str, after: str) -> None:
    found = pieces(before, after)
    assert "".join(piece.text for piece in found if piece.kind != "added") == before
    assert "".join(piece.text for piece in found if piece.kind != "removed") == after


def test_texts_too_long_to_compare_are_replaced_as_a_whole() -> None:
    assert len(pieces("a " * MOST_TOKENS + "x", "b " * MOST_TOKENS + "y")) == 2


def test_an_excerpt_keeps_what_is_next_to_a_change() -> None:
    found = excerpts(pieces("x" * 500 + "1" + "y" * 500, "x" * 500 + "y" * 500), around=3)
    assert found == [
        *(Passage("gap", ""), Passage("same", "xxx")),
        *(Passage("removed", "1"), Passage("same", "yyy"), Passage("gap", "")),
    ]
