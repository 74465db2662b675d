"""Rankings: the comparisons that they imply, ties, the order shown."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.core.people.criteria import Criterion, ValuesRefused, accepted, as_shown, canonical
from judging.core.people.item_outcomes import kind_of_item, undecided_pairs
from judging.core.people.parts import joined, of_answers, outcomes_of_ranking, parts_of, split
from judging.core.people.ranking import distance, pairs_of, ranking_of, shown_order, tiers

RANK = of_answers(Criterion(name="Preference", scale="rank"), 3)
places = st.lists(st.integers(1, 6), min_size=3, max_size=6)


def test_a_ranking_implies_a_comparison_for_each_pair() -> None:
    assert pairs_of("2,1,3") == [(0, 1, "B>A"), (0, 2, "A>B"), (1, 2, "A>B")]


def test_tied_answers_are_equal() -> None:
    assert pairs_of("1,2,2") == [(0, 1, "A>B"), (0, 2, "A>B"), (1, 2, "A=B")]


@given(places)
def test_the_comparisons_agree_with_the_places(given_places: list[int]) -> None:
    signs = {"A>B": 1, "A=B": 0, "B>A": -1}
    for a, b, better in pairs_of(ranking_of(given_places)):
        apart = given_places[b] - given_places[a]
        assert signs[better] == (apart > 0) - (apart < 0)


def test_rankings_that_say_the_same_are_stored_alike() -> None:
    assert accepted({0: RANK}, {0: "1,3,3"}) == accepted({0: RANK}, {0: "1,2,2"}) == {0: "1,2,2"}


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("1,2", "not_on_scale"),
        ("1,2,4", "not_on_scale"),
        ("1,2,x", "not_on_scale"),
        ("1,,2", "missing"),
        ([1, 2, 3], "not_on_scale"),
        (None, "missing"),
    ],
)
def test_a_ranking_gives_each_answer_a_place(value: object, code: str) -> None:
    with pytest.raises(ValuesRefused) as refused:
        accepted({0: RANK}, {0: value})
    assert refused.value.codes == {0: code}


def test_places_given_as_shown_belong_to_the_answers() -> None:
    order = [2, 0, 1]  # the third answer stands first
    assert canonical({0: RANK}, {0: "1,2,3"}, None, order) == {0: "2,3,1"}


@given(places, st.randoms())
def test_what_was_seen_comes_back(given_places: list[int], random: object) -> None:
    order = list(range(len(given_places)))
    random.shuffle(order)  # type: ignore[attr-defined]
    ranking = {0: ",".join(map(str, given_places))}
    assert as_shown({0: RANK}, canonical({0: RANK}, ranking, None, order), None, order) == ranking


def test_a_form_asks_for_the_place_of_each_answer() -> None:
    assert [(part.key, part.criterion.name, part.letter) for part in parts_of({0: RANK})] == [
        ("0.1", "A", "A"),
        ("0.2", "B", "B"),
        ("0.3", "C", "C"),
    ]
    assert parts_of({0: RANK})[0].criterion.choices == (1, 2, 3)


def test_an_unfinished_ranking_is_kept_as_far_as_it_goes() -> None:
    by_key = {"0.1": 2, "0.3": 1}
    value = joined({0: RANK}, by_key)
    assert value == {0: "2,,1"}
    assert split({0: RANK}, value) == by_key


def test_several_rankings_name_their_criterion() -> None:
    parts = parts_of({0: RANK, 1: of_answers(Criterion(name="Style", scale="rank"), 3)})
    assert parts[3].criterion.name == "Style · A"


def test_without_a_value_every_comparison_is_left_empty() -> None:
    assert [outcome.reason for *_, outcome in outcomes_of_ranking(None, 4)] == ["left_empty"] * 6


@given(st.integers(3, 6), st.integers(0, 9), st.integers(1, 9))
def test_of_two_raters_each_answer_of_a_pair_stands_first_once(answers: int, seed: int, item: int) -> None:
    first, second = (shown_order(answers, seed, item, before) for before in (0, 1))
    assert sorted(first) == list(range(answers))
    assert second == first[::-1]


def test_each_answer_stands_first_about_equally_often() -> None:
    first = Counter(shown_order(3, 7, item, 0)[0] for item in range(600))
    assert min(first.values()) > 160


def test_tied_names_stand_together() -> None:
    assert tiers("2,1,2", ["x", "y", "z"]) == [["y"], ["x", "z"]]


@pytest.mark.parametrize(
    ("a", "b", "apart"), [("1,2,3", "1,2,3", 0), ("1,2,3", "3,2,1", 1), ("1,1,1", "1,2,3", 0.5)]
)
def test_rankings_are_apart_by_the_pairs_on_which_they_differ(a: str, b: str, apart: float) -> None:
    assert distance(a, b) == apart


@pytest.mark.parametrize(
    ("rankings", "kind"),
    [
        (["1,2,3"], "single"),
        (["1,2,3", "1,2,3"], "agreed"),
        (["1,1,1", "1,1,1"], "equal"),
        (["1,2,3", "1,2,2"], "near"),
        (["1,2,3", "1,3,2"], "split"),
    ],
)
def test_an_item_is_split_where_raters_turn_a_pair_round(rankings: list[str], kind: str) -> None:
    assert kind_of_item(RANK, rankings) == kind


def test_pairs_without_a_majority_are_named() -> None:
    assert undecided_pairs(RANK, ["1,2,3", "1,3,2"]) == [(1, 2)]
