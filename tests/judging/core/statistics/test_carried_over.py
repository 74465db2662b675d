"""Values carried over from a licence's test: the formulas, their coverage, and when they are refused."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from judging.core.statistics.carried_over import (
    OpenedTest,
    carried_scores,
    carry_over,
    carry_over_mean,
    informedness,
    prevalence,
)
from judging.core.statistics.frame import ScaledMetric
from judging.core.statistics.headline import headline_of
from judging.core.statistics.means import Rate, estimate_mean, rate_of
from tools.bench.coverage import EVEN, SKEWED, passes_coverage, scores_coverage


def rate(right, of):
    return Rate(right / of, None, None, right, float(of))


def a_test(passes, right_passes, failures, right_failures):
    """An opened test with so many passes and failures of people, on so many of which the judge is right."""
    people = np.array([1.0] * passes + [0.0] * failures)
    right = [place < right_passes for place in range(passes)]
    right += [place < right_failures for place in range(failures)]
    return OpenedTest(np.where(right, people, 1 - people), people, np.arange(people.size), passes=True)


def run_of(passes, answers):
    return (np.arange(answers) < passes).astype(float), np.arange(answers)


def test_the_value_is_rogan_and_gladens():
    value, _low, _high = prevalence(rate(130, 200), rate(45, 50), rate(32, 40))
    assert value == pytest.approx((130 / 200 + 32 / 40 - 1) / (45 / 50 + 32 / 40 - 1))


def test_the_interval_is_lang_and_reiczigels():
    z = stats.norm.ppf(0.975)
    q, s, t = (130 + z * z / 2) / (200 + z * z), 46 / 52, 33 / 42
    p = (q + t - 1) / (s + t - 1)
    shift = 2 * z * z * (p * s * (1 - s) / 52 - (1 - p) * t * (1 - t) / 42)
    variance = q * (1 - q) / (200 + z * z) + p**2 * s * (1 - s) / 52 + (1 - p) ** 2 * t * (1 - t) / 42
    reach = z * math.sqrt(variance) / (s + t - 1)
    _value, *ends = prevalence(rate(130, 200), rate(45, 50), rate(32, 40))
    assert ends == pytest.approx([p + shift - reach, p + shift + reach], rel=1e-12)


def test_a_judge_that_never_errs_leaves_its_pass_rate():
    carried = carry_over(*run_of(120, 200), a_test(60, 60, 40, 40), None)
    assert carried.value == pytest.approx(0.6)
    assert carried.low < 0.6 < carried.high


def test_values_and_intervals_stay_between_none_and_all():
    carried = carry_over(*run_of(170, 200), a_test(60, 50, 40, 36), None)
    assert (carried.value, carried.high, carried.outside) == (1, 1, False)
    assert carried.low < 1


def test_a_pass_rate_that_such_a_judge_could_not_give_is_marked():
    assert carry_over(*run_of(199, 200), a_test(60, 50, 40, 36), None).outside


@pytest.mark.parametrize(
    ("test", "refused"),
    [
        ((9, 9, 40, 40), "few_passes"),
        ((40, 40, 9, 9), "few_failures"),
        ((10, 10, 10, 10), None),
        ((50, 30, 50, 30), "uninformed"),
        ((50, 40, 50, 40), None),
    ],
)
def test_tests_that_tell_too_little_correct_nothing(test, refused):
    carried = carry_over(*run_of(120, 200), a_test(*test), None)
    assert (carried.refused, carried.value is None) == (refused, refused is not None)


@pytest.mark.parametrize("state", ["lapsed", "suspended"])
def test_a_licence_that_does_not_hold_corrects_nothing(state):
    carried = carry_over(*run_of(120, 200), a_test(60, 60, 40, 40), None, state)
    assert (carried.value, carried.low, carried.refused) == (None, None, state)


def test_the_interval_of_informedness_adds_a_success_and_a_failure():
    z = stats.norm.ppf(0.975)
    s, t = 46 / 52, 33 / 42
    reach = z * math.sqrt(s * (1 - s) / 52 + t * (1 - t) / 42)
    ends = informedness(rate(45, 50), rate(32, 40))
    assert ends == pytest.approx((s + t - 1 - reach, s + t - 1 + reach))


def test_answers_of_one_row_count_as_fewer():
    values = np.array([1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0.0])
    rows = np.repeat(np.arange(6), 2)
    assert rate_of(values, np.arange(12)).trials == 12
    assert rate_of(values, rows).trials < 7
    apart = carry_over(np.tile(values, 20), np.arange(240), a_test(60, 55, 40, 35), None)
    together = carry_over(np.tile(values, 20), np.repeat(np.arange(120), 2), a_test(60, 55, 40, 35), None)
    assert together.value == apart.value
    assert together.high - together.low > apart.high - apart.low


PEOPLE = np.array([3, 4, 4, 5, 2, 3, 5, 4, 3, 4.0] * 3)
JUDGE = np.array([4, 4, 5, 5, 3, 3, 5, 5, 4, 4.0] * 3)
SCORED = OpenedTest(JUDGE, PEOPLE, np.arange(30), passes=False)


def test_scores_get_the_mean_error_with_both_uncertainties():
    run = np.array([4, 5, 3, 4, 5, 4, 4, 3.0] * 5)
    carried = carry_over(run, np.arange(40), SCORED, (1, 5))
    errors = PEOPLE - JUDGE
    value = run.mean() + errors.mean()
    se = math.sqrt(run.var(ddof=1) / 40 + errors.var(ddof=1) / 30)
    reach = stats.t.ppf(0.975, 29) * se
    assert (carried.value, carried.low, carried.high) == pytest.approx((value, value - reach, value + reach))


def test_scores_are_cut_to_the_scale():
    carried = carry_over(np.full(40, 1.0), np.arange(40), SCORED, (1, 5))
    assert (carried.value, carried.low) == (1, 1)


@pytest.mark.parametrize(("mean", "outside"), [(4, False), (3.2, False), (1, True)])
def test_a_mean_that_the_test_hardly_held_is_marked(mean, outside):
    assert carry_over(np.full(40, float(mean)), np.arange(40), SCORED, (1, 5)).outside is outside


def test_scores_need_twenty_rows():
    few = OpenedTest(JUDGE[:19], PEOPLE[:19], np.arange(19), passes=False)
    same_rows = OpenedTest(JUDGE, PEOPLE, np.arange(30) % 19, passes=False)
    run = np.array([3.0, 4, 5])
    assert {carry_over(run, np.arange(3), test, (1, 5)).refused for test in (few, same_rows)} == {"few_rows"}


def test_a_run_of_two_rows_has_a_value_without_an_interval():
    carried = carry_over(np.array([4.0, 5]), np.arange(2), SCORED, (1, 5))
    assert (carried.value is None, carried.low, carried.high) == (False, None, None)


METRIC = ScaledMetric("m", 1, 5)


def a_report(**means):
    """A document with these means over 200 answers, and the differences of all candidates."""
    cells = {"se": 0.03, "items": 200, "clusters": 200, "scored": 200}
    pairs = [
        {
            "metric": "m", "a": a, "b": b, "items": 200, "difference": means[a] - means[b], "ci_low": 0.05,
            "ci_high": 0.15, "se": None, "p": 0.01, "p_holm": 0.03, "distinguishable": True,
        }
        for a, b in combinations(means, 2)
    ]  # fmt: skip
    return {
        "candidates": {name: {"m": {"mean": mean, **cells}} for name, mean in means.items()},
        "pairs": pairs,
    }


def test_every_candidate_of_a_report_is_corrected_and_its_pairs_are_stretched():
    scores, (pair,) = carried_scores(a_report(a=0.7, b=0.6), METRIC, "qwen", a_test(60, 57, 40, 34), None)
    slope = 1 / (57 / 60 + 34 / 40 - 1)
    assert [score["value"] for score in scores] == pytest.approx([0.55 * slope, 0.45 * slope])
    assert {(score["source"], score["refused"], score["labelled"]) for score in scores} == {
        ("licence", None, 100)
    }
    assert (pair["difference"], pair["ci_low"], pair["se"]) == (
        pytest.approx(0.1 * slope),
        0.05 * slope,
        None,
    )
    assert (pair["p_holm"], pair["distinguishable"]) == (0.03, True)


def test_the_headline_follows_values_carried_over():
    report = a_report(a=0.7, b=0.6)
    for cell in report["candidates"].values():
        cell["m"] |= {"kind": "bool", "ci_low": 0.5, "ci_high": 0.8}
    scores, pairs = carried_scores(report, METRIC, "qwen", a_test(60, 57, 40, 34), None)
    headline = headline_of({**report, "corrected": scores, "corrected_pairs": pairs}, "m")
    assert (headline.code, headline.value, headline.candidates) == ("leads", "corrected", ["a"])


def test_a_refusal_has_no_pairs():
    scores, pairs = carried_scores(
        a_report(a=0.7, b=0.6), METRIC, "qwen", a_test(60, 57, 40, 34), "suspended"
    )
    assert ([score["refused"] for score in scores], pairs) == (["suspended"] * 2, [])


def test_a_mean_and_its_scores_are_carried_over_alike():
    values, units = run_of(120, 200)
    test = a_test(60, 57, 40, 34)
    assert carry_over_mean(estimate_mean(values, units), 200, test, None) == carry_over(
        values, units, test, None
    )


@pytest.mark.parametrize(
    ("size", "right", "passing"),
    [(60, (0.9, 0.8), (0.5, 0.8)), (120, (0.7, 0.95), (0.8, 0.5)), (240, (0.95, 0.95), (0.92, 0.92))],
)
def test_intervals_of_pass_rates_cover_the_truth_as_often_as_they_say(size, right, passing):
    simulated = passes_coverage(size, right, passing, draws=2000)
    assert simulated.refused <= 0.5
    assert 0.93 <= simulated.covered <= 0.995


@pytest.mark.parametrize("shares", [SKEWED, EVEN], ids=["skewed", "even"])
def test_intervals_of_scores_cover_the_truth_as_often_as_they_say(shares):
    assert scores_coverage(60, shares, draws=2000).covered >= 0.93
