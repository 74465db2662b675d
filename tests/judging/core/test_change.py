"""Attribution of a changed figure: shares sum to the difference, and each cause is found, alone and in pairs."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace

import msgspec
import pytest

from judging.core.change import (
    SETTINGS,
    MeanChange,
    SharedItem,
    Side,
    change_between,
    changed_settings,
    readings,
)
from judging.core.metric_definition import JudgeModel, MetricDefinition, Script
from tests.make import with_scripts

NOTHING: frozenset[str] = frozenset()
METRIC = MetricDefinition(
    name="m", judges=(JudgeModel(name="j", template="Score {{ response.content }}", model="one"),)
)


def side(
    value: float | None,
    *,
    content: str = "q",
    answers: str = "a",
    override: str = "",
    own: float | None = None,
    prompts: str = "p",
) -> Side:
    """`own` is the judge's value if a reviewer overrode it."""
    return Side(content, answers, value, own if override else value, override, prompts)


def item(
    key: int | str,
    before: Side | None,
    after: Side | None,
    settings: frozenset[str] = NOTHING,
    **read: float | None,
) -> SharedItem:
    return SharedItem(key, before, after, settings, read)


def causes(change: MeanChange) -> dict[str, float]:
    return {share.cause: share.difference for share in change.shares}


def test_a_judge_that_says_otherwise_without_a_reason_is_noise() -> None:
    change = change_between([item(1, side(4), side(5)), item(2, side(6), side(6))])
    assert (change.before, change.after, change.difference) == (5, 5.5, 0.5)
    assert causes(change) == {"noise": 0.5}


def test_an_item_of_one_run_only_is_a_row() -> None:
    change = change_between([item(1, side(4), side(4)), item(2, None, side(10))])
    assert causes(change) == {"rows": 3.0, "noise": 0.0}


def test_runs_without_a_common_item_differ_by_their_rows() -> None:
    change = change_between([item(1, side(4), None), item(2, None, side(10))])
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
        (side(4), side(6, override="6", own=4), NOTHING, "overrides"),
        (side(None), side(6), NOTHING, "missing"),
        (side(4), side(6), NOTHING, "noise"),
    ],
)
def test_each_cause_alone_has_the_whole_difference(
    before: Side, after: Side, settings: frozenset[str], cause: str
) -> None:
    change = change_between([item(1, before, after, settings), item(2, side(4), side(4), settings)])
    assert change.difference is not None
    assert causes(change)[cause] == pytest.approx(change.difference)


def test_the_first_of_two_causes_has_the_item() -> None:
    change = change_between([item(1, side(4, answers="x"), side(6, answers="y", override="6"))])
    assert causes(change) == {"answers": 2.0}


def test_a_judge_and_a_prompt_that_changed_together_share_one_name() -> None:
    both = frozenset({"judge", "prompt"})
    change = change_between([item(1, side(4, prompts="x"), side(6, prompts="y"), both)])
    assert causes(change) == {"judge+prompt": 2.0}


def test_the_same_prompt_sent_rules_the_prompt_out() -> None:
    change = change_between([item(1, side(4), side(6), frozenset({"judge", "prompt"}))])
    assert causes(change) == {"judge": 2.0}


def test_what_the_later_parser_reads_in_the_earlier_replies_is_the_parser_s_share() -> None:
    change = change_between([item(1, side(4), side(9), frozenset({"judge", "parser"}), parser=6)])
    assert causes(change) == {"judge": 3.0, "parser": 2.0}


def test_an_item_is_of_the_causes_that_moved_it() -> None:
    settings = frozenset({"judge", "parser"})
    moved = [
        item(1, side(4), side(6), settings, parser=6),
        item(2, side(4), side(5), settings, parser=4),
        item(3, side(4), side(4), settings, parser=4),
    ]
    assert {one.cause: one.items for one in change_between(moved).shares} == {"judge": (2, 3), "parser": (1,)}


def test_parser_and_scripts_are_read_one_after_the_other() -> None:
    settings = frozenset({"prompt", "scripts", "parser"})
    change = change_between([item(1, side(4), side(9), settings, parser=5, scripts=7)])
    assert causes(change) == {"prompt": 2.0, "scripts": 2.0, "parser": 1.0}


def test_what_the_judge_says_otherwise_under_another_parser_is_noise() -> None:
    change = change_between([item(1, side(4), side(7), frozenset({"parser"}), parser=6)])
    assert causes(change) == {"parser": 2.0, "noise": 1.0}


def test_a_reading_that_scores_nothing_is_not_distinguished() -> None:
    change = change_between([item(1, side(4), side(7), frozenset({"judge", "parser"}), parser=None)])
    assert causes(change) == {"judge+parser": 3.0}


def test_an_override_is_distinguished_from_what_its_item_s_judge_says() -> None:
    change = change_between([item(1, side(4), side(9, override="9", own=6), frozenset({"judge"}))])
    assert causes(change) == {"judge": 2.0, "overrides": 3.0}


def test_shares_sum_to_the_difference_whatever_changed() -> None:
    draw = random.Random(7)
    for settings in (NOTHING, frozenset({"judge"}), frozenset({"prompt", "parser"})):
        items = [
            item(
                key,
                None if draw.random() < 0.2 else side(_score(draw), override="7", own=_score(draw)),
                None if draw.random() < 0.2 else side(_score(draw), answers=draw.choice("ab")),
                settings,
                **({"parser": _score(draw)} if "parser" in settings else {}),
            )
            for key in range(200)
        ]
        change = change_between(items)
        assert change.difference == pytest.approx(
            math.fsum(share.difference for share in change.shares), abs=1e-12
        )


def _score(draw: random.Random) -> float | None:
    return None if draw.random() < 0.1 else draw.uniform(1, 10)


def test_the_interval_is_the_paired_one_where_all_items_are_shared() -> None:
    change = change_between([item(key, side(4), side(4 + gain)) for key, gain in enumerate((0, 1, 2))])
    # differences 0, 1, 2: mean 1, se 1/sqrt(3), t(2) = 4.3027
    assert change.ci_low == pytest.approx(1 - 4.3027 / math.sqrt(3), abs=1e-4)


def test_a_shares_interval_comes_from_its_items_contributions_over_all_rows() -> None:
    gains = {"answers": (0, 1, 2), "prompt": (1, 1, 2)}
    items = [
        item(f"{cause}{key}", side(4), side(4 + gain, answers="b" if cause == "answers" else "a"), settings)
        for cause, settings in (("answers", NOTHING), ("prompt", frozenset({"prompt"})))
        for key, gain in enumerate(gains[cause])
    ]
    share = next(one for one in change_between(items).shares if one.cause == "answers")
    # contributions 0, 1, 2, 0, 0, 0 of six rows: sum 3/6, t(5) = 2.5706
    error = math.sqrt(6 / 5 * sum((one / 6 - 0.5 / 6) ** 2 for one in (0, 1, 2, 0, 0, 0)))
    assert (share.ci_low, share.ci_high) == pytest.approx(
        (0.5 - 2.5706 * error, 0.5 + 2.5706 * error), abs=1e-4
    )


def test_a_share_of_whole_clusters_counts_them_as_one_each() -> None:
    apart = [item(key, side(4), side(4 + key % 2)) for key in range(8)]
    together = [replace(one, cluster=place // 2) for place, one in enumerate(apart[::2] + apart[1::2])]
    (single,), (clustered,) = (change_between(items).shares for items in (apart, together))
    assert single.difference == clustered.difference
    assert clustered.ci_high > single.ci_high


def test_the_interval_of_a_share_stays_within_the_width_of_the_scale() -> None:
    change = change_between([item(key, side(1), side(5)) for key in range(4)], width=4)
    (share,) = change.shares
    assert (share.difference, share.ci_high) == (4, 4)
    assert -4 < share.ci_low < 4


def test_a_run_without_a_score_has_no_difference() -> None:
    change = change_between([item(1, side(None), side(3))])
    assert (change.before, change.difference, change.shares) == (None, None, ())


@pytest.mark.parametrize("pair", list(itertools.combinations(SETTINGS, 2)), ids="+".join)
def test_settings_that_differ_are_named(pair: tuple[str, str]) -> None:
    changed = METRIC
    for name in pair:
        changed = _with(changed, name)
    assert changed_settings(METRIC, changed) == set(pair)


@pytest.mark.parametrize(
    ("changes", "steps"),
    [
        ({"min_score": 0}, ["parser"]),
        ({"min_score": 0, "postprocess": "x"}, ["parser", "scripts"]),
        ({"preprocess": "x"}, []),
        ({"preprocess": "x", "postprocess": "y"}, []),
        ({"judges": ()}, []),
    ],
)
def test_replies_are_read_by_what_does_not_change_what_was_asked(
    changes: dict[str, object], steps: list[str]
) -> None:
    found = readings(METRIC, msgspec.structs.replace(METRIC, **with_scripts(changes)))
    assert [cause for cause, _definition in found] == steps


def _with(metric: MetricDefinition, name: str) -> MetricDefinition:
    (judge,) = metric.judges
    if name == "scripts":
        script = Script(kind="preprocess", source="def preprocess(data, resp): return 1")
        return msgspec.structs.replace(metric, scripts=(script,))
    change = {
        "judge": {"model": "two"},
        "prompt": {"template": "other"},
        "parser": {"parse": {"regex": "(1)"}},
    }[name]
    return msgspec.structs.replace(metric, judges=(msgspec.structs.replace(judge, **change),))
