"""Differences of corrected scores."""

import numpy as np
import pytest

from judging.core.statistics.correction import Labelled, prediction_powered
from tests.judging.core.statistics.cast import document, person, said

ROWS, DRAWN = 60, range(1, 31)


def values(seed, shift=0.0):
    return np.clip(np.random.default_rng(seed).integers(3, 8, ROWS + 1) + shift, 1, 10)


def judged(candidates, labelled, chances=None):
    """A judge's scores of every row, and a person's labels on the `labelled` rows of each candidate."""
    for name, (judge, people) in candidates.items():
        yield from (said(float(judge[row]), candidate=name, row=row) for row in range(1, ROWS + 1))
        for row in labelled[name]:
            chance = chances[row] if chances else 0.5
            yield person(float(people[row]), candidate=name, row=row, drawn_with=chance)


TWO = {"alpha": (values(1), values(2)), "beta": (values(3), values(4, 1))}


def pair_of(labelled, candidates=TWO, **options):
    (found,) = document(judged(candidates, labelled, **options))["corrected_pairs"]
    return found


def test_a_difference_is_corrected_as_one_quantity():
    found = pair_of({"alpha": DRAWN, "beta": DRAWN})
    drawn = np.isin(np.arange(1, ROWS + 1), DRAWN)
    f, y = ((TWO["alpha"][place] - TWO["beta"][place])[1:] for place in (0, 1))
    rows = np.arange(ROWS)
    expected = prediction_powered(Labelled(f, np.where(drawn, y, np.nan), np.full(ROWS, 0.5), rows, rows))
    assert (found["a"], found["b"], found["judge"], found["items"]) == ("alpha", "beta", "qwen", 30)
    assert (found["difference"], found["se"]) == pytest.approx((expected.value, expected.se))
    assert found["ci_low"] < found["difference"] < found["ci_high"]


def test_on_different_rows_the_variances_add():
    labelled = {"alpha": range(1, 31), "beta": range(31, 61)}
    whole = document(judged(TWO, labelled))
    (found,), (a, b) = whole["corrected_pairs"], whole["corrected"]
    assert found["lambda"] is None
    assert found["difference"] == pytest.approx(a["value"] - b["value"])
    assert found["se"] == pytest.approx(np.hypot(a["se"], b["se"]))


def test_the_same_answers_with_unequal_probabilities_are_corrected_apart():
    chances = {row: 0.3 + 0.01 * row for row in DRAWN}
    assert pair_of({"alpha": DRAWN, "beta": DRAWN}, chances=chances)["lambda"] is None


def test_pairs_are_corrected_over_all_of_them():
    three = TWO | {"gamma": (values(5), values(6, 2))}
    found = document(judged(three, dict.fromkeys(three, DRAWN)))["corrected_pairs"]
    assert [(one["a"], one["b"]) for one in found] == [
        ("alpha", "beta"), ("alpha", "gamma"), ("beta", "gamma"),
    ]  # fmt: skip
    least = min(found, key=lambda one: one["p"])
    assert least["p_holm"] == pytest.approx(3 * least["p"])


def test_equal_labels_and_scores_differ_in_nothing():
    same = {"alpha": TWO["alpha"], "beta": TWO["alpha"]}
    found = pair_of({"alpha": DRAWN, "beta": DRAWN}, same)
    assert (found["difference"], found["p"], found["distinguishable"]) == (0, 1, False)


def test_a_candidate_without_labels_is_in_no_pair():
    assert document(judged(TWO, {"alpha": DRAWN, "beta": ()}))["corrected_pairs"] == []
