"""The items behind a pair."""

from __future__ import annotations

import pytest

from judging.core.statistics.columns import Kind
from judging.core.statistics.gather import Judgement
from judging.reports.pairing import PairItem, pair_items


def judged(candidate: str, line: int, response: int, value: str | None) -> Judgement:
    return 1, candidate, line, response, "scored" if value else "error", value, None


def test_an_items_responses_are_meaned_and_the_largest_difference_comes_first() -> None:
    judgements = [judged("a", 3, 1, "4"), judged("a", 3, 2, "6"), judged("b", 3, 1, "5")]
    judgements += [judged("a", 7, 1, "9"), judged("b", 7, 1, "1")]
    items = pair_items(judgements, 1, "a", "b", Kind.NUMBER)
    assert items == [PairItem(7, 9.0, 1.0), PairItem(3, 5.0, 5.0)]


def test_an_item_that_one_has_no_score_for_is_not_shared() -> None:
    judgements = [judged("a", 3, 1, "4"), judged("b", 3, 1, None), judged("a", 4, 1, "4")]
    assert pair_items(judgements, 1, "a", "b", Kind.NUMBER) == []


@pytest.mark.parametrize(("a", "b", "outcome"), [(2, 1, "wins"), (1, 2, "losses"), (0.1 + 0.2, 0.3, "ties")])
def test_who_is_ahead_is_told_beyond_rounding(a: float, b: float, outcome: str) -> None:
    assert PairItem(1, a, b).outcome == outcome
