import json

import numpy as np
import pytest

from judging.core.statistics.document import NOTES, Cell, Pair, Report
from judging.core.statistics.frame import ScaledMetric, judgement_frame, ordered
from judging.core.statistics.report import report

from .cast import document, figures, frame, judgements, said

METRICS = [ScaledMetric("m", 1, 10)]
TWO = {"b": [3, 5, 8, 6], "a": [4, 5, 9, "?"]}


def test_the_document_has_the_keys_that_the_specification_names():
    got = figures(TWO)
    assert set(got) == set(Report.__annotations__) - {"breakdown"}
    assert Cell.__required_keys__ <= set(got["candidates"]["a"]["m"]) <= set(Cell.__annotations__)
    assert set(got["pairs"][0]) == set(Pair.__annotations__)


def test_the_document_is_strict_json_whatever_the_scores():
    wild = {"a": [1e300, -1e300, "?"], "b": ["x", True, 5], "c": [], "d": [7, 7, 7]}
    assert json.loads(json.dumps(figures(wild), allow_nan=False)) == figures(wild)


def test_equal_judgements_in_any_order_give_the_same_document():
    random = np.random.default_rng(5)
    scores = {name: [tuple(random.random(3)) for _ in range(50)] for name in "abc"}
    given, metric = frame(scores, clusters=[row // 3 for row in range(50)]), ScaledMetric("m", 0, 1)
    first, second = (report(each, [metric]) for each in (given, given.sample(frac=1, random_state=1)))
    assert first == second


def test_a_pair_is_named_in_alphabetical_order_and_compared_on_shared_items():
    (pair,) = figures(TWO)["pairs"]
    assert (pair["a"], pair["b"], pair["metric"], pair["items"]) == ("a", "b", "m", 3)
    assert (pair["wins"], pair["ties"], pair["losses"]) == (2, 1, 0)
    assert pair["difference"] == pytest.approx(2 / 3)


def test_candidates_that_share_no_item_have_a_pair_without_figures():
    (pair,) = figures({"a": [5, "?"], "b": ["?", 5]})["pairs"]
    assert (pair["items"], pair["difference"], pair["p"], pair["p_holm"]) == (0, None, None, None)
    assert pair["distinguishable"] is None


def test_a_reference_that_nobody_scored_is_in_no_pair():
    pairs = document([said(7, candidate=name) for name in ("alpha", "beta")])["pairs"]
    assert all("@reference" not in (pair["a"], pair["b"]) for pair in pairs)


def test_p_is_corrected_over_the_pairs_of_one_metric():
    pairs = figures({"a": [1, 2, 3, 5], "b": [2, 4, 5, 6], "c": [9, 8, 9, 10]})["pairs"]
    smallest = min(pairs, key=lambda pair: pair["p"])
    assert smallest["p_holm"] == pytest.approx(3 * smallest["p"])


def test_distinguishable_is_what_the_corrected_p_says():
    pairs = figures({"a": [1, 2, 1, 2, 1], "b": [8, 9, 9, 9, 9], "c": [1, 2, 2, 1, 1]})["pairs"]
    assert [pair["distinguishable"] for pair in pairs] == [True, False, True]


def test_categories_have_no_pairs():
    assert figures({"a": ["x", "y"], "b": ["x", "x"]})["pairs"] == []


def test_a_minimum_difference_gives_the_items_needed():
    (pair,) = figures(TWO, metric=ScaledMetric("m", 1, 10, wanted_difference=0.5))["pairs"]
    assert pair["wanted_difference"] == 0.5
    assert pair["items_needed"] > pair["items"]


def test_metrics_do_not_mix():
    rows = [*judgements({"a": [1, 3]}, "m"), *judgements({"a": [True, False, "?"]}, "n")]
    metrics = {"n": ScaledMetric("n"), "m": ScaledMetric("m", 1, 10)}
    given = judgement_frame(rows, metrics, {"a": "a"})
    cells = report(given, list(metrics.values()))["candidates"]["a"]
    assert (cells["m"]["mean"], cells["n"]["rate"], cells["n"]["unparsed"]) == (2.0, 0.5, 1)


def test_rows_are_those_judged_unless_the_run_covers_more():
    given = frame({"a": [5, 6]})
    assert report(given, METRICS)["rows"] == 2
    assert report(given, METRICS, rows=80)["rows"] == 80


def test_a_response_judged_twice_is_refused():
    twice = [*judgements({"a": [5]}), *judgements({"a": [6]})]
    with pytest.raises(ValueError, match="two judgements"):
        ordered(judgement_frame(twice, {"m": ScaledMetric("m")}, {"a": "a"}))


def test_a_value_without_the_state_scored_is_refused():
    with pytest.raises(ValueError, match="exactly if it is scored"):
        ordered(judgement_frame([("m", "a", 1, 1, "error", "5", None)], {"m": ScaledMetric("m")}, {"a": "a"}))


def test_two_candidates_of_one_name_are_refused():
    with pytest.raises(ValueError, match="share a name"):
        judgement_frame([], {"m": ScaledMetric("m")}, {1: "a", 2: "a"})


def test_every_note_that_occurs_is_listed():
    cases = [[], [5], [5, 5], [1, 2, 3], [1, 2, True], [99, 5]]
    met = {note for case in cases for note in figures({"a": case})["candidates"]["a"]["m"]["notes"]}
    assert met == set(NOTES) - {"few_clusters"}


def test_labels_that_are_invalid_unicode_are_counted():
    rows = [("m", "a", row, 1, "scored", '"\\ud800"', None) for row in range(3)]
    given = judgement_frame(rows, {"m": METRICS[0]}, {"a": "a"})
    assert report(given, METRICS)["candidates"]["a"]["m"]["categories"]["\ud800"]["count"] == 3


def test_a_part_of_a_table_gives_the_figures_of_that_part():
    random = np.random.default_rng(9)
    scores = {name: [tuple(random.integers(1, 11, 3).tolist()) for _ in range(20)] for name in "abc"}
    whole = report(frame(scores), METRICS)
    part = frame(scores).query("candidate != 'c'")
    part["candidate"] = part["candidate"].cat.remove_unused_categories()
    cells = report(part, METRICS)["candidates"]
    assert cells == {name: whole["candidates"][name] for name in "ab"}


def test_a_reference_that_is_only_compared_with_has_no_cells():
    compared_with = document([said(4), said(2, row=2)], ScaledMetric("m", 1, 5, compares=True))
    assert "@reference" not in compared_with["candidates"]
    assert "@reference" in compared_with["side_by_side"][0]["candidates"]
    assert "@reference" in document([said(4, candidate="@reference")])["candidates"]
