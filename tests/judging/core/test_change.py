"""Why a number changed: shares sum to the difference, and each cause is found alone and in pairs."""

from __future__ import annotations

import itertools
import math
import random

import msgspec
import pytest

from judging.core.change import SETTINGS, Change, Item, Side, change_between, changed_settings, rereads
from judging.core.metric_definition import JudgeModel, MetricDefinition

NOTHING: frozenset[str] = frozenset()
METRIC = MetricDefinition(
    name="m", judges=(JudgeModel(name="j", template="Score {{ response.content }}", model="one"),)
)


def side(
    value: float | None, *, content: str = "q", answers: str = "a", override: str = "", prompts: str = "p"
) -> Side:
    return Side(content, answers, value, override, prompts)


def item(key: int, before: Side | None, after: Side | None, reread: float | None = None) -> Item:
    return Item(key, before, after, reread)


def causes(change: Change) -> dict[str, float]:
    return {share.cause: share.difference for share in change.shares}


def test_a_judge_that_says_otherwise_without_a_reason_is_noise() -> None:
    change = change_between([item(1, side(4), side(5)), item(2, side(6), side(6))], NOTHING)
    assert (change.before, change.after, change.difference) == (5, 5.5, 0.5)
    assert causes(change) == {"noise": 0.5}


def test_an_item_of_one_run_only_is_a_row() -> None:
    change = change_between([item(1, side(4), side(4)), item(2, None, side(10))], NOTHING)
    assert causes(change) == {"rows": 3.0, "noise": 0.0}


def test_runs_without_a_common_item_differ_by_their_rows() -> None:
    change = change_between([item(1, side(4), None), item(2, None, side(10))], NOTHING)
    assert causes(change) == {"rows": 6.0}


@pytest.mark.parametrize(
    ("before", "after", "settings", "cause"),
    [
        (side(4, content="old"), side(6, content="new"), NOTHING, "rows"),
        (side(4, answers="old"), side(6, answers="new"), NOTHING, "answers"),
        (side(4), side(6), frozenset({"judge"}), "judge"),
        (side(4), side(6), frozenset({"prompt"}), "prompt"),
        (side(4), side(6), frozenset({"scripts"}), "scripts"),
        (side(4), side(6), frozenset({"parser"}), "parser"),
        (side(4), side(6, override="6"), NOTHING, "overrides"),
        (side(None), side(6), NOTHING, "missing"),
        (side(4), side(6), NOTHING, "noise"),
    ],
)
def test_each_cause_alone_has_the_whole_difference(
    before: Side, after: Side, settings: frozenset[str], cause: str
) -> None:
    change = change_between([item(1, before, after), item(2, side(4), side(4))], settings)
    assert change.difference is not None
    assert causes(change)[cause] == pytest.approx(change.difference)


def test_the_first_of_two_causes_has_the_item() -> None:
    change = change_between([item(1, side(4, answers="x"), side(6, answers="y", override="6"))], NOTHING)
    assert causes(change) == {"answers": 2.0}


def test_a_judge_and_a_prompt_that_changed_together_share_one_name() -> None:
    both = frozenset({"judge", "prompt"})
    change = change_between([item(1, side(4, prompts="x"), side(6, prompts="y"))], both)
    assert causes(change) == {"judge+prompt": 2.0}


def test_the_same_prompt_sent_rules_the_prompt_out() -> None:
    change = change_between([item(1, side(4), side(6))], frozenset({"judge", "prompt"}))
    assert causes(change) == {"judge": 2.0}


def test_replies_read_again_tell_the_parser_from_the_prompt() -> None:
    both = frozenset({"prompt", "parser"})
    change = change_between([item(1, side(4), side(8), reread=5), item(2, side(4), side(4), reread=4)], both)
    assert causes(change) == {
        "prompt": pytest.approx(1.5),
        "parser": pytest.approx(0.5),
    }


def test_shares_sum_to_the_difference_whatever_changed() -> None:
    draw = random.Random(7)
    for settings in (NOTHING, frozenset({"judge"}), frozenset({"prompt", "parser"})):
        items = [
            item(
                key,
                None if draw.random() < 0.2 else side(_score(draw), override=draw.choice(["", "7"])),
                None if draw.random() < 0.2 else side(_score(draw), answers=draw.choice("ab")),
                draw.choice([None, 3.0]),
            )
            for key in range(200)
        ]
        change = change_between(items, settings)
        assert change.difference == pytest.approx(
            math.fsum(share.difference for share in change.shares), abs=1e-12
        )


def _score(draw: random.Random) -> float | None:
    return None if draw.random() < 0.1 else draw.uniform(1, 10)


def test_the_interval_is_the_paired_one_where_all_items_are_shared() -> None:
    change = change_between(
        [item(key, side(4), side(4 + gain)) for key, gain in enumerate((0, 1, 2))], NOTHING
    )
    # differences 0, 1, 2: mean 1, se 1/sqrt(3), t(2) = 4.3027
    assert change.ci_low == pytest.approx(1 - 4.3027 / math.sqrt(3), abs=1e-4)


def test_a_run_without_a_score_has_no_difference() -> None:
    change = change_between([item(1, side(None), side(3))], NOTHING)
    assert (change.before, change.difference, change.shares) == (None, None, ())


@pytest.mark.parametrize("pair", list(itertools.combinations(SETTINGS, 2)), ids="+".join)
def test_settings_that_differ_are_named(pair: tuple[str, str]) -> None:
    changed = METRIC
    for name in pair:
        changed = _with(changed, name)
    assert changed_settings(METRIC, changed) == set(pair)


def _with(metric: MetricDefinition, name: str) -> MetricDefinition:
    (judge,) = metric.judges
    if name == "scripts":
        return msgspec.structs.replace(metric, preprocess="def preprocess(data, resp): return 1")
    change = {
        "judge": {"model": "two"},
        "prompt": {"template": "other"},
        "parser": {"parse": {"regex": "(1)"}},
    }[name]
    return msgspec.structs.replace(metric, judges=(msgspec.structs.replace(judge, **change),))


def test_replies_are_read_again_only_where_asking_and_reading_both_changed() -> None:
    prompt = _with(METRIC, "prompt")
    assert not rereads(METRIC, prompt)
    assert rereads(METRIC, _with(prompt, "parser"))
    assert not rereads(METRIC, _with(_with(prompt, "parser"), "scripts"))
