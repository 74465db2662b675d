"""What a sealed test allows, and what it is worth before anybody rates."""

import numpy as np
import pytest

from judging.core.statistics.intervals import wilson
from judging.core.statistics.licence import (
    binomial,
    chance_of,
    fewest_for,
    gap,
    licence_figures,
    prospect,
    upper_at,
    use_allowed,
    with_kappa_interval,
)
from judging.core.statistics.means import rate_of, sign_test
from judging.core.statistics.uses import Thresholds

USUAL = Thresholds()


def passes(right_passes, passes, right_failures, failures, opening=1, per_row=1):
    people = np.array([1.0] * passes + [0.0] * failures)
    right = np.array(
        [n < right_passes for n in range(passes)] + [n < right_failures for n in range(failures)]
    )
    judge = np.where(right, people, 1 - people)
    return licence_figures(judge, people, np.arange(people.size) // per_row, "passes", opening)


@pytest.mark.parametrize(
    ("counts", "use"),
    [
        ((16, 16, 16, 16), "gates"),
        ((15, 15, 16, 16), "trends"),
        ((24, 25, 16, 16), "gates"),
        ((60, 60, 14, 20), "exploring"),
        ((60, 60, 17, 20), "trends"),
        ((10, 10, 9, 9), None),
        ((10, 10, 10, 10), "trends"),
        ((20, 20, 0, 0), "exploring"),
    ],
)
def test_both_rates_must_hold(counts, use):
    assert use_allowed(passes(*counts), USUAL) == use


def test_later_openings_of_the_same_test_are_held_to_more():
    assert [upper_at(opening) for opening in (1, 2, 3)] == pytest.approx([0.975, 0.9875, 0.99375])
    assert [use_allowed(passes(16, 16, 16, 16, opening), USUAL) for opening in (1, 2)] == ["gates", "trends"]


def test_the_intervals_are_wilsons_and_the_counts_are_kept():
    figures = passes(38, 40, 18, 20)
    assert (figures.positive.count, figures.negative.count) == (38, 18)
    assert (figures.positive.low, figures.positive.high) == wilson(38 / 40, 40)


def test_kappa_of_passes_gets_an_interval_that_decides_nothing():
    people = np.array([1.0] * 40 + [0.0] * 20)
    judge = np.where(np.arange(60) % 10 == 0, 1 - people, people)
    units = np.arange(60)
    figures = licence_figures(judge, people, units, "passes")
    known = with_kappa_interval(figures, judge, people, units)
    assert known.kappa_low < known.kappa == figures.kappa < known.kappa_high
    assert use_allowed(known, USUAL) == use_allowed(figures, USUAL)
    assert with_kappa_interval(figures, people, np.ones(60), units).kappa_low is None


def test_answers_of_a_row_count_by_rows():
    assert passes(24, 24, 24, 24, per_row=2).positive.trials == 12


def test_thresholds_are_the_project_s():
    strict = Thresholds(gates_rate=0.9)
    assert [use_allowed(passes(30, 30, 30, 30), limits) for limits in (USUAL, strict)] == ["gates", "trends"]


def scores(noise, items=120, opening=1):
    rng = np.random.default_rng(3)
    people = rng.integers(1, 6, items).astype(float)
    judge = np.clip(people + rng.choice([0, 1, -1], items, p=[1 - noise, noise / 2, noise / 2]), 1, 5)
    return licence_figures(judge, people, np.arange(items), "ordered", opening)


def test_scores_go_by_quadratic_kappa():
    figures = scores(0.3)
    assert figures.kappa_low < figures.kappa < figures.kappa_high
    assert (figures.positive, use_allowed(figures, USUAL)) == (None, "gates")
    assert use_allowed(figures, Thresholds(gates_kappa=0.99)) == "trends"


def test_the_interval_of_kappa_is_wider_at_a_later_opening():
    assert scores(0.6, opening=3).kappa_low < scores(0.6).kappa_low


@pytest.mark.parametrize(("rarest", "use"), [(10, "gates"), (9, "exploring")])
def test_categories_need_ten_of_each_label(rarest, use):
    people = np.array([0.0] * 30 + [1.0] * 30 + [2.0] * rarest)
    figures = licence_figures(people, people, np.arange(people.size), "labels")
    assert (figures.rarest, use_allowed(figures, USUAL)) == (rarest, use)


def test_a_label_that_people_never_gave_is_the_rarest():
    people = np.array([0.0] * 20 + [1.0] * 20)
    judge = people.copy()
    judge[0] = 2
    assert licence_figures(judge, people, np.arange(40), "labels").rarest == 0


def test_the_gap_between_dev_and_test_has_the_interval_of_two_independent_rates():
    # Newcombe, Statistics in Medicine 17, 1998, table II: 56/70 − 48/80, method 10
    rates = [rate_of((np.arange(n) < count).astype(float), np.arange(n)) for count, n in ((56, 70), (48, 80))]
    difference = gap(*rates)
    assert [round(figure, 4) for figure in (difference.mean, difference.low, difference.high)] == [
        0.2, 0.0524, 0.3339,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("right", "wrong", "p"), [(6, 3, 0.5078125), (3, 6, 0.5078125), (0, 0, 1), (5, 0, 0.0625)]
)
def test_versions_are_compared_by_the_exact_sign_test(right, wrong, p):
    assert sign_test(right, wrong) == p


def test_the_fewest_failures_for_a_gate():
    assert [fewest_for(USUAL.gates_rate, mistakes) for mistakes in range(4)] == [16, 25, 33, 40]
    assert fewest_for(USUAL.gates_rate, 0, opening=2) > 16


def test_sixty_items_at_eight_in_a_hundred_failures_allow_no_gate():
    worth = prospect(60, 0.08, USUAL)
    assert (worth.failures, worth.possible, worth.least) == (5, False, (16, 25, 33, 40))
    assert worth.seconds == 1800


def test_three_hundred_items_allow_a_gate_in_45_or_75_of_100_draws():
    worth = prospect(300, 0.08, USUAL)
    assert (worth.failures, worth.possible, worth.proposed) == (24, True, 500)
    assert [round(100 * chance) for chance in worth.chances.values()] == [45, 75]


def test_the_chance_of_a_gate_is_that_of_draws():
    rng = np.random.default_rng(5)
    failures = rng.binomial(300, 0.08, 4000)
    hits = 0
    for b in failures.tolist():
        rights = rng.binomial(300 - b, 0.95), rng.binomial(b, 0.95)
        hits += all(
            wilson(right / n, n)[0] >= 0.8 for right, n in zip(rights, (300 - b, b), strict=True) if n
        )
    assert hits / 4000 == pytest.approx(chance_of("gates", 300, 0.08, 0.95, USUAL), abs=0.025)


@pytest.mark.parametrize("chance", [0.0, 0.3, 1.0])
def test_the_chances_of_a_binomial_sum_to_one(chance):
    assert binomial(50, chance).sum() == pytest.approx(1)
