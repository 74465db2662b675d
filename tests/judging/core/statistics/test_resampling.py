"""Shares of resamplings: against plain loops, ties, clusters, comparisons; ranks and single orders."""

import numpy as np
import pytest

from judging.core.statistics.frame import ScaledMetric, verdict_frame
from judging.core.statistics.preference import PairedComparisons, bradley_terry, wins_between
from judging.core.statistics.report import report
from judging.core.statistics.resampling import DRAWS, DRAWS_OF_MANY, draws_for, rankings, strengths_of
from tests.judging.core.statistics.cast import CANDIDATES, document, figures, frame, person, said
from tests.judging.core.statistics.test_side_by_side import tournament

METRIC = ScaledMetric("m", 1, 10)


def ranking(candidates, clusters=None):
    (entry,) = rankings(
        frame(candidates, clusters=clusters), [METRIC], figures(candidates, clusters=clusters)
    )
    return entry


def of_verdicts(verdicts, metric):
    judgements = verdict_frame(verdicts, {"m": metric}, CANDIDATES)
    return rankings(judgements, [metric], report(judgements, [metric]))


def test_who_is_always_better_is_first_in_every_draw():
    entry = ranking({"a": [5] * 20, "b": [4] * 20})
    assert (entry["draws"], entry["first"]) == (DRAWS, {"a": 1.0, "b": 0.0})
    assert entry["pairs"] == [{"a": "a", "b": "b", "share": 1.0}]
    assert entry["ranks"] == {"a": {"low": 1, "high": 1}, "b": {"low": 2, "high": 2}}


def test_equal_candidates_share_the_first_place():
    entry = ranking({"a": [1, 2, 3, 4] * 5, "b": [1, 2, 3, 4] * 5, "c": [1] * 20})
    assert entry["first"] == {"a": 0.5, "b": 0.5, "c": 0.0}
    assert entry["pairs"][0] == {"a": "a", "b": "b", "share": 0.5}
    assert entry["ranks"]["a"] == {"low": 1, "high": 2}


def test_the_shares_are_those_of_a_plain_loop():
    rng = np.random.default_rng(5)
    scores = {name: rng.integers(1, 11, 40).tolist() for name in "abc"}
    scores["a"] = [min(10, score + 1) for score in scores["a"]]
    first = dict.fromkeys(scores, 0.0)
    for _ in range(4000):
        rows = rng.integers(40, size=40)
        means = {name: np.mean(np.array(values)[rows]) for name, values in scores.items()}
        first[max(means, key=means.__getitem__)] += 1 / 4000
    assert ranking(scores)["first"] == pytest.approx(first, abs=0.04)


def test_a_cluster_is_drawn_whole():
    base = {"a": [5, 1, 5, 1, 5, 1, 5, 4, 3, 5, 2, 3], "b": [3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]}
    four_times = {name: np.repeat(values, 4).tolist() for name, values in base.items()}
    clusters = np.repeat([f"c{number}" for number in range(12)], 4).tolist()
    assert ranking(four_times, clusters)["first"] == pytest.approx(ranking(base)["first"], abs=0.04)


def test_a_candidate_without_rows_in_a_draw_is_not_first_in_it():
    entry = ranking({"a": [9, *["?"] * 19], "b": [4] * 20})
    assert 0.5 < entry["first"]["a"] < 0.75  # drawn with 1 − (1 − 1/20)^20
    assert sum(entry["first"].values()) == pytest.approx(1)


def test_few_rows_are_not_resampled_and_many_less_often():
    assert ranking({"a": [5] * 9, "b": [4] * 9})["first"] == {}
    assert [draws_for(units) for units in (9, 10, 100_000, 100_001)] == [0, DRAWS, DRAWS, DRAWS_OF_MANY]


def test_a_single_candidate_has_no_ranking():
    assert rankings(frame({"a": [5] * 20}), [METRIC], figures({"a": [5] * 20})) == []


def test_strengths_of_draws_are_those_of_bradley_and_terry():
    rng = np.random.default_rng(1)
    a, b = rng.integers(3, size=200), rng.integers(3, size=200)
    won = rng.choice([0.0, 0.5, 1.0], size=200)
    paired = PairedComparisons(3, a[a != b], b[a != b], won[a != b], np.arange(200)[a != b])
    fitted = bradley_terry(paired)
    (strengths,) = strengths_of(wins_between(paired).reshape(1, 9), 3, rated=True)
    assert strengths - strengths.mean() == pytest.approx(fitted.ratings, abs=1e-5)


def test_comparisons_are_ranked_by_who_compared_most():
    (entry,) = of_verdicts(list(tournament()), ScaledMetric("m"))
    assert (entry["by"], list(entry["first"])) == ("qwen", ["alpha", "beta", "gamma"])
    assert entry["first"]["alpha"] > 0.9
    assert sum(entry["first"].values()) == pytest.approx(1)


def test_the_order_under_each_judge_and_repeat_stands_beside_it():
    verdicts = [
        said(score, judge, candidate=name, row=row, repeat=repeat)
        for row in range(1, 13)
        for judge, favourite in (("glm", "beta"), ("qwen", "alpha"))
        for name in ("alpha", "beta")
        for repeat, score in ((1, 9 if name == favourite else 3), (2, 5 if name == "alpha" else 4))
    ]
    (entry,) = of_verdicts(verdicts, METRIC)
    assert {single["by"]: single["names"] for single in entry["orders"]} == {
        "glm": ["beta", "alpha"],
        "glm #1": ["beta", "alpha"],
        "glm #2": ["alpha", "beta"],
        "qwen": ["alpha", "beta"],
        "qwen #1": ["alpha", "beta"],
        "qwen #2": ["alpha", "beta"],
    }


def test_corrected_scores_are_corrected_again_in_each_draw():
    rng = np.random.default_rng(8)
    rows, drawn = np.arange(1, 61), np.arange(1, 31)
    judge = {name: rng.integers(3, 9, 60).astype(float) for name in ("alpha", "beta")}
    people = {"alpha": np.clip(judge["alpha"] + 1, 1, 10), "beta": judge["beta"]}
    verdicts = [
        *(said(judge[name][row - 1], candidate=name, row=row) for name in judge for row in rows),
        *(
            person(people[name][row - 1], candidate=name, row=row, drawn_with=0.5)
            for name in judge
            for row in drawn
        ),
    ]
    (entry,) = of_verdicts(verdicts, METRIC)
    weights = {c["candidate"]: c["lambda"] for c in document(verdicts, METRIC)["corrected"]}
    first = 0.0
    for _ in range(3000):
        chosen = rng.integers(60, size=60)
        rated, rest = chosen[chosen < 30], chosen[chosen >= 30]
        means = [
            weights[name] * judge[name][rest].mean()
            + (people[name] - weights[name] * judge[name])[rated].mean()
            for name in judge
        ]
        first += (means[0] > means[1]) / 3000
    assert (entry["value"], entry["by"]) == ("corrected", "qwen")
    assert entry["first"]["alpha"] == pytest.approx(first, abs=0.04)
