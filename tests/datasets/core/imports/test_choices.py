"""A reference that names one of the choices beside it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.datasets.core.imports.tabular import taken


def references(choices: list[Any], *answers: Any) -> list[Any]:
    records = [{"question": "q", "choices": choices, "answer": answer} for answer in answers]
    return taken("".join(json.dumps(record) + "\n" for record in records)).field("ref_answer")


@pytest.mark.parametrize(
    ("choices", "answers", "wanted"),
    [
        (["yes", "no"], ["B", "a"], ["no", "yes"]),
        (["yes", "no"], ["no", "yes"], ["no", "yes"]),
        (["yes", "no"], [1, "yes", "A"], ["no", "yes", "yes"]),
        (["2", "3", "1"], ["2", "1"], ["2", "1"]),  # all are texts of choices
        (["b", "a"], ["a", "b"], ["a", "b"]),
    ],
)
def test_numbers_letters_and_texts_become_the_text_of_the_choice(
    choices: list[Any], answers: list[Any], wanted: list[Any]
) -> None:
    assert references(choices, *answers) == wanted


def test_letters_in_a_csv_are_the_reference() -> None:
    assert taken('question,choices,answer\nq,"[""x"", ""y""]",B\n').field("ref_answer") == ["y"]


def test_a_letter_beyond_the_choices_is_told() -> None:
    records = [{"question": "q", "choices": ["x"], "answer": answer} for answer in "AB"]
    found = taken("".join(json.dumps(record) + "\n" for record in records))
    assert found.left_out == [("no_such_choice", 2, "answer: B")]
