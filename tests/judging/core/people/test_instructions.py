"""A judge's prompt becomes a guideline for people."""

from __future__ import annotations

import pytest

from judging.core.builtin import builtin
from judging.core.people.instructions import instruction_of


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("Is it right?\n\nQ: {{ data.question }}\nA: {{ response.content }}", "Is it right?"),
        ("{% if data.x %}Mind x.{% endif %}{# a note #}", "Mind x."),
        ("{% if data.x -%}\nMind x.\n{%- else -%}\nSay so.\n{%- endif %}", "Mind x."),
        ("From {{ min_score }} to {{ '%g' | format(max_score) }}.", "From 1 to 5."),
        ("Read.\n<answer>\n{{ response.content }}\n</answer>\n\n\n\nJudge.", "Read.\n\nJudge."),
        ("Rate {{ response.content }}", "Rate {{ response.content }}"),
        ("You are an impartial judge. Judge the answer.", "Judge the answer."),
        ("你是一名公正的评判者。请评判这个回答。", "请评判这个回答。"),
    ],
)
def test_what_is_for_a_model_only_is_left_out(template: str, words: str) -> None:
    assert instruction_of(template, 1, 5) == words


def test_the_system_prompt_comes_first() -> None:
    assert instruction_of("Score it.", 1, 5, "You are strict. ") == "You are strict.\n\nScore it."


def test_a_built_in_template_keeps_its_criteria_and_no_placeholder() -> None:
    words = instruction_of(builtin("single_turn_score.en").source, 1, 10)
    assert "1." in words
    assert not [sign for sign in ("{{", "{%", "-----", "BEGINS") if sign in words]


def test_people_are_not_told_of_lines_that_only_a_prompt_has() -> None:
    assert "“开始”行" not in instruction_of(builtin("single_turn_pass_fail.zh").source, 0, 1)
