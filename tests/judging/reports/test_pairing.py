"""Pairing two candidates' responses by item."""

from __future__ import annotations

import numpy as np
import pytest

from judging.core.statistics.frame import JudgementTuple, ScaledMetric, judgement_frame, ordered
from judging.reports.pairing import ItemMeans, PairItem, PairItems, means_of, pair_items


def judged(candidate: str, line: int, response: int, value: str | None) -> JudgementTuple:
    return 1, candidate, line, response, "scored" if value else "error", value, None


def items_of(judgements: list[JudgementTuple]) -> list[PairItem]:
    table = ordered(judgement_frame(judgements, {1: ScaledMetric("m")}, {"a": "a", "b": "b"}))
    return pair_items(*(means_of(table, name, "number") for name in ("a", "b"))).page(0, 100)


def test_an_items_responses_are_meaned_and_the_largest_difference_comes_first() -> None:
    judgements = [judged("a", 3, 1, "4"), judged("a", 3, 2, "6"), judged("b", 3, 1, "5")]
    judgements += [judged("a", 7, 1, "9"), judged("b", 7, 1, "1")]
    assert items_of(judgements) == [PairItem(7, 9.0, 1.0), PairItem(3, 5.0, 5.0)]


def test_an_item_that_one_has_no_score_for_is_not_shared() -> None:
    judgements = [judged("a", 3, 1, "4"), judged("b", 3, 1, None), judged("a", 4, 1, "4")]
    assert items_of(judgements) == []


@pytest.mark.parametrize(("a", "b", "outcome"), [(2, 1, "wins"), (1, 2, "losses"), (0.1 + 0.2, 0.3, "ties")])
def test_who_is_ahead_is_decided_beyond_rounding(a: float, b: float, outcome: str) -> None:
    items = PairItems(np.array([1]), np.array([float(a)]), np.array([float(b)]))
    assert {name: count for name, count in items.counts().items() if count} == {outcome: 1}
    assert len(items.of(outcome)) == 1


def test_means_come_back_as_they_were_packed() -> None:
    given = ItemMeans(np.array([3, 7]), np.array([0.1, 1e300]))
    found = ItemMeans.unpacked(given.packed())
    assert (found.lines.tolist(), found.means.tolist()) == ([3, 7], [0.1, 1e300])
