"""Which items a rater gets next, how many, and the sample that is drawn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.core.people.assignment import Shares, Twin, fair_share, mixed, most_held
from judging.core.people.sampling import draw, shares_of, shuffled


def test_gold_comes_only_among_usual_items() -> None:
    shares = Shares(gold=1.0)
    asked = {"count": 3, "place": 0, "gold_had": 0, "shares": shares, "seed": 1, "rater": 1}
    assert mixed([1, 2, 3], [9], [], **asked) == [9, 1, 2]
    assert mixed([], [9], [], **asked) == []


def test_gold_keeps_its_share_among_repeats_that_come_last() -> None:
    twins = [Twin(pk, 3) for pk in range(10, 20)]
    dealt = mixed([], [1, 2], twins, count=12, place=57, gold_had=5, shares=Shares(gold=0.1), seed=1, rater=1)
    assert [sum(pk < 10 for pk in dealt[:number]) for number in (4, 12)] == [1, 2]


def test_a_repeat_waits_some_verdicts_and_comes_at_the_end_at_last() -> None:
    shares = Shares(repeats=1.0)
    asked = {"count": 1, "place": 0, "gold_had": 0, "shares": shares, "seed": 1, "rater": 1}
    assert mixed([1], [], [Twin(8, 3)], **asked) == [1]
    assert mixed([1], [], [Twin(8, 10)], **asked) == [8]
    assert mixed([], [], [Twin(8, 3)], **asked) == [8]


@given(
    st.integers(0, 99), st.sampled_from([0.05, 0.1, 0.3, 0.5, 0.9]), st.lists(st.integers(1, 9), max_size=40)
)
def test_gold_is_never_more_than_one_item_away_from_its_share(
    seed: int, share: float, claims: list[int]
) -> None:
    usual, gold = range(400), range(1000, 1400)
    dealt: list[int] = []
    for count in claims:
        had = sum(pk >= 1000 for pk in dealt)
        dealt += mixed(
            usual[len(dealt) - had :], gold[had:], [], count=count, place=len(dealt), gold_had=had,
            shares=Shares(gold=share), seed=seed, rater=1,
        )  # fmt: skip
    for number in range(1, len(dealt) + 1):
        assert abs(sum(pk >= 1000 for pk in dealt[:number]) - share * number) <= 1


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=50), st.integers(1, 50), st.integers(0, 9))
def test_a_sample_has_the_requested_size_and_says_its_probability(
    strata: list[str], size: int, seed: int
) -> None:
    drawn = draw(strata, size, seed, stratified=True)
    wanted = min(size, len(strata))
    assert len(drawn) == len({one.place for one in drawn}) == wanted
    assert abs(sum(1 / one.probability for one in drawn) - len(strata)) < 1e-6 or wanted < len(set(strata))


def test_a_small_stratum_is_drawn_from_where_the_size_allows_it() -> None:
    assert shares_of({"a": 98, "b": 1, "c": 1}, 10) == {"a": 8, "b": 1, "c": 1}


def test_ranks_are_all_there() -> None:
    assert sorted(shuffled(50, 3)) == list(range(50))
    assert shuffled(50, 3) != shuffled(50, 4)


@pytest.mark.parametrize(
    ("seconds_each", "share", "held"),
    [(None, 200, 10), (30, 200, 20), (5, 200, 30), (300, 200, 10), (30, 7, 7), (None, 0, 1)],
)
def test_ten_minutes_of_items_are_held_but_no_more_than_a_fair_share(
    seconds_each: float | None, share: int, held: int
) -> None:
    assert most_held(seconds_each, share) == held


@pytest.mark.parametrize(
    ("left", "mine", "others", "share"),
    [
        (30, 30, [], 30),
        (30, 30, [30, 30], 10),
        (31, 31, [31, 31], 11),
        (3, 3, [0], 3),  # the other rater has had them all
        (30, 30, [4, 30], 13),
        (30, 4, [30], 4),
        (0, 0, [], 0),
    ],
)
def test_the_rest_is_shared_by_those_who_can_still_give_it(
    left: int, mine: int, others: list[int], share: int
) -> None:
    assert fair_share(left, mine, others) == share


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.integers(0, 100))
def test_fair_shares_add_up_to_what_is_left_and_round_up_only(could: list[int], left: int) -> None:
    shares = [fair_share(left, mine, could[:at] + could[at + 1 :]) for at, mine in enumerate(could)]
    assert min(left, sum(could)) <= sum(shares) < left + len(could)
