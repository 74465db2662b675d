"""The document has exactly the keys that its consumers rely on."""

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
SCORES = document(bools(), METRIC, features=FEATURES)
SIDES = document(comparisons(), ScaledMetric("m"), features=FEATURES)
BY_FIELD = breakdown(table(bools(), METRIC), [METRIC], "subject", {1: "art", 2: "art"})


def first(document, name):
    return document[name][0]


@pytest.mark.parametrize(
    ("part", "names"),
    [
        (SCORES["candidates"]["alpha"]["m"], CELL),
        (SCORES["people_candidates"]["alpha"]["m"], "mean ci_low ci_high se items responses scored"),
        (first(SCORES, "pairs"), "a b metric items difference ci_low ci_high p p_holm wins ties losses"),
        (first(SIDES, "side_by_side"), "metric by candidates pairs connected first_side style"),
        (first(SIDES, "side_by_side")["candidates"]["alpha"], SIDE_CELL),
        (first(SIDES, "side_by_side")["pairs"][0], "a b wins ties losses both_bad win_rate ci_low ci_high"),
        (first(SIDES, "side_by_side")["first_side"], "first second ties share ci_low ci_high"),
        (first(SIDES, "side_by_side")["style"]["length"], "coefficient se"),
        (first(SCORES, "judges"), JUDGES),
        (first(SCORES, "judges")["human"], "items exact kappa_weighted alpha"),
        (first(SCORES, "repeats"), "metric judge items exact alpha"),
        (first(SIDES, "order"), "metric judge pairs flips share first_side"),
        (first(SCORES, "length"), "metric judge spearman ci_low ci_high slope_per_doubling"),
        (
            first(SCORES, "raters"),
            "metric level items raters alpha ci_low ci_high percent ac1 fleiss pairs each",
        ),
        (first(SCORES, "raters")["pairs"][0], "a b items exact kappa kappa_weighted"),
        (first(SCORES, "raters")["each"]["Ann"], "items agreement_with_others seconds"),
        (
            first(SCORES, "corrected"),
            "metric candidate judge labelled judged people_mean judge_mean value ci_low ci_high lambda halve refused",
        ),
        (BY_FIELD, "field values comparisons"),
        (BY_FIELD["values"]["art"]["alpha"]["m"], "mean ci_low ci_high"),
        (BY_FIELD["comparisons"][0], "value candidate metric difference p p_bh"),
    ],
)
def test_every_part_has_the_names_of_the_specification(part, names):
    assert set(names.split()) <= set(part)


def test_where_there_is_nothing_to_say_lists_are_empty():
    nothing = document([said(5), said(6, row=2)])
    assert [
        nothing[name]
        for name in ("side_by_side", "judges", "repeats", "order", "length", "raters", "corrected")
    ] == [[]] * 7
    assert nothing["people_candidates"] == {}
