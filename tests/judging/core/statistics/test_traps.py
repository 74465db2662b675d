"""Unusual numbers and data without information: figures are never NaN and never raise."""

import json

import numpy as np
import pytest

from judging.core.statistics.frame import ScaledMetric
from judging.core.statistics.judges import answer_features
from judging.core.statistics.report import breakdown
from tests.judging.core.statistics.cast import compared, document, person, said, table

SCALE, NO_SCALE = ScaledMetric("m", 1, 10), ScaledMetric("m")


def everything(judge, people, metric=SCALE):
    """A report of a judge's and people's values on the same rows, with answer features and a breakdown by field."""
    verdicts = [said(value, row=row, repeat=again) for row, value in enumerate(judge) for again in (1, 2)]
    verdicts += [said(value, row=row, candidate="beta") for row, value in enumerate(judge)]
    verdicts += [
        person(value, name, row=row, drawn_with=0.5)
        for row, value in enumerate(people)
        for name in ("Ann", "Bob")
    ]
    features = answer_features(
        [(name, row, 1, "x" * row) for row in range(len(judge)) for name in ("alpha", "beta")]
    )
    found = document(verdicts, metric, features=features)
    by_field = breakdown(
        table(verdicts, metric), [metric], "f", {row: str(row % 2) for row in range(len(judge))}
    )
    json.dumps([found, by_field], allow_nan=False)
    return found


@pytest.mark.parametrize("metric", [SCALE, NO_SCALE])
@pytest.mark.parametrize(
    ("judge", "people"),
    [
        ([5], [5]),  # one item
        ([5, 5, 5], [5, 5, 5]),  # nothing varies
        ([5, 6, 7], [5, 5, 5]),
        ([5, 5, 5], [5, 6, 7]),
        ([1e300, -1e300, 3], [1e300, 1e300, -1e300]),
        ([1e-300, 0.0, 1e-300], [0.0, 1e-300, 1e-300]),
        ([True, False, True], [True, True, False]),
        (["a", "b", "a"], ["a", "a", "b"]),
        ([5, True, "a"], ["a", 5, True]),  # mixed types
        (["?", "!", "-"], [5, 6, 7]),  # no scored values
        ([5, 6, "?"], ["0", "0", "0"]),
        ([5, 6, 7], []),
    ],
)
def test_every_figure_is_a_number_or_nothing(judge, people, metric):
    assert "NaN" not in json.dumps(everything(judge, people, metric))


def test_only_the_top_of_the_scale_used_is_no_perfect_agreement():
    rng = np.random.default_rng(2)
    found = everything(rng.integers(7, 10, 60).tolist(), rng.integers(7, 10, 60).tolist())
    (judge,) = found["judges"]
    assert judge["exact"] > 0.2
    assert abs(judge["kappa_weighted"]) < 0.35
    assert judge["labels"] == [7, 7.5, 8, 8.5, 9] or judge["labels"] == [7, 8, 9]


def test_a_missing_response_is_in_no_pair_and_no_agreement():
    verdicts = [
        said(5),
        said(6, row=2),
        said(7, candidate="beta"),
        person(5),
        person(9, candidate="beta", row=2),
    ]
    found = document(verdicts)
    assert [pair["items"] for pair in found["pairs"] if (pair["a"], pair["b"]) == ("alpha", "beta")] == [1]
    assert [one["items"] for one in found["judges"]] == [1]


def test_a_different_number_of_responses_an_item_weighs_items_equally():
    answers = [said(value, response=number) for number, value in enumerate((2, 4), 1)]
    found = document([*answers, said(9, row=2)])["candidates"]["alpha"]["m"]
    assert (found["mean"], found["items"], found["responses"]) == (6, 2, 3)


def test_one_comparison_alone():
    found = document([compared("A>B")], NO_SCALE)
    json.dumps(found, allow_nan=False)
    (entry,) = found["side_by_side"]
    assert (entry["connected"], entry["candidates"]["alpha"]["rating"]) == (True, None)


def test_all_ties_are_ratings_of_zero():
    found = document([compared("A=B", row=row) for row in range(5)], NO_SCALE)
    json.dumps(found, allow_nan=False)
    (entry,) = found["side_by_side"]
    assert [cell["rating"] for cell in entry["candidates"].values()] == pytest.approx([0, 0])


def test_comparisons_that_nobody_could_read_have_no_entry():
    found = document([compared("?"), compared("!", row=2)], NO_SCALE)
    json.dumps(found, allow_nan=False)
    assert (found["side_by_side"], found["candidates"]["alpha"]["m"]["unparsed"]) == ([], 1)


def test_labels_that_are_no_comparison_are_left_out_of_side_by_side():
    found = document([compared("better"), compared("A>B", row=2)], NO_SCALE)
    assert found["side_by_side"][0]["candidates"]["alpha"]["comparisons"] == 1


def test_a_candidate_beside_itself_is_compared_by_its_answers():
    found = document([compared("A>B", "alpha", "alpha"), compared("B>A", "alpha", "alpha", row=2)], NO_SCALE)
    assert "NaN" not in json.dumps(found)
