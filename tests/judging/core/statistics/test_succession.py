"""Whether old and new verdicts may stand in one table."""

from __future__ import annotations

import numpy as np
import pytest

from judging.core.statistics.means import Estimate, estimate_difference
from judging.core.statistics.succession import BothVerdicts, Margins, decide, succession


def both(old, new, rows=None):
    old, new = np.asarray(old, float), np.asarray(new, float)
    rows = np.arange(old.size) if rows is None else np.asarray(rows)
    return BothVerdicts(old, new, rows, rows)


def spread(size, seed=1):
    return np.random.default_rng(seed).integers(2, 9, size).astype(float)


def test_the_same_verdicts_stand_in_one_table():
    old = spread(400)
    found = succession({"alpha": both(old, old), "beta": both(old - 1, old - 1)}, "score", 9)
    assert (found["decision"], found["more"], found["reversed"]) == ("together", None, [])
    assert (found["agreement"]["rate"], found["agreement"]["kappa"]) == (1, pytest.approx(1))


def test_a_shift_beyond_the_margin_sets_them_apart():
    old = spread(400)
    found = succession({"alpha": both(old, old + 1)}, "score", 9)
    entry = found["candidates"]["alpha"]
    assert (found["decision"], entry["shift"], entry["turned"]) == ("apart", 1, 400)


def test_the_shift_has_the_interval_of_a_difference():
    draws = np.random.default_rng(2)
    old = spread(60)
    new = old + draws.integers(-1, 2, 60)
    entry = succession({"alpha": both(old, new)}, "score", 9)["candidates"]["alpha"]
    expected = estimate_difference(new - old, np.arange(60), 9)
    assert (entry["shift"], entry["ci_low"], entry["ci_high"]) == pytest.approx(
        (expected.mean, expected.low, expected.high)
    )


def test_answers_of_a_row_are_one_item():
    entry = succession({"alpha": both([1, 3, 5], [1, 5, 5], [0, 0, 1])}, "score", 9)["candidates"]["alpha"]
    assert (entry["items"], entry["old"], entry["shift"]) == (3, 3.5, 0.5)


def test_what_is_undecided_says_how_many_more_answers_decide():
    """Twice as many answers of the same kind are enough or nearly so, where it says so."""
    draws = np.random.default_rng(3)
    old, moves = spread(300), draws.integers(-1, 2, 300)
    moves = moves - (moves.sum() > 0) * 0
    first = succession({"alpha": both(old, old + moves)}, "score", 9, Margins(score=0.012))
    assert first["decision"] == "undecided"
    times = 1 + -(-first["more"] // 300)
    many = both(np.tile(old, times), np.tile(old + moves, times))
    assert succession({"alpha": many}, "score", 9, Margins(score=0.012))["decision"] != "undecided"


@pytest.mark.parametrize(
    ("shift", "low", "high", "expected"),
    [
        (0.0, -0.1, 0.1, ("together", None)),
        (0.5, 0.3, 0.7, ("apart", None)),
        (-0.5, -0.7, -0.3, ("apart", None)),
        (0.0, -0.4, 0.4, ("undecided", 300)),  # half the width: four times the answers
        (0.4, 0.0, 0.8, ("undecided", 300)),
        (0.2, 0.0, 0.4, ("undecided", None)),  # on the margin itself
        (None, None, None, ("undecided", None)),
    ],
)
def test_an_interval_decides(shift, low, high, expected):
    assert decide(Estimate(shift, None, low, high, 100, 100), 0.2, 100) == expected


def test_rates_have_a_margin_of_three_points():
    old = np.tile([1.0, 0.0], 400)
    new = old.copy()
    new[:40] = 1 - new[:40]  # 20 up, 20 down of 800
    found = succession({"alpha": both(old, new)}, "rate")
    assert (found["margin"], found["decision"]) == (0.03, "together")
    new[:100:2] = 0
    assert succession({"alpha": both(old, new)}, "rate")["decision"] != "together"


def test_labels_go_by_the_share_that_turned():
    old = np.zeros(400)
    new = old.copy()
    new[:3] = 2
    found = succession({"alpha": both(old, new)}, "label")
    entry = found["candidates"]["alpha"]
    assert (entry["shift"], entry["old"], found["decision"]) == (pytest.approx(3 / 400), None, "together")
    new[:60] = 2
    assert succession({"alpha": both(old, new)}, "label")["decision"] == "apart"


def test_a_distinguishable_change_of_order_sets_them_apart():
    old = spread(200)
    alpha, beta = both(old, old), both(old - 0.05, old + 0.05)
    found = succession({"alpha": alpha, "beta": beta}, "score", 9)
    (pair,) = found["reversed"]
    assert (pair["a"], pair["b"], found["decision"]) == ("alpha", "beta", "apart")
    assert [found["candidates"][name]["rank_new"] for name in ("alpha", "beta")] == [2, 1]


def test_a_change_of_order_within_noise_is_none():
    draws = np.random.default_rng(5)
    old = spread(900)
    noise = draws.normal(0, 0.2, (2, 900))
    noise -= noise.mean(axis=1, keepdims=True)
    alpha, beta = both(old, old + noise[0]), both(old - 0.001, old + 0.001 + noise[1])
    found = succession({"alpha": alpha, "beta": beta}, "score", 9)
    assert (found["reversed"], found["decision"]) == ([], "together")


def test_equal_means_share_a_rank():
    found = succession({name: both([1, 2, 3], [1, 2, 3]) for name in ("a", "b")}, "score", 9)
    assert [entry["rank_old"] for entry in found["candidates"].values()] == [1, 1]


def test_scores_without_a_scale_are_never_decided():
    old = spread(50)
    assert succession({"alpha": both(old, old)}, "score")["decision"] == "undecided"


def test_nothing_judged_by_both_is_undecided():
    assert succession({"alpha": both([], [])}, "score", 9)["decision"] == "undecided"
    assert succession({}, "score", 9)["decision"] == "undecided"


def test_equal_judges_are_rarely_set_apart_and_shifted_ones_never_stand_together():
    """Over 400 draws of 300 answers: a shift of twice the margin is never allowed; none is set apart at most by 1 %."""
    draws = np.random.default_rng(7)
    margin = Margins().score * 9
    outcomes = {0.0: [], 2 * margin: []}
    for shift, decisions in outcomes.items():
        for _draw in range(400):
            old = draws.normal(5, 2, 300)
            new = old + shift + draws.normal(0, 1.5, 300)
            decisions.append(succession({"alpha": both(old, new)}, "score", 9)["decision"])
    assert outcomes[0.0].count("apart") <= 4
    assert outcomes[2 * margin].count("together") == 0
