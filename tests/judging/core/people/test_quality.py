"""How a rater of a study does: figures against thresholds, their one-sided p, and flags."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from judging.core.people.criteria import Criterion
from judging.core.people.quality import (
    FLAGGED,
    Figure,
    RatedValue,
    StudyRatings,
    Thresholds,
    Trials,
    agreement_figures,
    at_least,
    at_most,
    beyond,
    deviation_figures,
    gold_figure,
    quality,
    repeats_figure,
    side_figure,
    time_figures,
    value_figure,
)
from judging.core.statistics.means import Estimate
from judging.core.values import Value

FIVE = Criterion(name="m")
STEPS = Criterion(name="m", scale="steps", both_bad=True)
PASS = Criterion(name="m", scale="pass_fail")


def rated(by_rater: Mapping[int, Sequence[Value]], items_a_row: int = 1) -> list[RatedValue]:
    """The values of each rater on items 0, 1, … in order."""
    return [
        RatedValue(rater, item, item // items_a_row, 0, value, value)
        for rater, values in by_rater.items()
        for item, value in enumerate(values)
    ]


def by_rater(figures: Sequence[Figure]) -> dict[int, Figure]:
    return {figure.rater: figure for figure in figures}


def test_tails_of_the_binomial_are_exact() -> None:
    assert at_least(9, 10, 0.5) == pytest.approx(11 / 1024)
    assert at_most(1, 10, 0.5) == pytest.approx(11 / 1024)
    assert at_least(0, 10, 0.7) == pytest.approx(1)


def test_a_fast_rater_is_compared_with_a_third_of_the_others_median() -> None:
    fast = by_rater(time_figures({1: [5.0] * 8, 2: [60.0] * 8, 3: [30.0] * 8}, 1 / 3))[1]
    assert fast.value == 5
    assert fast.threshold == pytest.approx(15)
    assert fast.p == pytest.approx(1 / 2**8)


def test_times_at_the_threshold_prove_nothing() -> None:
    assert by_rater(time_figures({1: [10.0] * 5, 2: [30.0] * 5}, 1 / 3))[1].p == 1


def test_a_single_rater_has_nobody_to_be_compared_with() -> None:
    assert time_figures({1: [5.0] * 8}, 1 / 3) == []


def test_the_side_is_the_one_on_which_the_answer_stood() -> None:
    own = [RatedValue(1, item, item, 0, "B>A", "A>B") for item in range(10)]
    figure = side_figure(own, 0.7)
    assert (figure.value, figure.what, figure.of) == (1, "A", 10)
    assert figure.p == pytest.approx(0.7**10)


def test_ties_and_both_bad_take_no_side() -> None:
    figure = side_figure(rated({1: ["A=B", "both_bad", "A>>B", "B>A", "B>>A"]}), 0.7)
    assert figure.value == pytest.approx(2 / 3)
    assert (figure.what, figure.of) == ("B", 3)


def test_only_ties_give_no_share_of_a_side() -> None:
    figure = side_figure(rated({1: ["A=B", "A=B"]}), 0.7)
    assert (figure.value, figure.p) == (None, None)


def test_the_most_frequent_value_is_held_against_its_threshold() -> None:
    figure = value_figure(rated({1: [4] * 19 + [5]}), 0.8)
    assert (figure.value, figure.what) == (0.95, 4)
    assert figure.p == pytest.approx(0.8**20 + 20 * 0.8**19 * 0.2)


def test_gold_and_repeats_are_tested_downwards() -> None:
    assert gold_figure(1, Trials(0, 5), 0.8).p == pytest.approx(0.2**5)
    assert repeats_figure(1, 0, Trials(0, 5), 0.6).p == pytest.approx(0.4**5)
    assert gold_figure(1, Trials(0, 0), 0.8).p is None


def test_who_disagrees_with_all_others_stands_below_their_mean() -> None:
    usual = [True, False] * 15
    figures = by_rater(
        agreement_figures(PASS, rated({1: usual, 2: usual, 3: usual, 4: [not v for v in usual]}), 0.2)
    )
    assert (figures[4].value, figures[4].p) == (0, 0)
    assert figures[4].threshold == pytest.approx(2 / 3 - 0.2)
    assert figures[1].p == 1
    assert figures[4].of == 90


def test_scores_a_step_apart_agree() -> None:
    figures = by_rater(agreement_figures(FIVE, rated({1: [3, 3], 2: [4, 5]}), 0.2))
    assert figures[1].value == 0.5


def test_agreement_over_few_rows_has_no_p() -> None:
    figures = agreement_figures(PASS, rated({1: [True] * 18, 2: [True] * 18, 3: [False] * 18}, 2), 0.2)
    assert {figure.p for figure in figures} == {None}


def test_agreement_is_the_same_each_time_it_is_computed() -> None:
    values = rated({1: [True, False] * 10, 2: [True] * 20, 3: [False, True] * 10})
    assert agreement_figures(PASS, values, 0.2) == agreement_figures(PASS, values, 0.2)


def test_items_of_a_single_rater_say_nothing_about_agreement() -> None:
    assert agreement_figures(PASS, rated({1: [True] * 12}), 0.2) == []


def test_a_strict_rater_deviates_from_the_mean_of_the_others() -> None:
    figure = by_rater(deviation_figures(FIVE, rated({1: [2, 3, 2] * 4, 2: [4] * 12, 3: [4] * 12}), 0.5))[1]
    assert figure.value == pytest.approx(-5 / 3)
    assert figure.low is not None
    assert figure.high is not None
    assert figure.low < -5 / 3 < figure.high < -0.5
    assert figure.p is not None
    assert figure.p < 0.001


def test_the_same_deviation_on_every_item_has_no_interval() -> None:
    figure = by_rater(deviation_figures(FIVE, rated({1: [3] * 10, 2: [4] * 10, 3: [4] * 10}), 0.5))[1]
    assert (figure.value, figure.low, figure.high, figure.p) == (-1.0, None, None, 2**-10)


@pytest.mark.parametrize("threshold", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("rows", [3, 4, 10])
def test_a_deviation_beyond_its_threshold_has_an_interval_without_0(rows: int, threshold: float) -> None:
    chance = random.Random(rows)
    for _study in range(50):
        own = [chance.choice((1, 2, 3, 4)) for _item in range(12)]
        values = rated({1: own, 2: [4] * 12, 3: [3] * 12}, 12 // rows)
        figure = by_rater(deviation_figures(FIVE, values, threshold))[1]
        holds_0 = figure.low is None or figure.high is None or figure.low <= 0 <= figure.high
        assert figure.p is not None
        assert not (holds_0 and figure.p <= FLAGGED)


def test_a_deviation_over_fewer_than_ten_shared_items_is_not_said() -> None:
    figure = deviation_figures(FIVE, rated({1: [1] * 12, 2: [5] * 9}), 0.5)[0]
    assert (figure.value, figure.p, figure.of) == (None, None, 9)


def test_the_items_of_a_row_count_as_one_unit() -> None:
    gaps = {1: [1, 1, 3, 3] * 6, 2: [4] * 24}
    alone = by_rater(deviation_figures(FIVE, rated(gaps), 1.5))[1]
    together = by_rater(deviation_figures(FIVE, rated(gaps, 2), 1.5))[1]
    assert alone.p is not None
    assert together.p is not None
    assert alone.p < together.p


@pytest.mark.parametrize(
    ("scale", "threshold"), [("five", 0.5), ("ten", 1.125), ("pass_fail", 0.125), ("yes_no", 0.125)]
)
def test_the_threshold_of_the_deviation_is_scaled(scale: str, threshold: float) -> None:
    assert Thresholds().deviation_on(Criterion(name="m", scale=scale)) == threshold  # type: ignore[arg-type]


def test_a_mean_at_its_threshold_has_a_p_of_one_half() -> None:
    assert beyond(Estimate(0.5, 0.1, None, None, 20, 20), 0.5) == pytest.approx(0.5)
    assert beyond(Estimate(-0.7, 0.0, None, None, 10, 10), 0.5) == 2**-10
    assert beyond(Estimate(0.2, 0.1, None, None, 20, 20), 0.5) == pytest.approx(0.99632, abs=1e-5)


def test_flags_are_corrected_over_all_raters_and_figures() -> None:
    gold = {1: Trials(1, 4)} | {rater: Trials(10, 10) for rater in range(2, 21)}
    alone = quality(StudyRatings({}, gold={1: gold[1]}), Thresholds())
    among = quality(StudyRatings({}, gold=gold), Thresholds())
    assert alone[1][0].flagged
    assert not any(figure.flagged for figures in among.values() for figure in figures)


def test_an_honest_study_has_no_flags_and_one_who_clicks_through_has() -> None:
    honest = {rater: [1, 3, 5, 2, 4] * 8 for rater in range(1, 6)}
    seconds = {rater: [40.0 + rater] * 40 for rater in honest} | {6: [3.0] * 40}
    study = StudyRatings({0: FIVE}, rated({**honest, 6: [5] * 40}), seconds)
    flagged = {
        rater: {figure.name for figure in figures if figure.flagged}
        for rater, figures in quality(study, Thresholds()).items()
    }
    clicks = {"time", "value", "agreement", "deviation"}
    assert flagged == {rater: set() if rater in honest else clicks for rater in range(1, 7)}


def test_free_text_has_no_figures() -> None:
    text = Criterion(name="m", scale="text")
    assert quality(StudyRatings({0: text}, rated({1: ["x"] * 20, 2: ["y"] * 20})), Thresholds()) == {}
