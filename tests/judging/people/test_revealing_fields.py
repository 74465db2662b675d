"""Fields that may reveal an answer's candidate: few short values, or a candidate's name."""

from __future__ import annotations

import pytest

from judging.people.blindness import MOST_VALUES, is_named, revealing_fields


def found(*values: str, names: tuple[str, ...] = ()) -> list[tuple[str, tuple[str, ...]]]:
    """Of two candidates whose answers to a row have these system turns, two to a row."""
    turns = [{"system": value} if value else {} for value in values]
    rows = [turns[place : place + 2] for place in range(0, len(turns), 2)]
    return [(one.name, one.values) for one in revealing_fields(rows, names)]


def test_few_short_values_of_one_row_are_found_the_most_frequent_first() -> None:
    assert found("b", "a", "b", "c") == [("", ("b", "a", "c"))]


def test_a_turn_that_only_one_candidate_has_distinguishes_them() -> None:
    assert found("Be brief.", "", "Be brief.", "") == [("", ("Be brief.",))]


def test_values_that_differ_between_rows_only_tell_no_candidate_from_another() -> None:
    assert found("a", "a", "b", "b", "a", "a") == []


def test_rows_whose_candidates_share_all_turns_are_no_warning() -> None:
    assert revealing_fields([[{"system": value}] for value in "abab"], ()) == []


@pytest.mark.parametrize("candidates", [1, 2])
def test_a_name_in_a_turn_that_all_candidates_share_is_no_warning(candidates: int) -> None:
    assert revealing_fields([[{"system": "You are ant."}] * candidates], ("ant", "bee")) == []


@pytest.mark.parametrize(
    "values",
    [
        ("same", "same"),
        ("one", "two"),
        ("a" * 100, "b", "b", "c"),
        [str(n % (MOST_VALUES + 1)) for n in range(100)],
    ],
)
def test_one_value_different_ones_long_ones_and_many_are_no_warning(values: tuple[str, ...]) -> None:
    assert found(*values) == []


def test_a_name_is_found_where_the_candidates_of_a_row_differ() -> None:
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
