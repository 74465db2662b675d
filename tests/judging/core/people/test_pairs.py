"""Which answers are paired, and on which side each is shown."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from judging.core.people.sampling import against, balanced, every_pair, first_sides, side_for


def test_every_pair_meets_once() -> None:
    assert every_pair([3, 1, 2]) == [(1, 2), (1, 3), (2, 3)]


def test_each_meets_the_baseline_where_it_answered() -> None:
    assert against(2, [1, 2, 3]) == [(1, 2), (3, 2)]
    assert against(2, [1, 3]) == []


@given(st.integers(2, 7), st.integers(1, 40), st.integers(1, 3), st.integers(0, 999))
def test_balanced_candidates_come_equally_often_to_within_one(
    candidates: int, items: int, per_item: int, seed: int
) -> None:
    dealt = balanced([range(candidates)] * items, per_item, seed)
    counts = Counter(one for pairs in dealt for pair in pairs for one in pair)
    times = [counts[one] for one in range(candidates)]
    assert max(times) - min(times) <= (1 if per_item == 1 else 2)


@given(st.integers(2, 6), st.integers(1, 30), st.integers(1, 4), st.integers(0, 99))
def test_balanced_pairs_of_an_item_differ_and_are_as_many_as_can_be(
    candidates: int, items: int, per_item: int, seed: int
) -> None:
    wanted = min(per_item, candidates * (candidates - 1) // 2)
    for pairs in balanced([range(candidates)] * items, per_item, seed):
        assert len(set(pairs)) == len(pairs) == wanted


def test_balanced_uses_only_those_who_answered() -> None:
    assert balanced([[1, 2], [3], []], 2, seed=1) == [[(1, 2)], [], []]


def test_the_same_seed_deals_the_same_pairs() -> None:
    there = [range(5)] * 20
    assert balanced(there, 2, seed=4) == balanced(there, 2, seed=4)
    assert balanced(there, 2, seed=4) != balanced(there, 2, seed=5)


@given(st.lists(st.sampled_from("abc"), max_size=60), st.integers(0, 99))
def test_both_orders_of_a_pair_come_equally_often_to_within_one(pairs: list[str], seed: int) -> None:
    sides = first_sides(pairs, seed)
    for pair in set(pairs):
        mine = [side for side, name in zip(sides, pairs, strict=True) if name == pair]
        assert abs(mine.count(1) - mine.count(2)) <= 1


@given(st.sampled_from([1, 2]), st.integers(0, 9))
def test_the_sides_alternate_from_rater_to_rater(first: int, earlier: int) -> None:
    assert {side_for(first, earlier), side_for(first, earlier + 1)} == {1, 2}
    assert side_for(first, 0) == first
