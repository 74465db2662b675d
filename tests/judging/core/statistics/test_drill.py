"""The figures and flags of a fire drill."""

import numpy as np
import pytest

from judging.core.statistics.drill import Drilled, DrilledRow, drill_document
from judging.core.statistics.means import estimate_difference, sign_test_higher
from tools.bench.drill import CLEAN, CLEAN_NAME, CLEAN_NOISES, drill, shares


def rows(changes, first=5.0, language="en", name="truncated", second=5.0):
    return [DrilledRow(language, first, second, {name: second + change}, 1, 10) for change in changes]


def document(each, measure="value", orders=()):
    return drill_document(Drilled(each, measure, orders))


def test_the_interval_is_that_of_differences_of_pairs():
    entry = document(rows([-2] * 15 + [1] * 3 + [0] * 12))["defects"]["truncated"]
    assert (entry["items"], entry["lower"], entry["higher"], entry["equal"]) == (30, 15, 3, 12)
    expected = estimate_difference(np.array([1.0] * 15 + [-1.0] * 3 + [0.0] * 12), width=1)
    assert (entry["ci_low"], entry["ci_high"]) == pytest.approx((expected.low, expected.high))
    assert (entry["noticed"], entry["share"]) == (15, 0.5)
    assert (entry["mean_change"], entry["p"]) == (pytest.approx(-0.9), None)


def test_a_verdict_that_cannot_fall_or_rise_is_no_item():
    assert document(rows([0] * 5, first=1))["defects"]["truncated"]["items"] == 0
    assert document(rows([0] * 5, first=10, name="padded"))["defects"]["padded"]["items"] == 0
    assert document(rows([0] * 5, first=10))["defects"]["truncated"]["items"] == 5


def test_the_first_judgement_decides_and_the_second_is_compared_with():
    entry = document(rows([1] * 4, first=2, second=1))["defects"]["truncated"]
    assert (entry["items"], entry["higher"]) == (4, 4)


def test_a_row_without_a_verdict_is_no_item():
    missing = [DrilledRow("en", None, 5, {"truncated": 3}), DrilledRow("en", 5, 5, {"truncated": None})]
    assert document(missing)["defects"]["truncated"]["items"] == 0


def test_a_defect_that_is_not_noticed_is_flagged_from_twenty_items_on():
    flagged = [document(rows([0] * items))["defects"]["truncated"]["flagged"] for items in (19, 20)]
    assert flagged == [None, True]
    assert document(rows([-1] * 30))["defects"]["truncated"]["flagged"] is False


def test_one_language_is_enough_for_a_flag():
    entry = document(rows([-1] * 60) + rows([0] * 25, language="zh"))["defects"]["truncated"]
    assert entry["flagged"] is True
    assert [entry["languages"][name]["flagged"] for name in ("en", "zh")] == [False, True]
    assert entry["languages"]["zh"]["items"] == 25


def test_a_tempting_defect_is_flagged_by_the_exact_one_sided_test():
    entry = document(rows([1] * 12 + [-1], name="padded"))["defects"]["padded"]
    assert entry["p"] == pytest.approx(14 / 2**13)
    assert (entry["noticed"], entry["flagged"]) == (1, True)
    assert document(rows([-1] * 30, name="padded"))["flagged"] == []


def test_the_tests_are_corrected_together():
    for higher, flagged in ((8, False), (9, True)):  # 4 tests at 0.01 need p < 0.0025
        assert (document(rows([1] * higher, name="verdict"))["flagged"] == ["verdict"]) is flagged


def test_without_a_difference_the_one_sided_p_is_one():
    assert sign_test_higher(0, 0) == 1
    assert sign_test_higher(3, 1) == pytest.approx(5 / 16)


def test_a_side_that_wins_most_flips_is_flagged():
    found = document(rows([-1] * 30), "comparison", [1] * 20 + [-1] * 2 + [0] * 30)
    order = found["order"]
    assert (order["pairs"], order["flips"], order["first"], order["flagged"]) == (52, 22, 20, True)
    assert order["share"] == pytest.approx(20 / 22)
    assert "order" in found["flagged"]


def test_only_comparisons_have_an_order():
    assert document(rows([-1] * 30))["order"] is None


def test_every_pair_of_a_comparison_is_an_item():
    met = [DrilledRow("en", 0, 0, {"truncated": -1.0})] * 30 + [DrilledRow("en", None, 1, {"truncated": 1.0})]
    entry = document(met, "comparison")["defects"]["truncated"]
    assert (entry["items"], entry["lower"], entry["higher"]) == (31, 30, 1)


def test_judgements_that_do_not_agree_with_themselves_are_noisy():
    draws = np.random.default_rng(1)
    noisy = [DrilledRow("en", *map(float, draws.integers(1, 11, 2)), {}, 1, 10) for _row in range(100)]
    found = document(noisy)
    assert found["repeats"]["items"] == 100
    assert found["repeats"]["ci_high"] < 2 / 3
    assert found["flagged"] == ["noisy"]


def test_a_verdict_that_is_always_the_same_is_constant():
    found = document(rows([0] * 40))
    assert (found["constant"]["share"], found["constant"]["flagged"]) == (1, True)
    assert found["repeats"]["exact"] == 1
    assert found["repeats"]["alpha"] is None


def test_a_drill_without_a_verdict_has_a_document():
    found = document([])
    assert found["flagged"] == []
    assert (found["constant"]["share"], found["defects"]["empty"]["share"]) == (None, None)


def test_scripted_judges_are_found_by_their_own_flag():
    for name, noise, share in shares(10, noisiest=True):
        if name == CLEAN_NAME:
            assert share <= 10, noise
        else:
            assert share == 100, (name, noise)


def test_a_clean_judge_notices_everything():
    found = drill(CLEAN, CLEAN_NOISES[1], 1)
    assert found["flagged"] == []
    assert found["defects"]["numbers"]["items"] >= 80
