"""Number of items needed to detect a given difference, from the document's pair figures."""

from __future__ import annotations

from typing import Any

import pytest

from judging.core.statistics.means import Estimate, items_needed
from judging.reports.page.pairs import WantedDifference, wanted_difference


def a_pair(se: float | None = 0.2, items: int = 100) -> dict[str, Any]:
    return {"difference": 0.1, "se": se, "items": items, "clusters": items}


def wanted(
    text: str, *pairs: dict[str, Any], rate: bool = False, scale: Any = (1.0, 10.0)
) -> WantedDifference:
    found = wanted_difference(text, pairs or (a_pair(),), scale, rate=rate)
    assert found is not None
    return found


def test_without_pairs_there_is_nothing_to_ask() -> None:
    assert wanted_difference("0.3", [], (1.0, 10.0), rate=False) is None


def test_nothing_entered_is_no_error() -> None:
    found = wanted("")
    assert (found.needed, found.error, found.sentence) == ((), "", "")


def test_a_pair_needs_what_the_statistics_say() -> None:
    needed = items_needed(Estimate(0.1, 0.2, None, None, 100, 100), 0.3)
    found = wanted(" 0.3 ")
    assert found.needed == [needed]
    assert found.sentence == f"Detecting this difference with 80 % power takes {needed} shared items."


def test_several_pairs_have_a_span() -> None:
    found = wanted("0.5", a_pair(0.1), a_pair(0.2), a_pair(None))
    low, high, unknown = found.needed
    assert unknown is None
    assert f"takes {low} to {high} shared items, by pair." in found.sentence


def test_rates_are_entered_in_percentage_points() -> None:
    assert wanted("5", rate=True, scale=(None, None)).needed == wanted("0.05").needed


def test_without_spread_the_number_is_unknown() -> None:
    assert "can't be estimated" in wanted("0.5", a_pair(None)).sentence
    assert "can't be estimated" in wanted("0.5", a_pair(0.0)).sentence


@pytest.mark.parametrize("text", ["x", "0", "-1", "nan", "inf", "1e-300", "9.5", "0,3", "1" * 21])
def test_what_is_no_difference_of_the_scale_gets_a_sentence(text: str) -> None:
    found = wanted(text)
    assert (found.text, found.needed) == (text, ())
    assert found.error == "Enter a number from 0.001 to 9."


def test_without_a_declared_scale_any_usual_difference_is_one() -> None:
    assert wanted("1000", scale=(None, None)).needed == [2]
    assert wanted("1e300", scale=(None, None)).error == "Enter a number from 0.001 to 1,000,000."


def test_scores_beyond_all_scales_leave_the_number_unknown() -> None:
    assert "can't be estimated" in wanted("0.001", a_pair(1e200)).sentence
