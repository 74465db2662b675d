"""Breakdown of report cells by the values of a field."""

import json

import numpy as np
import pytest
from scipy import stats

from judging.core.statistics.frame import ScaledMetric
from judging.core.statistics.means import apart, benjamini_hochberg, estimate_mean
from judging.core.statistics.report import MOST_VALUES, breakdown
from tests.judging.core.statistics.cast import compared, person, said, table

METRIC = ScaledMetric("m", 1, 10)


def by_field(verdicts, values, metric=METRIC):
    return breakdown(table(verdicts, metric), [metric], "subject", values)


def two_subjects(gap=3, rows=40):
    """Scores of odd rows (art) and even rows (maths), and the subject of each row; art scores `gap` higher."""
    rng = np.random.default_rng(1)
    verdicts = [
        said(int(rng.integers(3, 6)) + (gap if row % 2 else 0), candidate=name, row=row)
        for row in range(rows)
        for name in ("alpha", "beta")
    ]
    return verdicts, {row: "art" if row % 2 else "maths" for row in range(rows)}


def test_each_value_has_the_cells_of_its_rows():
    found = by_field(*two_subjects())
    assert found["field"] == "subject"
    assert list(found["values"]) == ["art", "maths"]
    cell = found["values"]["art"]["alpha"]["m"]
    assert (cell["items"], cell["responses"]) == (20, 20)
    assert cell["mean"] > found["values"]["maths"]["alpha"]["m"]["mean"]


def test_a_value_is_compared_with_the_rest_by_a_permutation_test():
    verdicts, subjects = two_subjects()
    (art,) = [
        one
        for one in by_field(verdicts, subjects)["comparisons"]
        if (one["value"], one["candidate"]) == ("art", "alpha")
    ]
    scores = {one.row: json.loads(one.value) for one in verdicts if one.candidate == "alpha"}
    parts = [[score for row, score in scores.items() if subjects[row] == name] for name in ("art", "maths")]
    assert art["p"] == 1 / 10_000  # no drawn arrangement is as far apart
    assert art["difference"] == pytest.approx(np.mean(parts[0]) - np.mean(parts[1]))
    inside, rest = (estimate_mean(np.array(part, float), ends=(1, 10)) for part in parts)
    assert (art["ci_low"], art["ci_high"]) == (apart(inside, rest).low, apart(inside, rest).high)


def test_p_is_corrected_over_the_whole_breakdown():
    found = by_field(*two_subjects(gap=1))["comparisons"]
    assert len({one["p"] for one in found}) > 1
    assert [one["p_bh"] for one in found] == pytest.approx(
        stats.false_discovery_control([one["p"] for one in found]).tolist()
    )


@pytest.mark.parametrize("p_values", [[0.01, 0.04, 0.03, 0.005], [0.5], [], [1.0, 1.0, 0.2]])
def test_the_correction_is_scipys(p_values):
    expected = stats.false_discovery_control(p_values).tolist() if p_values else []
    assert benjamini_hochberg(p_values) == pytest.approx(expected)


def test_what_cannot_be_tested_is_not_counted():
    assert benjamini_hochberg([None, 0.03, None, 0.01]) == [
        None,
        pytest.approx(0.03),
        None,
        pytest.approx(0.02),
    ]


def test_rows_without_the_field_count_as_nothing():
    found = by_field([said(5), said(6, row=2)], {1: "art"})
    assert list(found["values"]) == ["", "art"]
    assert {one["p"] for one in found["comparisons"]} == {None}


def test_rare_values_beyond_the_most_frequent_are_counted():
    found = by_field([said(5, row=row) for row in range(60)], {row: f"v{row}" for row in range(60)})
    assert (len(found["values"]), found["left_out"]) == (MOST_VALUES, 10)


def test_a_table_without_rows_has_no_values():
    assert by_field([], {})["values"] == {}


def test_metrics_without_a_mean_have_cells_and_no_comparisons():
    found = by_field([compared("A>B"), compared("B>A", row=2)], {1: "art", 2: "maths"}, ScaledMetric("m"))
    assert found["values"]["art"]["alpha"]["m"]["categories"]["A>B"]["count"] == 1
    assert found["comparisons"] == []


def test_people_s_values_count_where_only_they_spoke():
    found = by_field([person(3), person(5, "Bob"), person(9, row=2)], {1: "art", 2: "maths"})
    assert found["values"]["art"]["alpha"]["m"]["mean"] == 4


def test_a_judge_is_held_against_people_value_by_value():
    judged = [said(5 + row % 3, row=row) for row in range(12)]
    people = [person(5 + row % 3 if row % 2 else 9 - row % 3, row=row) for row in range(12)]
    subjects = {row: "art" if row % 2 else "maths" for row in range(12)}
    art, maths = by_field([*judged, *people], subjects)["judges"]
    assert (art["value"], art["judge"], art["items"], art["exact"]) == ("art", "qwen", 6, 1)
    assert (maths["value"], maths["items"]) == ("maths", 6)
    assert maths["kappa_weighted"] < 0 < art["kappa_weighted"]


def test_without_people_no_judge_is_held_against_them():
    assert by_field(*two_subjects())["judges"] == []


def test_comparisons_are_held_against_people_s_too():
    verdicts = [
        compared("A>B", row=row, **author)
        for row in (1, 2)
        for author in ({"by": "qwen"}, {"by": "Ann", "source": "rater"})
    ]
    (one,) = by_field(verdicts, {1: "art", 2: "art"}, ScaledMetric("m"))["judges"]
    assert (one["value"], one["items"], one["exact"]) == ("art", 2, 1)
