import math

import numpy as np
import pytest

from judging.core.statistics.frame import ScaledMetric
from judging.core.statistics.intervals import mean_interval, wilson

from .cast import cell


def test_mean_error_and_interval_of_four_scores():
    got = cell([2, 4, 4, 6])
    assert (got["mean"], got["se"]) == (4.0, pytest.approx(math.sqrt(8 / 12)))
    ends = mean_interval(4, math.sqrt(8 / 12), 4, (1, 10))
    assert (got["ci_low"], got["ci_high"]) == pytest.approx(ends)


def test_every_response_is_counted_under_its_state():
    got = cell([(7, "?"), (8, "!"), ("-", "0"), (5, 5)])
    counts = ("responses", "scored", "no_score", "unparsed", "errors", "not_run", "asked")
    assert [got[name] for name in counts] == [8, 4, 1, 1, 1, 1, 7]


def test_coverage_leaves_out_what_a_script_gave_no_score():
    assert cell([7, "0", "?", 3])["coverage"] == pytest.approx(2 / 3)


def test_items_are_those_with_a_score():
    assert cell([(7, "?"), "!", 5])["items"] == 2


def test_an_items_mean_comes_first():
    assert cell([(2, 4), 9])["mean"] == 6.0


def test_bounds_give_the_unscored_the_ends_of_the_scale():
    got = cell([7, "?", "!", "-"])
    assert (got["low_bound"], got["high_bound"]) == ((7 + 3) / 4, (7 + 30) / 4)


def test_no_score_is_outside_the_bounds():
    got = cell([7, "0", 5])
    assert (got["low_bound"], got["high_bound"]) == (6.0, 6.0)


def test_a_score_off_the_scale_is_counted_and_widens_the_bounds():
    got = cell([0, 12, "?"])
    assert (got["off_scale"], got["low_bound"], got["high_bound"]) == (2, 4.0, 8.0)
    assert "off_scale" in got["notes"]


def test_without_a_scale_there_are_bounds_only_where_all_is_scored():
    bare = ScaledMetric("m")
    assert cell([7, "?"], metric=bare)["low_bound"] is None
    assert cell([7, 8], metric=bare)["low_bound"] == 7.5


def test_nothing_scored_has_no_mean_and_the_widest_bounds():
    got = cell(["?", "!"])
    assert (got["mean"], got["se"], got["ci_low"], got["items"], got["kind"]) == (None, None, None, 0, None)
    assert (got["low_bound"], got["high_bound"], got["coverage"]) == (1.0, 10.0, 0.0)
    assert (got["notes"], got["distribution"]) == (["nothing_scored"], [])


def test_a_candidate_without_any_judgement_still_has_its_cell():
    got = cell([])
    assert (got["responses"], got["coverage"], got["mean"], got["low_bound"]) == (0, None, None, None)


def test_one_item_has_a_mean_without_interval_and_says_so():
    got = cell([7])
    assert (got["mean"], got["se"], got["ci_low"], got["notes"]) == (7.0, None, None, ["one_unit"])


def test_two_items_have_a_mean_without_interval_and_say_so():
    got = cell([7, 8])
    assert (got["mean"], got["ci_low"], got["ci_high"], got["notes"]) == (7.5, None, None, ["two_units"])


def test_two_items_have_a_rate_with_an_interval():
    got = cell([True, False])
    assert (got["ci_low"], got["ci_high"]) == pytest.approx(wilson(0.5, 2))
    assert got["notes"] == ["few_items"]


def test_equal_scores_have_an_interval_and_say_so():
    got = cell([7] * 40)
    assert (got["se"], got["notes"]) == (0.0, ["no_variation"])
    assert got["ci_low"] < 7 < got["ci_high"]


def test_bools_become_a_rate_with_wilsons_interval():
    got = cell([True, True, True, False])
    assert (got["kind"], got["mean"], got["rate"]) == ("bool", 0.75, 0.75)
    assert (got["ci_low"], got["ci_high"]) == pytest.approx(wilson(0.75, 4))


def test_unscored_bools_are_bounded_by_false_and_true():
    got = cell([True, "?", "?", False])
    assert (got["low_bound"], got["high_bound"]) == (0.25, 0.75)


def test_bools_are_counted_as_zero_and_one():
    got = cell([True, True, False])
    assert got["distribution"] == {"true": 2, "false": 1}


def test_categories_become_shares_most_frequent_first():
    got = cell(["good", "bad", "good", "?"])
    assert list(got["categories"]) == ["good", "bad"]
    assert (got["categories"]["good"]["count"], got["categories"]["good"]["share"]) == (
        2,
        pytest.approx(2 / 3),
    )
    assert (got["kind"], got["mean"], got["low_bound"], got["items"]) == ("category", None, None, 3)


def test_a_category_share_has_wilsons_interval():
    got = cell(["good", "bad", "good", "good"])["categories"]["good"]
    assert (got["ci_low"], got["ci_high"]) == pytest.approx(wilson(0.75, 4))


def test_rare_categories_are_counted_together():
    got = cell([f"c{n:02}" for n in range(40)])
    assert (len(got["categories"]), got["other_categories"]) == (30, {"labels": 10, "count": 10})


def test_numbers_lead_where_a_script_mixes_kinds():
    got = cell([5, 7, True, "good"])
    assert (got["mean"], got["rate"], got["categories"]["good"]["share"]) == (6.0, 1.0, 1.0)
    assert (got["kinds"], got["scored"]) == ({"number": 2, "bool": 1, "category": 1}, 4)
    assert "mixed_kinds" in got["notes"]


def test_one_response_an_item_has_no_figures_of_repeats():
    assert not {"best_at_k", "worst_at_k", "pass_at_k", "variance"} & set(cell([5, 7]))


def test_repeats_have_best_worst_and_pass_at_k():
    got = cell([(4, 10), (6, 8)])
    assert got["best_at_k"] == {"1": pytest.approx(7), "2": pytest.approx(9)}
    assert got["worst_at_k"]["2"] == pytest.approx(5)
    assert (got["pass_at_k"], got["pass_threshold"]) == (
        {"1": pytest.approx(0.25), "2": pytest.approx(0.5)},
        10,
    )


def test_the_threshold_of_passing_is_the_metrics():
    got = cell([(4, 10), (6, 8)], metric=ScaledMetric("m", 1, 10, pass_threshold=6))
    assert got["pass_at_k"] == {"1": pytest.approx(0.75), "2": pytest.approx(1)}


def test_each_k_says_over_how_many_items():
    assert cell([(4, 10), (6, 8, 8), (5, "?")])["at_k_items"] == {"1": 3, "2": 2, "3": 1}


def test_the_share_at_the_top_takes_an_items_share_first():
    assert cell([(10, 10, 9, 9), 10])["top_share"] == 0.75


def test_few_items_and_few_clusters_are_distinguished():
    assert cell([1, 2, 3])["notes"] == ["few_items"]
    assert cell([1, 2, 3, 4], clusters=["x", "x", "y", "z"])["notes"] == ["few_clusters"]


def test_clusters_are_counted_among_the_scored_items():
    got = cell([1, 2, "?", 4], clusters=["x", "x", "y", None])
    assert (got["items"], got["clusters"]) == (3, 2)


def test_more_items_help_more_than_more_responses_where_items_differ():
    got = cell([(3, 4), (8, 9), (5, 5), (1, 2)])
    variance = got["variance"]
    assert variance["se_twice_items"] < variance["se_twice_responses"] < got["se"]
    assert variance["se_twice_items"] == pytest.approx(got["se"] / np.sqrt(2))


VALUED = ScaledMetric("m", label_values={"good": 1.0, "half": 0.5, "bad": 0.0})


def test_labels_with_values_have_a_mean_within_them():
    got = cell(["good", "bad", "good", "half"], metric=VALUED)
    assert (got["kind"], got["mean"]) == ("category", 0.625)
    assert 0 <= got["ci_low"] < 0.625 < got["ci_high"] <= 1


def test_the_unscored_could_have_got_the_label_of_the_lowest_or_highest_value():
    got = cell(["good", "?"], metric=VALUED)
    assert (got["low_bound"], got["high_bound"]) == (0.5, 1.0)


def test_labels_without_values_have_no_mean():
    assert cell(["good", "bad"], metric=ScaledMetric("m"))["mean"] is None
    assert cell(["good", "other"], metric=VALUED)["mean"] is None


def test_the_distribution_of_labels_and_of_passes_counts_responses():
    assert cell(["bad", "good", "good", "?"], metric=VALUED)["distribution"] == {"good": 2, "bad": 1}
    assert cell([True, (False, True), "?"])["distribution"] == {"true": 2, "false": 1}
