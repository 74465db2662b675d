"""One tokenizer reads JSON and what is nearly JSON, in time proportional to the text."""

import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasets.core.json_errors import JsonProblem, parse
from datasets.core.json_repairs import (
    as_json,
    with_null,
    without_comment,
    without_comments,
    without_trailing_comma,
    without_trailing_commas,
)
from datasets.core.json_tokens import Nesting, tokens

CASES = [
    ('{"a": [1]}', "open string colon open word close close"),
    ("// a\n# b\n,", "comment comment comma"),
    ("/* c\n*/,", "comment comma"),
    ("/* a", "unended word"),
    ('"\\x" "\t" "\\\t"', "loose control loose"),
    ("'a' \"b", "single quote word"),
    ("(-1.5e3)“", "round word round quote"),
    ("\u3000/$", "space other other"),
    ("", ""),
]


@pytest.mark.parametrize(("text", "kinds"), CASES)
def test_tokens_have_kinds(text: str, kinds: str) -> None:
    assert " ".join(kind for kind, _, _ in tokens(text)) == kinds


@given(st.text(st.sampled_from("{}[](),:\"'\\/*#au1-. \t\n“\u3000中") | st.characters()))
def test_between_tokens_there_is_only_white_space(text: str) -> None:
    at = 0
    for _kind, start, end in tokens(text):
        assert not text[at:start].strip(" \t\r\n")
        assert end > start
        at = end
    assert not text[at:].strip(" \t\r\n")


def test_what_does_not_fit_changes_nothing() -> None:
    nesting = Nesting()
    assert nesting.take("open", "{")
    assert not nesting.take("close", "]")
    assert (nesting.open, nesting.expected) == (["{"], "key")


def problem(text: str) -> str:
    try:
        parse(text)
    except JsonProblem as error:
        return error.reason
    return ""


def read_comments(text: str) -> list[str]:
    return list(without_comments(text.splitlines(keepends=True)))


def read_commas(text: str) -> Iterator[str]:
    return iter(list(without_trailing_commas(text.splitlines(keepends=True))))


READERS: list[Callable[[str], object]] = [
    problem,
    with_null,
    as_json,
    without_comment,
    without_trailing_comma,
    read_comments,
    read_commas,
]
STARTS = ["", "{'a': NaN, ", '{"a": [1, ']
PARTS = [
    "'",
    '"',
    '\\"',
    "/*",
    "*/",
    "/**/",
    "[",
    "(",
    "[[1],",
    ",",
    "'\n",
    '"\n',
    "#\n",
    "/*\n",
    "“",
    ", /**/",
    "(1,",
]


@pytest.mark.parametrize("reader", READERS)
def test_delimiters_without_end_cost_time_in_proportion_to_the_text(reader: Callable[[str], object]) -> None:
    def cost(size: int) -> float:
        texts = [start + part * (size // len(part)) for start in STARTS for part in PARTS]
        before = time.process_time()
        for text in texts:
            reader(text)
        return time.process_time() - before

    assert cost(40_000) < 8 * 4 * max(min(cost(5_000) for _ in range(3)), 0.005)
