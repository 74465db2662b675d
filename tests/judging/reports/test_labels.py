"""Formatting of figures."""

from __future__ import annotations

import pytest

from evalsite.templatetags.show import p_value
from judging.core.statistics.document import NOTES
from judging.reports.labels import (
    ValueFormat,
    beside,
    decimal,
    interval,
    note_sentences,
    pair_summary,
    signed,
    verdict,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [(7.5, "7.500"), (-0.25, "−0.250"), (0, "0.000"), (None, "–"), (1e300, "1e+300"), (0.0001, "0.0001")],
)
def test_a_figure_has_three_decimals_or_four_digits(value: float | None, text: str) -> None:
    assert decimal(value) == text


@pytest.mark.parametrize(("value", "text"), [(0.5, "+0.500"), (-0.5, "−0.500"), (0.0, "0.000"), (None, "–")])
def test_a_difference_has_its_sign(value: float | None, text: str) -> None:
    assert signed(value) == text


def test_a_difference_of_rates_has_its_unit() -> None:
    rates = ValueFormat(rate=True)
    assert [rates.signed(1.0), rates.signed(-0.075), rates.signed(None)] == [
        "+100.0\xa0pp",
        "−7.5\xa0pp",
        "–",
    ]
    assert (rates.signed_number(1.0), ValueFormat().signed(1.0)) == ("+100.0", "+1.00")


@pytest.mark.parametrize(("p", "text"), [(0.04, "0.040"), (0.0002, "< 0.001"), (0.0, "< 0.001"), (None, "–")])
def test_a_small_p_is_never_shown_as_nothing(p: float | None, text: str) -> None:
    assert p_value(p) == text


def test_a_missing_interval_leaves_no_dash_beside_its_figure() -> None:
    assert beside("7.00", interval(None, None)) == "7.00"
    assert beside("7.00", "") == "7.00"
    assert beside("7.00", "[6, 8]") == "7.00 [6, 8]"


def test_an_interval_without_an_end_is_a_dash() -> None:
    assert (interval(1, 2), interval(None, 2)) == ("[1.000, 2.000]", "–")


@pytest.mark.parametrize("code", NOTES)
def test_every_note_has_a_sentence(code: str) -> None:
    (sentence,) = note_sentences({"alpha": {"notes": [code], "off_scale": 2, "kind": "bool", "ci_low": None}})
    assert sentence.startswith("alpha: ")


def test_a_candidate_that_is_always_the_second_answer_says_what_it_has() -> None:
    cells = {"beta": {"notes": ["nothing_scored"]}}
    side = {"candidates": {"beta": {"wins": 3, "ties": 1, "losses": 2, "unsettled": 0}}}
    (sentence,) = note_sentences(cells, [side])
    assert sentence == "beta is the second answer in all its pairs: 3 won, 1 tied, 2 lost, 0 unsettled."


@pytest.mark.parametrize(
    ("distinguishable", "difference", "text"),
    [
        (True, 1.0, "a is higher"),
        (True, -1.0, "b is higher"),
        (False, 1.0, "no significant difference"),
        (None, 1.0, "too few shared items"),
    ],
)
def test_a_pair_is_summed_up_in_words(distinguishable: bool | None, difference: float, text: str) -> None:
    pair = {"a": "a", "b": "b", "distinguishable": distinguishable, "difference": difference}
    assert verdict(pair) == text


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        ([True, True], ""),
        ([False], "The pair does not differ significantly."),
        ([False, False], "None of the 2 pairs differ significantly."),
        ([False, True, None], "1 of 2 pairs do not differ significantly. 1 pair shares too few items."),
        ([None, None], "2 pairs share too few items."),
    ],
)
def test_pairs_with_too_few_items_are_counted_apart(pairs: list[bool | None], text: str) -> None:
    assert pair_summary([{"distinguishable": one} for one in pairs]) == text
