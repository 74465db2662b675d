"""Judges compared with people, with each other, across repeats, and in both orders."""

import json

import numpy as np
import pytest

from judging.core.statistics.agreement import quadratic_kappa
from judging.core.statistics.frame import ScaledMetric
from judging.core.statistics.judges import human_ceiling
from tests.judging.core.statistics.cast import compared, document, person, said, under

RNG = np.random.default_rng(6)
TRUTH = RNG.integers(2, 9, 60)


def scores(rows=range(60), by="qwen", shift=0, spread=1, **more):
    rng = np.random.default_rng(len(by))
    for row in rows:
        value = int(np.clip(TRUTH[row] + shift + rng.integers(-spread, spread + 1), 1, 10))
        yield said(value, by, row=row, **more)


def raters(rows=range(60), names=("Ann", "Bob", "Cem")):
    for place, name in enumerate(names):
        rng = np.random.default_rng(place)
        yield from (
            person(int(np.clip(TRUTH[row] + rng.integers(-1, 2), 1, 10)), name, row=row) for row in rows
        )


def judged(*verdicts, metric=None):
    return document([one for many in verdicts for one in many], metric)


def against_people(*verdicts, metric=None):
    (found,) = [one for one in judged(*verdicts, metric=metric)["judges"] if one["against"] == "people"]
    return found


def test_a_judge_is_compared_with_people_on_the_items_that_both_scored():
    found = against_people(scores(), raters(range(40)))
    assert (found["judge"], found["items"], found["metric"]) == ("qwen", 40, "m")
    assert found["kappa_low"] < found["kappa_weighted"] < found["kappa_high"] <= 1
    assert found["bias_low"] < found["bias"] < found["bias_high"]
    assert found["human"]["items"] == 40
    assert 0.5 < found["human"]["kappa_weighted"] < 1


def test_a_judge_that_is_always_two_higher_has_that_bias_and_keeps_the_order():
    same = [said(value, row=row) for row, value in enumerate((3, 5, 6, 8))]
    people = [person(value - 2, row=row) for row, value in enumerate((3, 5, 6, 8))]
    found = against_people(same, people)
    assert (found["bias"], found["exact"], found["mean_absolute_difference"]) == (2, 0, 2)
    assert (found["spearman"], found["kendall"]) == (pytest.approx(1), pytest.approx(1))
    assert found["kappa_weighted"] < 1


def test_the_confusion_table_has_the_judge_in_rows_and_people_in_columns():
    found = against_people(
        [said(3), said(4, row=2), said(4, row=3)], [person(3), person(3, row=2), person(4, row=3)]
    )
    assert (found["labels"], found["confusion"]) == ([3, 4], [[1, 0], [1, 1]])


def test_a_judge_that_never_varies_has_no_correlation_and_no_kappa_interval_that_says_something():
    found = against_people([said(7, row=row) for row in range(20)], raters(range(20)))
    assert found["spearman"] is found["pearson"] is found["kendall"] is None
    assert found["kappa_weighted"] == pytest.approx(0, abs=1e-9)
    assert found["kappa_low"] is found["kappa_high"] is None


def test_people_who_never_vary_leave_no_kappa_interval():
    found = against_people(
        scores(range(20)), [person(7, name, row=row) for row in range(20) for name in "AB"]
    )
    assert (found["kappa_low"], found["human"]["kappa_weighted"], found["human"]["alpha"]) == (
        None,
        None,
        None,
    )


def test_one_item_has_no_interval():
    found = against_people([said(7)], [person(6)])
    assert (found["items"], found["bias"], found["bias_low"], found["kappa_low"]) == (1, 1, None, None)
    nothing = {"items": 0, "exact": None, "kappa_weighted": None, "alpha": None, "others": None}
    assert found["human"] == nothing


def test_raters_and_the_judge_are_held_against_the_same_others():
    by_people = {1: (5, 5, 4), 2: (2, 3), 3: (1,), 4: (2, 2)}
    judged = {1: 5, 2: 3, 3: 1, 4: 1}
    found = against_people(
        [said(value, row=row) for row, value in judged.items()],
        [
            person(value, name, row=row)
            for row, values in by_people.items()
            for name, value in zip(("Ann", "Bob", "Cem"), values, strict=False)
        ],
    )["human"]["others"]
    raters = np.array([5, 5, 4, 2, 3, 2, 2.0])
    others = np.array([4.5, 4.5, 5, 3, 2, 2, 2])
    judge = np.array([5, 5, 5, 3, 3, 1, 1.0])
    assert found == {
        "items": 3,
        "exact": pytest.approx(np.mean(raters == others)),
        "kappa_weighted": pytest.approx(quadratic_kappa(raters, others)),
        "judge_exact": pytest.approx(np.mean(judge == others)),
        "judge_kappa_weighted": pytest.approx(quadratic_kappa(judge, others)),
    }


def test_two_valued_metrics_have_rates_of_true_and_of_false():
    said_true = [True] * 4 + [False] * 2
    people = [True] * 3 + [False] * 3
    found = against_people(
        [said(value, row=row) for row, value in enumerate(said_true)],
        [person(value, row=row) for row, value in enumerate(people)],
        metric=ScaledMetric("m"),
    )
    assert (found["true_positive_rate"], found["true_negative_rate"]) == (1, pytest.approx(2 / 3))
    assert (found["labels"], found["confusion"]) == ([False, True], [[2, 0], [1, 3]])
    assert found["true_negative_low"] < 2 / 3 < found["true_negative_high"]


def test_items_on_which_people_are_even_say_nothing_about_a_two_valued_judge():
    found = against_people(
        [said(True), said(False, row=2)], [person(True), person(False, "Bob"), person(False, row=2)]
    )
    assert (found["items"], found["exact"]) == (1, 1)


def test_labels_without_order_have_no_weighted_kappa():
    found = against_people(
        [said(value, row=row) for row, value in enumerate("aab")],
        [person(value, row=row) for row, value in enumerate("abb")],
        metric=ScaledMetric("m"),
    )
    assert (found["kappa_weighted"], found["spearman"], found["bias"]) == (None, None, None)
    assert (found["labels"], found["confusion"]) == (["a", "b"], [[1, 1], [0, 1]])
    assert found["kappa"] == pytest.approx(0.4)


def test_shares_of_0_to_1_have_no_kappa_but_scores_averaged_over_repeats_do():
    people = [person(value, row=row) for row, value in enumerate(np.linspace(0, 1, 60))]
    shares = against_people(
        [said(value**2, row=row) for row, value in enumerate(np.linspace(0, 1, 60))], people
    )
    assert [shares[name] for name in ("kappa", "kappa_weighted", "kappa_low")] == [None, None, None]
    assert (shares["spearman"], shares["bias"] < 0) == (pytest.approx(1), True)
    averaged = [said(value + 1 / 3, row=row) for row, value in enumerate(TRUTH + RNG.integers(0, 3, 60) / 3)]
    assert against_people(averaged, raters(names=("Ann",)))["kappa_weighted"] > 0.5


def test_comparisons_without_strengths_are_compared_by_direction():
    judge = [compared(value, row=row) for row, value in enumerate(("A>>B", "B>A", "A=B"))]
    people = [
        compared(value, row=row, by="Ann", source="rater") for row, value in enumerate(("A>B", "B>A", "A=B"))
    ]
    assert against_people(judge, people, metric=ScaledMetric("m"))["exact"] == 1


def test_both_bad_is_a_tie_for_weights_and_a_label_of_its_own():
    judge = [compared(value, row=row) for row, value in enumerate(("A>>B", "both_bad"))]
    people = [compared(value, row=row, by="Ann", source="rater") for row, value in enumerate(("A>>B", "A=B"))]
    found = against_people(judge, people, metric=ScaledMetric("m"))
    assert (found["exact"], found["kappa_weighted"], found["labels"]) == (0.5, 1, ["A>>B", "A=B", "both_bad"])


def test_each_two_judge_models_are_compared_with_each_other():
    found = judged(scores(), scores(by="glm"), scores(by="deepseek"))["judges"]
    assert [(one["judge"], one["against"], one["human"]) for one in found] == [
        ("deepseek", "glm", None), ("deepseek", "qwen", None), ("glm", "qwen", None),
    ]  # fmt: skip


def test_rules_are_compared_with_people_but_not_against_judges():
    found = judged(scores(), scores(by="rules", source="rules"), raters())["judges"]
    assert [(one["judge"], one["against"]) for one in found] == [("qwen", "people"), ("rules", "people")]


def test_an_overridden_value_is_not_the_judge_s():
    mine = [said(9, "override", "override"), said(3, main=False), person(9)]
    found = against_people(mine)
    assert (found["judge"], found["bias"]) == ("qwen", -6)


def test_a_judge_s_repeats_are_held_against_each_other():
    repeats = [
        said(value, row=row, repeat=n) for row in range(3) for n, value in enumerate((5 + row, 5 + row, 6), 1)
    ]
    (found,) = judged(repeats)["repeats"]
    assert (found["judge"], found["items"]) == ("qwen", 3)
    assert found["exact"] == pytest.approx((1 + 3 + 1) / 9)
    assert judged(scores())["repeats"] == []


def in_both_orders(first, swapped, row=1):
    return [
        said(first, row=row, order="first", main=False),
        said(swapped, row=row, order="swapped", main=False),
        said(3, row=row, order="both"),
    ]


def test_flips_and_the_first_side_are_counted_over_both_orders():
    verdicts = [in_both_orders(1, 5), in_both_orders(5, 5, row=2), in_both_orders(3, 5, row=3)]
    (found,) = judged(*verdicts, metric=ScaledMetric("m", 1, 5, compares=True))["order"]
    assert (found["pairs"], found["flips"], found["share"]) == (3, 1, pytest.approx(1 / 3))
    # The reference comes first in the first order, the answer in the swapped one: 1 means the reference is better.
    side = found["first_side"]
    assert (side["first"], side["second"], side["ties"]) == (4, 1, 1)
    assert side["share"] == 4.5 / 6


def test_both_orders_of_imported_comparisons_are_found_by_what_came_first():
    seen = [compared("A>B", shown_first=1), compared("A>B", "beta", "alpha", shown_first=1)]
    (found,) = judged(seen, metric=ScaledMetric("m"))["order"]
    assert (found["pairs"], found["flips"], found["first_side"]["first"]) == (1, 1, 2)


def test_both_orders_that_came_in_as_two_repeats_are_one_pair():
    seen = [compared("A>B", shown_first=1, row=row, repeat=1) for row in (1, 2)] + [
        compared(value, shown_first=2, row=row, repeat=2) for row, value in ((1, "B>A"), (2, "A>B"))
    ]
    (found,) = judged(seen, metric=ScaledMetric("m"))["order"]
    assert (found["pairs"], found["flips"]) == (2, 1)


def test_equal_judgements_in_another_order_give_equal_documents():
    verdicts = [*scores(), *scores(by="glm"), *raters()]
    shuffled = [verdicts[place] for place in np.random.default_rng(0).permutation(len(verdicts))]
    assert json.dumps(judged(verdicts)) == json.dumps(judged(shuffled))


def test_everything_is_strict_json():
    verdicts = [*scores(), *raters(), *(said(sign, row=100 + n) for n, sign in enumerate("?!-0"))]
    for given in (verdicts, [], [person(5)]):
        assert "NaN" not in json.dumps(judged(given))


def test_a_judge_that_favours_one_candidate_is_kinder_to_it_than_people_are():
    rng = np.random.default_rng(3)
    verdicts = []
    for row in range(40):
        for name in ("alpha", "beta"):
            value = int(rng.integers(3, 8))
            verdicts.append(person(value, candidate=name, row=row))
            kinder = 2 if name == "alpha" else 0
            verdicts.append(said(value + kinder + int(rng.integers(0, 2)), candidate=name, row=row))
    (one,) = judged(verdicts)["judges"]
    alpha, beta = one["by_candidate"]
    assert (alpha["candidate"], alpha["items"]) == ("alpha", 40)
    assert alpha["ci_low"] > 1.5 > 0 > beta["ci_high"]
    assert alpha["difference"] == pytest.approx(alpha["bias"] - beta["bias"])


def test_labels_beside_numbers_are_compared_as_labels():
    found = against_people([said("good"), said(7, row=2)], [person("good"), person(7, row=2)])
    assert (found["exact"], found["labels"], found["confusion"]) == (1, ["good"], [[1]])


@pytest.mark.parametrize("values", [(True, False), ("fine", "wrong")])
def test_the_judge_is_held_against_others_where_it_gave_a_verdict(values):
    yes, no = values
    people = [
        person(value, name, row=row) for row in (1, 2, 3) for name, value in (("Ann", yes), ("Bob", no))
    ]
    judge = [said(yes, row=1), said(no, row=2), said("?", row=3)]
    verdicts = under([*judge, *people], ScaledMetric("m"))
    others = human_ceiling(verdicts, verdicts.authors["qwen"])["others"]
    assert (others["items"], others["exact"], others["judge_exact"]) == (3, 0.0, 0.5)
