"""The tests of a watch: against every permutation of tiny cases, and the promised shares of alarms."""

from itertools import combinations, product

import numpy as np
import pytest

from judging.core.statistics.watch import (
    STEPS,
    Sittings,
    answered_enough,
    changed_p,
    check_result,
    earlier_checks,
    level_of,
    mean_shift,
    nearness_of,
    share_of,
    shift_ps,
    sight,
    turned_scores,
)
from tools.bench.watching import Scripted, alarms, alarms_of_scores

NAN = float("nan")


def every_recent(row):
    """Each way to say which of a sentinel's verdicts are the recent ones: (their values, all values)."""
    before, now = ([value for value in part if value == value] for part in row)
    values = [*now, *before]
    return [
        ([values[place] for place in chosen], values) for chosen in combinations(range(len(values)), len(now))
    ]


def p_by_enumeration(baseline, recent, part):
    """P(sum of the parts ≥ the observed), over all permutations within sentinels."""
    sums = [
        sum(part(now, values) for now, values in arrangement)
        for arrangement in product(*map(every_recent, zip(baseline, recent, strict=True)))
    ]
    return np.mean(np.array(sums) >= sums[0] - 1e-9)


TINY = [
    ([[0, 0, 1], [0, 0, 0], [1, 0, 0]], [[1, 1], [1, 0], [0, 1]]),
    ([[0, 0, 0], [0, 0, 0], [0, 0, 0]], [[1], [1], [0]]),
    ([[0, 1, NAN], [1, 1, 1], [0, 0, 0]], [[0, 0], [NAN, 1], [1, 1]]),
]


@pytest.mark.parametrize(("baseline", "recent"), TINY)
def test_the_exact_p_is_that_of_every_permutation(baseline, recent):
    def part(now, values):
        return turned_scores(len(values), len(now))[1][int(sum(values)), int(sum(now))] / STEPS

    p = changed_p(np.array(baseline, float), np.array(recent, float))
    assert p == pytest.approx(p_by_enumeration(baseline, recent, part), rel=1e-9)


def test_more_changed_verdicts_never_score_less():
    _weights, scores = turned_scores(10, 5)
    assert all(scores[changed, changed] >= scores[changed, 0] for changed in range(1, 6))
    assert (np.diff(scores[5])[2:] >= 0).all()


def test_the_drawn_p_of_a_shift_is_near_that_of_every_permutation():
    baseline, recent = [[3, 4, 3], [6, 7, 7], [2, 2, 3]], [[5, 4], [8, 7], [3, 3]]
    exact = p_by_enumeration(baseline, recent, lambda now, values: sum(now) - len(now) * np.mean(values))
    drawn = [shift_ps(np.array(baseline, float), np.array(recent, float), 0.001, seed) for seed in range(40)]
    up, down = np.mean(drawn, axis=0)
    assert up == pytest.approx(exact, abs=0.004)
    assert down > 0.5


def test_drawing_stops_early_where_nothing_shifts_and_is_seeded():
    rng = np.random.default_rng(1)
    baseline, recent = rng.normal(5, 1, (30, 5)), rng.normal(5, 1, (30, 1))
    first, again = (shift_ps(baseline, recent, level=1e-5, seed=7) for _ in range(2))
    assert first == again
    assert min(first) > 1e-5


def test_numbers_without_a_partner_are_left_out():
    nothing = np.full((2, 1), NAN)
    assert shift_ps(np.ones((2, 5)), nothing, 0.01) == (1.0, 1.0)
    assert mean_shift(np.ones((2, 5)), nothing) is None
    assert mean_shift(np.array([[1.0, NAN], [2, 2]]), np.array([[3.0], [NAN]])) == 2


def test_the_levels_of_all_checks_add_up_to_one_in_twenty():
    assert sum(level_of(check) for check in range(1, 100_001)) == pytest.approx(0.05, abs=1e-5)


def sittings(changed, values=None):
    return Sittings(np.array(changed, float), None if values is None else np.array(values, float))


def test_the_tests_of_a_check_share_its_level():
    same = sittings(np.zeros((30, 5)))
    first = check_result(same, same.last(1), 1)
    assert [(test.checks, test.level) for test in first.tests] == [(1, level_of(1))]
    third = check_result(same, same.last(3), 3)
    assert [(test.checks, test.level) for test in third.tests] == [(1, level_of(3) / 2), (3, level_of(3) / 2)]
    scores = sittings(np.zeros((30, 5)), np.ones((30, 5)))
    of_scores = check_result(scores, scores, 5).tests
    assert [test.what for test in of_scores] == ["changed", "up", "down"] * 2
    assert {test.level for test in of_scores} == {level_of(5) / 6}


def test_earlier_checks_are_a_further_baseline_of_the_last_five():
    rng = np.random.default_rng(2)
    changed = (rng.random((40, 55)) < 0.2).astype(float)
    baseline, earlier, last = np.hsplit(changed, [5, 50])
    result = check_result(sittings(baseline), sittings(last), 60, earlier=sittings(earlier))
    assert [(test.checks, test.earlier) for test in result.tests] == [(5, 45), (1, 0), (5, 0)]
    assert {test.level for test in result.tests} == {level_of(60) / 3}
    assert result.tests[0].p == changed_p(changed[:, :50], last)
    assert [earlier_checks(number) for number in (5, 6, 50, 60)] == [0, 1, 45, 45]


def test_a_judge_that_says_the_same_is_far_from_an_alarm():
    same = sittings(np.zeros((60, 5)))
    result = check_result(same, same, 5)
    assert (result.alarm, result.nearness, result.share.changed) == (False, 0, 0)


def test_turned_verdicts_raise_the_alarm_at_once_where_the_judge_is_steady():
    turned = np.zeros((60, 1))
    turned[:9] = 1
    result = check_result(sittings(np.zeros((60, 5))), sittings(turned), 1)
    assert (result.alarm, result.nearness, result.share.rate) == (True, 1, 0.15)


def test_a_shift_is_found_where_the_licence_differs_anyway():
    rng = np.random.default_rng(3)
    before, now = rng.normal(5, 0.5, (40, 5)), rng.normal(5.8, 0.5, (40, 1))
    changed = sittings(np.ones((40, 5)), before)
    result = check_result(changed, sittings(np.ones((40, 1)), now), 1)
    assert [test.what for test in result.tests if test.alarm] == ["up"]
    assert result.shift == pytest.approx(0.8, abs=0.3)


def test_how_near_an_alarm_is():
    assert nearness_of(1, 0.001) == 0
    assert nearness_of(0.001, 0.001) == 1
    assert nearness_of(1e-9, 0.001) == 1
    assert 0.3 < nearness_of(0.1, 0.001) < 0.4


def test_a_check_counts_from_nine_of_ten_answers_on():
    answers = np.zeros((30, 1))
    answers[:3] = NAN
    assert answered_enough(sittings(answers))
    answers[:4] = NAN
    assert not answered_enough(sittings(answers))


def test_the_share_is_of_verdicts_that_there_are():
    share = share_of(np.array([[1.0], [0], [NAN], [0], [0]]))
    assert (share.changed, share.judged, share.rate) == (1, 4, 0.25)


def test_what_a_watch_sees():
    steady = sight(sittings(np.zeros((60, 5))), checks=0, histories=50)
    assert (steady.sentinels, steady.by_itself, steady.turned) == (60, 0, 9)
    assert 0.9 < steady.sensitivity < 1  # a simulation cannot show that nothing is missed
    coin = np.random.default_rng(1).random((30, 5)) < 0.4
    assert sight(sittings(coin), checks=40, turned=2, histories=50).sensitivity < 0.5


def test_an_unchanged_judge_raises_few_alarms():
    assert alarms(Scripted(0.1), last=30, histories=40) <= 0.1
    assert alarms_of_scores(0.5, last=8, histories=10) <= 0.1


@pytest.mark.parametrize("self_change", [0.02, 0.1])
@pytest.mark.parametrize("since", [1, 11, 41])
def test_turned_verdicts_are_found_within_five_checks(self_change, since):
    judge = Scripted(self_change, since=since)
    assert alarms(judge, since + 4, since, histories=40) >= 0.9


@pytest.mark.parametrize("how", ["around", "coin"])
def test_turned_verdicts_are_found_in_a_judge_that_often_changes_by_itself(how):
    assert alarms(Scripted(0.2, how, since=41), 45, 41, histories=40) >= 0.8


def test_a_shift_of_scores_is_found_within_five_checks():
    assert alarms_of_scores(1.0, 15, 11, 11, histories=10) >= 0.9
