"""Published judges beside people: LLMBar's verdicts (princeton-nlp/LLMBar, MIT) and UniEval's scores of SFHOT
(maszhongming/UniEval, MIT). Skipped without the files."""

import json

import numpy as np
import pytest

from judging.core.licensing import Sizes, draw_parts
from judging.core.statistics.agreement import spearman
from judging.core.statistics.carried_over import OpenedTest, carry_over
from judging.core.statistics.licence import licence_figures, use_allowed
from judging.core.statistics.means import estimate_difference
from judging.core.statistics.uses import Thresholds
from tests.real_data import real_data

DIRECTIONS = {"1": 1.0, "2": -1.0}


def llmbar():
    """{(judge, method): (item keys, directions of both orders together, people's directions)}."""
    judges = {}
    for line in real_data("llmbar_verdicts_dev.jsonl").read_text().splitlines():
        verdict = json.loads(line)
        settled = verdict["winner_ab"] == verdict["winner_ba"]
        said = DIRECTIONS.get(str(verdict["winner_ab"]), 0.0) if settled else 0.0
        keys, judge, people = judges.setdefault((verdict["judge"], verdict["method"]), ([], [], []))
        keys.append(f"{verdict['subset']} {verdict['item']}")
        judge.append(said)
        people.append(DIRECTIONS[str(verdict["label"])])
    return judges


def licences(seed=1):
    """What each judge may be used for by a test of 60 items drawn from the labels that are there."""
    uses = {}
    for name, (keys, judge, people) in llmbar().items():
        parts = draw_parts(keys, (), Sizes(20, 40, 60), seed)
        test = np.array([parts.get(key) == "test" for key in keys])
        figures = licence_figures(
            np.array(judge)[test], np.array(people)[test], np.arange(int(test.sum())), "ordered"
        )
        uses[name] = (figures.items, use_allowed(figures, Thresholds()), figures.kappa, figures.kappa_low)
    return uses


def test_every_published_judge_gets_what_its_kappa_allows():
    uses = licences()
    assert len(uses) == 12
    assert {items for items, *_rest in uses.values()} == {60}
    for _items, use, kappa, low in uses.values():
        assert low < kappa
        assert use == ("gates" if low >= 0.7 else "trends" if low >= 0.5 else "exploring")


def sfhot(quality):
    ratings = [json.loads(line) for line in real_data("sfhot_ratings.jsonl").read_text().splitlines()]
    people = np.array([(rating["human"][quality] - 1) / 5 for rating in ratings])
    return people, np.array([rating["judge"][quality] for rating in ratings])


@pytest.mark.parametrize("quality", ["informativeness", "naturalness"])
def test_published_scores_are_corrected_towards_people(quality):
    people, judge = sfhot(quality)
    order = np.random.default_rng(2).permutation(people.size)
    tested, run = order[:240], order[240:]
    test = OpenedTest(judge[tested], people[tested], np.arange(240), passes=False)
    carried = carry_over(judge[run], np.arange(run.size), test, (0, 1))
    assert 0 < spearman(people, judge) < 1
    assert estimate_difference(judge - people, width=1.0).low is not None
    assert abs(carried.value - people[run].mean()) < abs(judge[run].mean() - people[run].mean())
    assert carried.low <= people[run].mean() <= carried.high
