"""Criteria in a model's reply, and what is sent to it."""

from __future__ import annotations

import pytest

from judging.rubrics.reply import DraftedCriterion, read_criteria, rubric_prompt

REPLY = "CRITERION: Says to cool it.\nPOINTS: 3\n\n2. **CRITERION:** Recommends butter.\n**POINTS:** -4"
DATA = {"question": "Burnt finger?", "history": None, "gt": None, "ref_answer": "Cool it."}


def test_a_reply_is_read_line_by_line() -> None:
    assert read_criteria(REPLY) == [
        DraftedCriterion("Says to cool it.", 3),
        DraftedCriterion("Recommends butter.", -4),
    ]


def test_criteria_that_exist_are_left_out() -> None:
    assert read_criteria(REPLY, ["Says to cool it."]) == [DraftedCriterion("Recommends butter.", -4)]


@pytest.mark.parametrize("points", ["0", "many", "1000", ""])
def test_points_that_cannot_be_meant_are_one(points: str) -> None:
    assert read_criteria(f"CRITERION: a\nPOINTS: {points}") == [DraftedCriterion("a", 1)]


@pytest.mark.parametrize(
    "reply", ["", "Sorry.", "POINTS: 3", "CRITERION: cut off", f"<think>{REPLY}</think>"]
)
def test_a_reply_without_a_whole_criterion_gives_none(reply: str) -> None:
    assert read_criteria(reply) == []


def test_question_reference_and_existing_criteria_are_sent() -> None:
    prompt = rubric_prompt(DATA, ["Is short."], "en")
    assert all(text in prompt for text in ("Burnt finger?", "Cool it.", "Is short."))
    assert "EARLIER TURNS" not in prompt
