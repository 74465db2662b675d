"""Combining several verdicts on one answer."""

import numpy as np
import pytest

from judging.core.statistics.frame import ScaledMetric
from judging.core.statistics.verdicts import combined_per_item
from tests.judging.core.statistics.cast import compared, person, said, table, under

NO_SCALE = ScaledMetric("m")


def come_to(*verdicts, metric=None):
    """(state, value or label) combined from verdicts on a single answer."""
    (row,) = combined_per_item(table(verdicts, metric)).to_dict("records")
    shown = row["label"] if row["kind"] == "category" else row["value"]
    return row["state"], None if isinstance(shown, float) and np.isnan(shown) else shown


def test_one_verdict_stays_as_it_is():
    assert come_to(said(7)) == ("scored", 7)


def test_judges_come_to_the_mean_of_their_means_over_repeats():
    qwen = [said(value, repeat=n) for n, value in enumerate((2, 4, 6), 1)]
    assert come_to(*qwen, said(8, "glm")) == ("scored", 6)


def test_people_come_to_their_mean():
    assert come_to(person(3, "Ann"), person(4, "Bob"), person(8, "Cem")) == ("scored", 5)


def test_what_was_combined_already_counts_alone():
    assert come_to(said(2), said(4, "glm"), said(4, "combined", "combined")) == ("scored", 4)


def test_a_reviewer_s_value_and_an_adjudicator_s_count_alone():
    assert come_to(said(2), said(9, "override", "override")) == ("scored", 9)
    assert come_to(person(2), person(3, "Bob"), said(5, "adjudicator", "adjudicator")) == ("scored", 5)


@pytest.mark.parametrize(("others", "state"), [("?!", "unparsed"), ("!-", "error"), ("-0", "not_run")])
def test_without_a_value_the_reason_is_the_nearest_to_one(others, state):
    assert come_to(*(said(sign, f"judge {sign}") for sign in others)) == (state, None)


def test_a_verdict_that_could_not_be_read_does_not_count_as_zero():
    assert come_to(said(6), said("?", "glm")) == ("scored", 6)


def test_labels_come_to_their_majority():
    assert come_to(person("good"), person("bad", "Bob"), person("good", "Cem")) == ("scored", "good")


def test_labels_without_a_majority_have_no_value_and_the_reason_tells_whose_they_are():
    assert come_to(person("good"), person("bad", "Bob")) == ("no_score", None)
    votes = zip(("good", "good", "bad", "fair"), ("Ann", "Bob", "Cem", "Dee"), strict=True)
    assert come_to(*(person(*one) for one in votes)) == ("no_score", None)
    assert come_to(said("good"), said("bad", "glm")) == ("unparsed", None)


@pytest.mark.parametrize(
    ("votes", "verdict"),
    [
        ("A>B A>B B>A", "A>B"),
        ("A>B B>A", "A=B"),
        ("A>B A=B B>A", "A=B"),
        ("A>B A>B A=B B>A", "A=B"),
        ("A>>B A>>B A>B B>A", "A>>B"),
        ("A>>B A>B", "A>B"),
        ("B>>A B>>A A=B", "B>>A"),
        ("both_bad both_bad A=B", "both_bad"),
        ("both_bad A=B", "A=B"),
        ("A>B both_bad both_bad", "both_bad"),
    ],
)
def test_people_s_comparisons_come_to_the_majority_of_directions_and_its_median_strength(votes, verdict):
    said_by = [compared(vote, by=f"R{n}", source="rater") for n, vote in enumerate(votes.split())]
    assert come_to(*said_by, metric=NO_SCALE) == ("scored", verdict)


def test_bools_of_people_are_shares():
    assert come_to(person(True), person(True, "Bob"), person(False, "Cem")) == (
        "scored",
        pytest.approx(2 / 3),
    )


def test_the_same_pair_the_other_way_round_is_one_item():
    both = under([compared("A>>B"), compared("A>B", "beta", "alpha", by="glm", shown_first=1)], NO_SCALE)
    assert both.rows["item"].nunique() == 1
    assert both.rows["label"].tolist() == ["B>A", "A>>B"] or both.rows["label"].tolist() == ["A>>B", "B>A"]
    (turned,) = both.rows[both.rows["by"] == "glm"].to_dict("records")
    assert (turned["candidate"], turned["other"], turned["label"], turned["shown_first"]) == (
        "alpha", "beta", "B>A", 2,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("number", "label"), [(1, "B>>A"), (2, "B>A"), (3, "A=B"), (4, "A>B"), (5, "A>>B"), (3.5, "A>B")]
)
def test_numbers_of_a_judge_that_compares_with_the_reference_are_comparisons_from_the_answer_s_side(
    number, label
):
    (row,) = under([said(number)], ScaledMetric("m", 1, 5, compares=True)).rows.to_dict("records")
    assert (row["label"], row["other"]) == (label, "@reference")


def test_an_answer_judged_in_both_orders_counts_once():
    orders = [said(value, order=order, main=order == "both") for order, value in
              (("first", 5), ("swapped", 1), ("both", 3))]  # fmt: skip
    (judge,) = under(orders).authors.values()
    assert judge["value"].tolist() == [3]


@pytest.mark.parametrize(
    ("values", "metric", "level"),
    [
        ([True, False], ScaledMetric("m"), "nominal"),
        (["a", "b"], ScaledMetric("m"), "nominal"),
        ([7, 8], ScaledMetric("m", 1, 10), "ordinal"),
        ([7.5, 8], ScaledMetric("m", 1, 10), "interval"),
        ([7, 8], ScaledMetric("m"), "interval"),
        ([7, 8], ScaledMetric("m", 0.5, 9.5), "interval"),
    ],
)
def test_the_level_follows_the_scale(values, metric, level):
    assert under([said(value, row=row) for row, value in enumerate(values)], metric).level == level


def test_the_level_is_that_of_people_s_numbers_where_several_judges_are_combined():
    given = [person(7), person(8, row=2), said(7.33, "combined", "combined"), said(7, main=False)]
    assert under(given, ScaledMetric("m", 1, 10)).level == "ordinal"
    assert under(given[2:], ScaledMetric("m", 1, 10)).level == "ordinal"


def test_comparisons_are_ordinal():
    assert under([compared("A>B")], NO_SCALE).level == "ordinal"
