"""The document has exactly the keys that its consumers rely on."""

from functools import reduce
from operator import getitem

import numpy as np
import pytest

from judging.core.statistics.frame import ScaledMetric
from judging.core.statistics.judges import answer_features
from judging.core.statistics.report import breakdown
from tests.judging.core.statistics.cast import compared, document, person, said, table

RNG = np.random.default_rng(3)
METRIC = ScaledMetric("m", 1, 10)
CELL = (
    "mean ci_low ci_high se items responses scored unparsed errors not_run low_bound high_bound distribution "
    "rate best_at_k pass_at_k"
)
SIDE_CELL = (
    "comparisons wins ties losses both_bad win_rate ci_low ci_high rating se rating_low rating_high rank_low "
    "rank_high"
)
JUDGES = (
    "metric judge against items exact kappa kappa_weighted spearman pearson kendall alpha mean_absolute_difference "
    "kappa_low kappa_high bias bias_low bias_high confusion labels true_positive_rate true_negative_rate human"
)


def bools():
    for row in range(20):
        yield from (
            said(bool(RNG.integers(2)), row=row, response=n, repeat=k) for n in (1, 2) for k in (1, 2)
        )
        yield from (person(bool(RNG.integers(2)), name, row=row, drawn_with=0.5) for name in ("Ann", "Bob"))
        yield said(True, candidate="beta", row=row)


def comparisons():
    for row in range(20):
        label = str(RNG.choice(["A>B", "A=B", "B>A"]))
        yield compared(label, row=row, shown_first=1)
        yield compared("A=B", "beta", "alpha", row=row, shown_first=1)


FEATURES = answer_features(
    [
        (name, row, number, "x" * int(RNG.integers(1, 99)))
        for name in ("alpha", "beta")
        for row in range(20)
        for number in (1, 2)
    ]
)


@pytest.fixture(scope="module")
def documents():
    return {
        "scores": document(bools(), METRIC, features=FEATURES),
        "sides": document(comparisons(), ScaledMetric("m"), features=FEATURES),
        "by_field": breakdown(table(bools(), METRIC), [METRIC], "subject", {1: "art", 2: "art"}),
    }


@pytest.mark.parametrize(
    ("path", "names"),
    [
        (("scores", "candidates", "alpha", "m"), CELL),
        (("scores", "people_candidates", "alpha", "m"), "mean ci_low ci_high se items responses scored"),
        (("scores", "pairs", 0), "a b metric items difference ci_low ci_high p p_holm wins ties losses"),
        (("sides", "side_by_side", 0), "metric by candidates pairs connected first_side style"),
        (("sides", "side_by_side", 0, "candidates", "alpha"), SIDE_CELL),
        (("sides", "side_by_side", 0, "pairs", 0), "a b wins ties losses both_bad win_rate ci_low ci_high"),
        (("sides", "side_by_side", 0, "first_side"), "first second ties share ci_low ci_high"),
        (("sides", "side_by_side", 0, "style", "length"), "coefficient se"),
        (("scores", "judges", 0), JUDGES),
        (("scores", "judges", 0, "human"), "items exact kappa_weighted alpha"),
        (("scores", "repeats", 0), "metric judge items exact alpha"),
        (("sides", "order", 0), "metric judge pairs flips share first_side"),
        (("scores", "length", 0), "metric judge spearman ci_low ci_high slope_per_doubling"),
        (
            ("scores", "raters", 0),
            "metric level items raters alpha ci_low ci_high percent ac1 fleiss pairs each",
        ),
        (("scores", "raters", 0, "pairs", 0), "a b items exact kappa kappa_weighted"),
        (("scores", "raters", 0, "each", "Ann"), "items agreement_with_others seconds"),
        (
            ("scores", "corrected", 0),
            "metric candidate judge labelled judged people_mean judge_mean value ci_low ci_high lambda halve refused",
        ),
        (("by_field",), "field values comparisons"),
        (("by_field", "values", "art", "alpha", "m"), "mean ci_low ci_high"),
        (("by_field", "comparisons", 0), "value candidate metric difference p p_bh"),
    ],
)
def test_every_part_has_the_names_of_the_specification(documents, path, names):
    assert set(names.split()) <= set(reduce(getitem, path, documents))


def test_where_there_is_nothing_to_say_lists_are_empty():
    nothing = document([said(5), said(6, row=2)])
    assert [
        nothing[name]
        for name in ("side_by_side", "judges", "repeats", "order", "length", "raters", "corrected")
    ] == [[]] * 7
    assert nothing["people_candidates"] == {}
