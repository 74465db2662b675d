"""Texts of test rows in a metric's texts."""

from __future__ import annotations

import pytest

from judging.core.leaks import first_leak

ROW = "What is the boiling point of water at the top of Mount Everest, and why is it lower than at sea level?"


@pytest.mark.parametrize(
    ("text", "leaks"),
    [
        (f"Example: {ROW}", True),
        (f"Example: {ROW[7:67]}.", True),
        (f"Example: {ROW[7:66]}.", False),
        (f"Example: {ROW[31:91].upper()}", True),
        ("Example: " + ROW.replace(" ", "\n  "), True),
        ("Judge the answer.", False),
        ("", False),
    ],
)
def test_a_stretch_of_sixty_characters_counts_whatever_case_and_blanks(text: str, leaks: bool) -> None:
    assert bool(first_leak(text, [ROW])) == leaks


@pytest.mark.parametrize("start", range(0, len(ROW) - 60))
def test_it_is_found_wherever_it_begins(start: int) -> None:
    assert first_leak(f"so: {ROW[start : start + 60]}!", ["short", ROW])


@pytest.mark.parametrize(
    ("row", "leaks"),
    [("It is 42, no less.", False), ("It is 42, no less..!", True), ("It is 42, no less..!?", False)],
)
def test_a_short_text_counts_where_all_of_it_stands_there(row: str, leaks: bool) -> None:
    assert bool(first_leak("He said: It is 42, no less..! And left.", [row])) == leaks
