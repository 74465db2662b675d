"""Ranks, win shares, win matrix and headline result: pure functions over a document's figures."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import translation

from judging.core.statistics.headline import Code, Headline
from judging.core.statistics.ranking import comparisons_under
from judging.reports.labels import ValueFormat, names_of
from judging.reports.links import Links
from judging.reports.page.leaderboard import rank_ranges, win_shares
from judging.reports.page.pairs import pair_matrix, tone
from judging.reports.page.report_view import chosen_metrics
from judging.reports.page.result_card import (
    agreement_sentence,
    short_number,
    standing_sentence,
    stats_of,
    unscored_sentence,
)


def a_pair(
    a: str, b: str, difference: float, distinguishable: bool | None = True, **more: Any
) -> dict[str, Any]:
    counts = {"wins": 6, "ties": 2, "losses": 2, "items": 10, "ci_low": -1.0, "ci_high": 1.0, "p_holm": 0.5}
    pair = {"metric": "m", "a": a, "b": b, "difference": difference, "distinguishable": distinguishable}
    return {**counts, **pair, **more}


def cells(**means: float | None) -> dict[str, Any]:
    return {name: {"mean": mean, "asked": 10, "scored": 10} for name, mean in means.items()}


def test_a_candidate_that_differs_from_all_has_one_rank() -> None:
    pairs = [a_pair("a", "b", 1), a_pair("a", "c", 2), a_pair("b", "c", 1)]
    assert rank_ranges(cells(a=3, b=2, c=1), pairs) == {"a": (1, 1), "b": (2, 2), "c": (3, 3)}


def test_candidates_that_do_not_differ_share_a_range_of_ranks() -> None:
    pairs = [a_pair("a", "b", 1, False), a_pair("a", "c", 2), a_pair("b", "c", 1)]
    assert rank_ranges(cells(a=3, b=2, c=1), pairs) == {"a": (1, 2), "b": (1, 2), "c": (3, 3)}


def test_a_candidate_without_a_mean_has_no_rank() -> None:
    assert rank_ranges(cells(a=3, b=None), []) == {"a": (1, 1)}


def test_a_tie_is_half_a_win() -> None:
    assert win_shares([a_pair("a", "b", 1)]) == {"a": 0.7, "b": 0.3}


def test_a_win_share_is_over_all_opponents() -> None:
    pairs = [a_pair("a", "b", 1, wins=10, ties=0, losses=0), a_pair("a", "c", 1, wins=0, ties=0, losses=10)]
    assert win_shares(pairs) == {"a": 0.5, "b": 0.0, "c": 1.0}


def test_pairs_without_shared_items_give_no_share() -> None:
    assert win_shares([a_pair("a", "b", 0, None, items=0, wins=0, ties=0, losses=0)]) == {}


def test_two_candidates_need_no_matrix() -> None:
    assert pair_matrix(["a", "b"], [a_pair("a", "b", 1)], ValueFormat(), Links.none()) is None


def test_the_matrix_shows_a_pair_from_both_sides() -> None:
    pairs = [a_pair("a", "b", 1.0), a_pair("a", "c", 2.0), a_pair("b", "c", 1.0, False)]
    matrix = pair_matrix(["a", "b", "c"], pairs, ValueFormat(), Links.none())
    assert matrix is not None
    shown = [[cell and (cell.text, cell.tone) for cell in row] for _name, row in matrix.rows]
    assert shown == [
        [None, ("+1.00", "up2"), ("+2.00", "up3")],
        [("−1.00", "down2"), None, ("+1.00", "tie")],
        [("−2.00", "down3"), ("−1.00", "tie"), None],
    ]


def test_a_cell_says_the_wins_of_its_row() -> None:
    pairs = [a_pair("a", "b", 1.0), a_pair("a", "c", 2.0), a_pair("b", "c", 1.0)]
    matrix = pair_matrix(["a", "b", "c"], pairs, ValueFormat(), Links.none())
    assert matrix is not None
    cell = matrix.rows[1][1][0]
    assert cell is not None
    assert "b − a: −1.00 [−1.00, 1.00], p (Holm) 0.500; 2 wins, 2 ties, 6 losses" in cell.tip


@pytest.mark.parametrize(("difference", "level"), [(0.1, "up1"), (1.1, "up2"), (3.0, "up3"), (-3.0, "down3")])
def test_the_tone_grows_with_the_difference(difference: float, level: str) -> None:
    assert tone(a_pair("a", "b", difference), difference, 3.0) == level


def a_headline(standing: Code, names: list[str], others: list[str]) -> Headline:
    return Headline("m", standing, standing, names, others=others)


@pytest.mark.parametrize(
    ("headline", "sentence"),
    [
        (a_headline("leads", ["a"], ["b", "c"]), "The difference to each of the others is significant."),
        (a_headline("leads", ["a"], ["b"]), ""),
        (a_headline("tied", ["a", "b"], ["c"]), "Significantly lower than the first: c."),
        (a_headline("tied", ["a", "b", "c"], []), "No pair of candidates differs significantly."),
        (a_headline("equal", ["a", "b"], []), ""),
        (a_headline("nothing", ["a"], []), ""),
    ],
)
def test_the_card_says_what_the_headline_leaves_open(headline: Headline, sentence: str) -> None:
    assert standing_sentence(headline, [a_pair("a", "b", 1)], None) == sentence


def test_candidates_without_shared_items_are_not_compared() -> None:
    pairs = [a_pair("a", "b", 0, None)]
    sentence = standing_sentence(a_headline("tied", ["a", "b"], []), pairs, None)
    assert sentence == "Too few shared items to compare the candidates."


def test_what_is_unscored_is_counted() -> None:
    assert unscored_sentence({"a": {"asked": 10, "scored": 8}}) == "2 of 10 answers are unscored."
    assert unscored_sentence({"a": {"asked": 10, "scored": 10}}) == ""


def test_agreement_is_next_to_that_of_people() -> None:
    judge = {"metric": "m", "against": "people", "kappa": 0.6, "kappa_weighted": 0.714, "items": 120}
    judge["confusion"] = [[60, 0], [0, 60]]
    human = {"judges": [{**judge, "human": {"kappa_weighted": 0.69}}]}
    assert agreement_sentence(human, "m").endswith("κ 0.71; people agree with each other at 0.69.")
    assert agreement_sentence({"judges": [judge]}, "m").endswith("κ 0.71 on 120 answers.")
    assert agreement_sentence({"judges": [judge]}, "other") == ""


def test_of_several_judges_the_one_that_agrees_most_with_people_comes_first() -> None:
    about = {"metric": "m", "against": "people"}
    judges = [
        about | {"judge": "first", "kappa_weighted": -0.52},
        about | {"judge": "second", "kappa_weighted": 0.72},
        about | {"judge": "third", "kappa_weighted": None},
    ]
    said = agreement_sentence({"judges": judges}, "m")
    assert said == "Agreement with people (κ): second 0.72 and first −0.52."


@pytest.mark.parametrize(("by_judge", "author"), [(10, "people"), (30, "judge")])
def test_the_headline_is_people_s_unless_a_judge_compared_more(by_judge: int, author: str) -> None:
    sides = [
        {"metric": "m", "by": by, "candidates": {"a": {"comparisons": made}}}
        for by, made in (("judge", by_judge), ("people", 10))
    ]
    document = {"candidates": {"a": {"m": {"mean": None}}}, "side_by_side": sides}
    found = comparisons_under(document, "m")
    assert found is not None
    assert found["by"] == author


def test_many_names_are_cut_short() -> None:
    assert names_of(["a", "b"]) == "a and b"
    assert names_of(["a", "b", "c", "d", "e"]) == "a, b and 3 others"


@pytest.mark.parametrize(("count", "text"), [(7, "7"), (12_345, "12.3 k"), (1_234_567, "1.23 M")])
def test_large_counts_are_short(count: int, text: str) -> None:
    assert short_number(count) == text


@pytest.mark.parametrize(
    ("count", "text"), [(5090, "5,090"), (12_345, "1.23 万"), (1_234_567, "123 万"), (250_000_000, "2.5 亿")]
)
def test_large_counts_are_short_in_chinese_units(count: int, text: str) -> None:
    with translation.override("zh-hans"):
        assert short_number(count) == text


@pytest.mark.parametrize(
    ("count", "wanted", "shown"), [(2, "", [1]), (2, "2", [2]), (2, "all", []), (1, "all", [1]), (0, "", [])]
)
def test_one_metric_is_shown_at_a_time(count: int, wanted: str, shown: list[int]) -> None:
    assert chosen_metrics(count, wanted) == shown


def test_rates_are_percentages_and_their_differences_points() -> None:
    rate = ValueFormat.of("bool", 0, 1)
    assert (rate.text(0.75), rate.signed(-0.125), rate.interval(0.5, 1)) == (
        "75.0 %",
        "−12.5\xa0pp",
        "[50.0, 100.0]",
    )


def test_a_narrow_scale_has_three_decimals() -> None:
    assert ValueFormat.of("number", 0, 1).text(0.5) == "0.500"
    assert ValueFormat.of("number", 1, 10).text(7.125) == "7.12"


def test_coverage_counts_all_metrics_and_says_which_lacks_what() -> None:
    whole = {"asked": 240, "scored": 240, "unparsed": 0, "unsettled": 0, "errors": 0, "not_run": 0}
    part = {**whole, "scored": 120, "unparsed": 120}
    document = {
        "rows": 240,
        "cost": {"requests": 0},
        "raters": [],
        "candidates": {"a": {"quality": whole, "comparison": part}},
    }
    scored = stats_of(document, "quality", {"a": whole})[2]
    assert (scored.value, scored.more) == ("75 %", "120 unparsed (comparison)")
    document["candidates"] = {"a": {"comparison": part}}
    scored = stats_of(document, "comparison", {"a": part})[2]
    assert (scored.value, scored.more) == ("50 %", "120 unparsed")
