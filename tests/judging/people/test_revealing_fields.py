"""Fields that may reveal an answer's candidate: few short values, or a candidate's name."""

from __future__ import annotations

import pytest

from judging.people.blindness import MOST_VALUES, is_named, revealing_fields


def found(*values: str, names: tuple[str, ...] = ()) -> list[tuple[str, tuple[str, ...]]]:
    rows = [{"system": value} if value else {} for value in values]
    return [(one.name, one.values) for one in revealing_fields(rows, names)]


def test_few_short_values_are_found_the_most_frequent_first() -> None:
    assert found("b", "a", "b") == [("", ("b", "a"))]


def test_a_field_that_only_some_rows_have_distinguishes_them() -> None:
    assert found("Be brief.", "", "Be brief.", "") == [("", ("Be brief.",))]


@pytest.mark.parametrize(
    "values",
    [
        ("same", "same"),
        ("one", "two"),
        ("a" * 100, "b", "b"),
        [str(n % (MOST_VALUES + 1)) for n in range(99)],
    ],
)
def test_one_value_different_ones_long_ones_and_many_are_no_warning(values: tuple[str, ...]) -> None:
    assert found(*values) == []


def test_a_name_is_found_wherever_it_is() -> None:
    assert found("You are Qwen 2.5, a model.", "You help.", names=("qwen-2.5", "gpt")) == [("qwen-2.5", ())]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("llama_2", "I am LLaMA-2.", True),
        ("qwen", "我是Qwen模型", True),
        ("base", "a database", False),
        ("A", "A helpful assistant", False),
        ("..", "wait ...", False),
    ],
)
def test_a_name_counts_as_a_word(name: str, text: str, expected: bool) -> None:
    assert is_named(name, text) is expected
