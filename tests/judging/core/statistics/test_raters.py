"""Agreement between raters."""

import numpy as np
import pytest

from judging.core.statistics.agreement import gwet_ac2
from judging.core.statistics.frame import ScaledMetric
from tests.judging.core.statistics.cast import compared, document, person, said
from tests.judging.core.statistics.published import KRIPPENDORFF_2011

NAMES = ("Ann", "Bob", "Cem", "Dan")


def rated(by_item, metric=None, **more):
    verdicts = [
        person(value, name, row=row, **more)
        for row, values in enumerate(by_item)
        for name, value in zip(NAMES, values, strict=False)
        if value is not None
    ]
    return document(verdicts, metric)["raters"]


def krippendorff(kind):
    return [[None if np.isnan(one) else kind(one) for one in item] for item in KRIPPENDORFF_2011]


@pytest.mark.parametrize(
    ("kind", "metric", "level", "alpha"),
    [
        (str, ScaledMetric("m"), "nominal", 0.743),
        (int, ScaledMetric("m", 1, 5), "ordinal", 0.815),
        (int, ScaledMetric("m"), "interval", 0.849),
    ],
)
def test_krippendorffs_example_gives_the_published_alpha_at_each_level(kind, metric, level, alpha):
    (found,) = rated(krippendorff(kind), metric)
    assert (found["level"], found["items"], found["raters"]) == (level, 11, 4)
    assert found["alpha"] == pytest.approx(alpha, abs=0.0005)
    assert found["ci_low"] < found["alpha"] < found["ci_high"]
    assert found["fleiss"] is None
    corrected = {"nominal": 0.77544, "ordinal": gwet_ac2(KRIPPENDORFF_2011, 1, 5), "interval": None}[level]
    assert found["ac2" if level == "ordinal" else "ac1"] == pytest.approx(corrected, abs=5e-6)


@pytest.mark.parametrize(
    ("verdicts", "choices", "labels"),
    [
        (("good", "good"), None, 2),  # that occur: the other item is bad
        (("good", "good"), ("good", "bad", "mixed", "none"), 4),
        (("good", "odd"), ("good", "bad", "mixed", "none"), 5),
        ((True, True), ("true", "false"), 2),
        ((True, True), None, 1),
    ],
)
def test_ac1_counts_the_labels_that_raters_could_choose(verdicts, choices, labels):
    metric = ScaledMetric("m", choices=choices)
    other = ("bad", "bad") if isinstance(verdicts[0], str) else (True, True)
    (found,) = rated([verdicts, other, other], metric)
    assert (found["labels"], found["labels_offered"]) == (labels, choices is not None)
    assert (found["ac1"] is None) == (labels < 2)


def test_ac1_of_comparisons_is_over_three_directions():
    verdicts = [
        compared(value, row=row, by=name, source="rater")
        for row, both in enumerate((("A>>B", "A>B"), ("A>B", "A>>B"), ("A>B", "B>A")))
        for name, value in zip(NAMES, both, strict=False)
    ]
    steps = ("A>>B", "A>B", "A=B", "B>A", "B>>A")
    (found,) = document(verdicts, ScaledMetric("m", choices=steps))["raters"]
    a, b = 5 / 6, 1 / 6
    chance = (a * (1 - a) + b * (1 - b)) / 2
    assert found["ac1"] == pytest.approx((2 / 3 - chance) / (1 - chance))
    assert (found["ac2"], found["labels"]) == (None, 3)


def test_each_two_raters_are_compared_with_each_other_on_shared_items():
    (found,) = rated([(1, 1), (2, 3), (5, 5), (4, None)])
    (pair,) = found["pairs"]
    assert (pair["a"], pair["b"], pair["items"], pair["exact"]) == ("Ann", "Bob", 3, pytest.approx(2 / 3))
    assert pair["kappa_weighted"] == pytest.approx(
        1 - 1 / (np.subtract.outer([1, 2, 5], [1, 3, 5]) ** 2 / 3).sum()
    )


def test_each_rater_has_items_pace_and_agreement_with_the_others():
    (found,) = rated([(1, 1, 1), (2, 2, 3), (4, None, None)], seconds=12.0)
    assert found["each"] == {
        "Ann": {"items": 3, "agreement_with_others": 0.75, "seconds": 12.0},
        "Bob": {"items": 2, "agreement_with_others": 0.75, "seconds": 12.0},
        "Cem": {"items": 2, "agreement_with_others": 0.5, "seconds": 12.0},
    }


def test_the_pace_is_over_items_whose_time_is_known():
    found = document([person(3, seconds=10.0), person(4, row=2, seconds=0.0), person(4, row=3, seconds=20.0)])
    assert found["raters"][0]["each"]["Ann"]["seconds"] == 15


def test_one_rater_has_no_agreement():
    (found,) = rated([(1,), (2,)])
    assert (found["items"], found["raters"], found["alpha"], found["percent"], found["pairs"]) == (
        0,
        1,
        None,
        None,
        [],
    )
    assert found["each"]["Ann"]["agreement_with_others"] is None


def test_where_nothing_varies_there_is_no_alpha():
    (found,) = rated([(3, 3), (3, 3)])
    assert (found["alpha"], found["ci_low"], found["ac1"], found["percent"]) == (None, None, None, 1.0)
    assert found["ac2"] == 1  # chance would not have given it: there were ten numbers to choose from


def test_comparisons_are_ordinal_and_both_bad_is_a_tie():
    verdicts = [
        compared(value, row=row, by=name, source="rater")
        for row, both in enumerate((("A>>B", "A>>B"), ("both_bad", "A=B"), ("B>A", "B>A")))
        for name, value in zip(NAMES, both, strict=False)
    ]
    (found,) = document(verdicts, ScaledMetric("m"))["raters"]
    assert (found["level"], found["alpha"], found["percent"]) == ("ordinal", 1.0, pytest.approx(2 / 3))


def test_adjudicators_are_no_raters():
    found = document([person(3), said(5, "adjudicator", "adjudicator")])
    assert found["raters"][0]["raters"] == 1
    assert found["people_candidates"]["alpha"]["m"]["mean"] == 5


def test_people_s_cells_are_separate_and_are_the_candidates_where_only_they_spoke():
    alone = document([person(3), person(5, "Bob")])
    assert alone["candidates"]["alpha"]["m"]["mean"] == alone["people_candidates"]["alpha"]["m"]["mean"] == 4
    beside = document([person(3), said(9)])
    assert beside["candidates"]["alpha"]["m"]["mean"] == 9
    assert beside["people_candidates"]["alpha"]["m"]["mean"] == 3
    assert document([said(9)])["people_candidates"] == {}
