"""The corrected score against ppi_py and against its formulas computed again, its coverage, and when it is refused."""

import math

import numpy as np
import pytest
from scipy import stats

from judging.core.statistics.correction import (
    Labelled,
    correct,
    mean_of_terms,
    prediction_powered,
    terms_of,
    why_refused,
)
from judging.core.statistics.intervals import mean_interval, wilson
from tests.judging.core.statistics.cast import document, person, said
from tools.bench.coverage import corrected_coverage, corrections

PEOPLE = np.array([7, 4, 9, 6, 8, 3, 5, 7, 2, 8, 6, 9.0])
JUDGE = np.array([8, 5, 9, 6, 7, 4, 6, 8, 4, 9, 6, 9.0])
REST = np.array([5, 6, 8, 9, 4, 7, 6, 8, 9, 3, 6, 7, 5, 8, 7, 6, 9, 4, 8, 7, 6, 5, 7, 8.0])
ENDS = (1.0, 10.0)


def labelled(people=PEOPLE, judge=JUDGE, rest=REST, chances=1 / 3, units=None, **more):
    """Labels of the first answers, and the judge's scores of all."""
    scores = np.concatenate([judge, rest])
    known = np.concatenate([people, np.full(rest.size, np.nan)])
    rows = np.arange(scores.size)
    drawn_with = np.broadcast_to(chances, scores.shape).astype(float)
    return Labelled(scores, known, drawn_with, rows if units is None else np.array(units), rows, **more)


def scored(chances, judged=range(1, 41), rated=range(1, 21), **more):
    """Scores by a judge, and by a person on the `rated` rows, drawn with the probabilities `chances`."""
    yield from (said(row % 5 + 1, row=row, **more) for row in judged)
    for row, chance in zip(rated, np.broadcast_to(chances, len(rated)).tolist(), strict=True):
        yield person(row % 5 + 2 - row % 2, row=row, drawn_with=chance)


def corrected(chances=0.5, **options):
    (found,) = document(scored(chances, **options))["corrected"]
    return found


def test_value_and_error_are_those_of_ppi_py():
    # ppi_py 0.2.3: ppi_mean_pointestimate and ppi_mean_ci(PEOPLE, JUDGE, REST, alpha=0.05)
    found = correct(labelled(), ENDS)
    assert found.value == pytest.approx(6.02570368)
    assert found.value - 1.959963985 * found.se == pytest.approx(5.27420954)
    assert found.value + 1.959963985 * found.se == pytest.approx(6.77719782)


def test_the_interval_is_that_of_a_mean_over_the_labelled_rows():
    found = correct(labelled(), ENDS)
    assert (found.low, found.high) == mean_interval(found.value, found.se, 12, ENDS)


def test_lambda_divides_by_n_and_by_all_less_one():
    everything = np.concatenate([JUDGE, REST])
    together = np.sum((PEOPLE - PEOPLE.mean()) * (JUDGE - JUDGE.mean())) / 12
    spread = np.sum((everything - everything.mean()) ** 2) / 35
    assert correct(labelled(), ENDS).weight == pytest.approx(together / ((1 + 12 / 24) * spread), rel=1e-12)


def test_a_judge_that_says_nothing_about_people_is_left_out():
    found = correct(labelled(judge=-JUDGE, rest=-REST), None)
    assert (found.weight, found.value) == (0, pytest.approx(PEOPLE.mean()))


def test_a_judge_that_never_varies_leaves_people_s_mean():
    found = correct(labelled(judge=np.full(12, 5.0), rest=np.full(24, 5.0)), ENDS)
    assert (found.weight, found.value) == (0, pytest.approx(PEOPLE.mean()))


def test_answers_of_one_row_count_together():
    units = np.concatenate([np.repeat(range(6), 2), np.repeat(range(6, 18), 2)])
    found = prediction_powered(labelled(units=units))
    apart = PEOPLE - found.weight * JUDGE
    inside = (apart - apart.mean()).reshape(6, 2).sum(axis=1)
    outside = (REST - REST.mean()).reshape(12, 2).sum(axis=1)
    expected = np.sum(inside**2) / 12**2 + found.weight**2 * np.sum(outside**2) / 24**2
    assert found.variance == pytest.approx(expected, rel=1e-12)
    assert found.value == pytest.approx(prediction_powered(labelled()).value)


def test_more_ratings_halve_the_interval():
    many = np.tile(REST, 100)
    useless = labelled(judge=-JUDGE, rest=-many)
    assert correct(useless, None).halve == 36  # three times as many more
    noisy = JUDGE + np.tile([3, -3], 6)
    assert correct(labelled(judge=noisy, rest=np.tile(noisy, 100)), None).halve > 36


def test_nothing_is_promised_where_all_ratings_would_not_halve_it():
    assert correct(labelled(), ENDS).halve is None
    assert correct(labelled(rest=REST[:0]), ENDS).halve is None


def test_strata_are_estimated_apart_and_weighted_by_their_answers():
    strata = np.array([0, 1] * 18)
    found = correct(labelled(strata=strata), ENDS)
    parts = [prediction_powered(labelled(PEOPLE[half::2], JUDGE[half::2], REST[half::2])) for half in (0, 1)]
    between = (parts[0].value - parts[1].value) ** 2 / 4 / 36
    assert found.value == pytest.approx(sum(part.value for part in parts) / 2)
    assert found.se**2 == pytest.approx(sum(part.variance for part in parts) / 4 + between)
    assert (found.low, found.high) == mean_interval(found.value, found.se, 12, ENDS)


def test_passes_by_strata_are_bounded_by_wilsons_ends():
    people = np.array([1, 1, 1, 1, 1, 0, 0, 1, 0, 0.0])
    judge = np.array([1, 1, 1, 1, 1, 1, 0, 0, 0, 0.0])
    rest = np.array([1.0] * 24 + [0.0] * 6)
    given = labelled(people, judge, rest, strata=np.concatenate([judge, rest]).astype(int), passes=True)
    found = correct(given, (0, 1))
    shares, rates, sizes = [10 / 40, 30 / 40], [1 / 4, 5 / 6], [4, 6]
    p, t = shares[0] * rates[0] + shares[1] * rates[1], stats.t.ppf(0.975, 8)
    ends = [wilson(rate, size, t) for rate, size in zip(rates, sizes, strict=True)]
    e = t**2 * sum(share * (rate - p) ** 2 for share, rate in zip(shares, rates, strict=True)) / 40
    down, up = (
        math.sqrt(sum((shares[h] * (rates[h] - ends[h][side])) ** 2 for h in (0, 1)) + e) for side in (0, 1)
    )
    assert (found.value, found.low, found.high) == pytest.approx((p, p - down, p + up), rel=1e-12)
    assert found.weight == 0


def test_probabilities_of_their_own_weigh_the_answers():
    chances = np.linspace(0.2, 0.9, 12)
    found = correct(labelled(chances=np.concatenate([chances, np.full(24, 0.3)])), ENDS)
    w = 1 / chances / np.sum(1 / chances)
    r = PEOPLE - found.weight * JUDGE
    value = found.weight * np.concatenate([JUDGE, REST]).mean() + np.sum(w * r)
    variance = 12 / 11 * np.sum(w**2 * (1 - chances) * (r - np.sum(w * r)) ** 2)
    variance += np.sum(w * (PEOPLE - np.sum(w * PEOPLE)) ** 2) / 36
    assert (found.value, found.se) == pytest.approx((value, math.sqrt(variance)), rel=1e-12)
    assert (found.low, found.high) == mean_interval(found.value, found.se, 1 / np.sum(w**2), ENDS)


@pytest.mark.parametrize(
    "given",
    [
        labelled(),
        labelled(strata=np.array([0, 1] * 18)),
        labelled(PEOPLE > 5, JUDGE > 6, REST > 6, strata=np.array([0, 1] * 18), passes=True),
        labelled(chances=np.linspace(0.2, 0.9, 36)),
    ],
)
def test_the_sums_of_all_answers_make_the_corrected_mean(given):
    assert mean_of_terms(terms_of(given).sum(axis=0)) == pytest.approx(correct(given, ENDS).value)


def test_a_stratum_without_a_label_in_a_draw_is_left_out_of_it():
    terms = terms_of(labelled(strata=np.array([0, 1] * 18)))
    alone = prediction_powered(labelled(PEOPLE[::2], JUDGE[::2], REST[::2]))
    assert mean_of_terms(terms[::2].sum(axis=0)) == pytest.approx(alone.value)
    assert np.isnan(mean_of_terms(terms[12:].sum(axis=0)))


@pytest.mark.parametrize(
    ("design", "population"),
    [
        ("even", "0.9"),
        ("even", "skewed"),
        ("strata", "0.95"),
        ("strata", "apart"),
        ("own", "0.6"),
        ("own", "skewed"),
    ],
)
def test_intervals_cover_the_truth_as_often_as_they_say(design, population):
    """Some cells; `python -m tools.bench.coverage` draws from all of them, with 30, 60 and 120 ratings."""
    assert (0.93 if design == "even" else 0.91) <= corrected_coverage(design, population, 60) <= 0.998


def test_intervals_of_many_labels_are_little_wider_than_normal_ones():
    results, _truth = corrections("even", "skewed", 120)
    widths = [(result.high - result.low) / (2 * 1.959964 * result.se) for result in results]
    assert np.mean(widths) <= 1.2


def test_labels_of_items_that_were_not_drawn_at_random_are_refused():
    found = corrected([np.nan] + [0.5] * 19)
    assert [found[key] for key in ("refused", "value", "ci_low", "lambda", "halve")] == [
        "not_random",
        *[None] * 4,
    ]
    assert (found["people_mean"], found["judge_mean"]) == (3.5, 3.0)


@pytest.mark.parametrize(("rows", "refused"), [(19, "too_few"), (20, None)])
def test_fewer_than_twenty_labelled_rows_are_refused(rows, refused):
    assert corrected(rated=range(1, rows + 1))["refused"] == refused


def test_answers_of_the_same_rows_are_not_more_rows():
    given = labelled(np.tile(PEOPLE, 2), np.tile(JUDGE, 2))
    twice = Labelled(given.judge, given.people, given.drawn_with, given.units, given.rows % 12)
    assert (why_refused(given), why_refused(twice)) == (None, "too_few")


def test_a_stratum_without_a_label_is_refused():
    given = labelled(np.tile(PEOPLE, 2), np.tile(JUDGE, 2), strata=np.array([0] * 24 + [1] * 24))
    assert why_refused(given) == "unrated_stratum"


def test_labelled_and_judged_are_counted_apart():
    found = corrected()
    assert (found["labelled"], found["judged"], found["refused"], found["source"]) == (20, 20, None, "own")
    assert found["ci_low"] <= found["value"] <= found["ci_high"]


def test_the_draw_decides_the_estimator():
    assert corrected()["draw"] == "even"
    assert corrected([0.5] * 10 + [0.25] * 10)["draw"] == "own"
    by_half = [said(row % 5 + 1, row=row, stratum=str(row % 2)) for row in range(1, 41)]
    labels = [verdict for verdict in scored(0.5) if verdict.source == "rater"]
    (found,) = document([*by_half, *labels])["corrected"]
    assert found["draw"] == "strata"


def test_without_people_there_is_nothing_to_correct_by():
    assert document(scored((), rated=()))["corrected"] == []
