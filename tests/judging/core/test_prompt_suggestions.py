"""A better prompt: what a model is sent, and how its reply is read."""

from __future__ import annotations

import pytest

from judging.core.prompt_suggestions import Case, lost_mark, read_suggestion, suggestion_prompt

CASE = Case("1+1?", "It is\n3.", "Pass", "Looks right.", "Fail", "")
BEGIN, END = "----- NEW PROMPT BEGIN -----", "----- NEW PROMPT END -----"


def test_both_answers_of_a_comparison_are_sent() -> None:
    case = Case("1+1?", "It is 3.", "A>B", "", "B>A", "", "It is 2.")
    prompt = suggestion_prompt("Judge.", [case], "en")
    assert "   answer A: It is 3.\n   answer B: It is 2.\n   judge: A>B." in prompt


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_request_holds_the_prompt_and_both_reasons(language: str) -> None:
    prompt = suggestion_prompt("Judge %(cases)s {{ a }}\n", [CASE], language)
    assert "Judge %(cases)s {{ a }}\n----- PROMPT END" in prompt
    assert (
        "1. question: 1+1?\n   answer: It is 3.\n   judge: Pass. Looks right.\n   people: Fail.\n" in prompt
    )


def test_long_texts_are_cut() -> None:
    long = Case("q" * 5_000, "a" * 5_000, "Pass", "r" * 5_000, "Fail", "p" * 5_000)
    assert len(suggestion_prompt("", [long] * 20, "en")) < 20 * 2_600


@pytest.mark.parametrize(
    ("reply", "template"),
    [
        (f"{BEGIN}\nJudge.\n\n{{{{ a }}}}\n{END}", "Judge.\n\n{{ a }}\n"),
        (f"Here:\r\n{BEGIN}\r\nJudge.\r\n{END}\r\nDone.", "Judge.\n"),
        (f"{BEGIN}\n```jinja\nJudge.\n```\n{END}", "Judge.\n"),
        (f"<think>{BEGIN}\nNo.\n{END}</think>{BEGIN}\nYes.\n{END}", "Yes.\n"),
        (f"{BEGIN}\nFirst.\n{END}\n{BEGIN}\nSecond.\n{END}", "Second.\n"),
        (f"{BEGIN}\ncut off", ""),
        (f"{BEGIN}\n\n{END}", ""),
        ("Judge.", ""),
        ("", ""),
    ],
)
def test_a_reply_is_read_between_its_lines(reply: str, template: str) -> None:
    assert read_suggestion(reply) == template


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        ("{{ a }} {% if b %}x{% endif %}", "{%- if b -%}y{%- endif -%} {{a}} {{ c }}", ""),
        ("{{ a }} {{ b }}", "{{ a }}", "{{ b }}"),
        ("{% for m in data.messages %}{% endfor %}", "x", "{% for m in data.messages %}"),
        ("x", "y", ""),
    ],
)
def test_a_prompt_keeps_its_variables(before: str, after: str, lost: str) -> None:
    assert lost_mark(before, after) == lost
