"""Comparisons of candidates: both orders, several votes, and which pairs there are."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from datasets.core.kinds import COMPARISON
from judging.core.asking_again import correction
from judging.core.judges.structured import schema_of
from judging.core.metric_definition import MetricDefinition
from judging.core.pairs import combine_settled, settled_verdict
from judging.core.pipeline import judge_item
from judging.core.reading.gives import Gives
from judging.core.results import JudgedItem, JudgementResult
from judging.core.values import Outcome
from tests.judging.core.test_pipeline import FakeTools, Said, in_orders, judge
from tests.make import with_scripts

PAIR = JudgedItem({"question": "?"}, {"content": "first"}, other={"content": "second"})


def compared(
    says: tuple[Said, Said], *, item: JudgedItem = PAIR, tools: FakeTools | None = None, **settings: Any
) -> JudgementResult:
    """What a judge of both orders says about a pair; `says`: its replies in the order A B, and in the order B A."""
    judges = settings.pop("judges", (judge(both_orders=True),))
    metric = MetricDefinition(
        name="m", judges=judges, gives="comparison", compares="all", **with_scripts(settings)
    )
    tools = tools or FakeTools(in_orders(*says))
    tools.metric = metric
    return asyncio.run(judge_item(item, metric, tools, tools.ask))


@pytest.mark.parametrize(
    ("first", "swapped", "verdict"),
    [
        ("A>B", "A>B", "A>B"),
        ("A>>B", "A>B", "A>B"),
        ("B>A", "B>>A", "B>A"),
        ("A=B", "A=B", "A=B"),
        ("A=B", "both_bad", "A=B"),
        ("both_bad", "both_bad", "both_bad"),
        ("A>B", "B>A", None),
        ("A>B", "A=B", None),
        ("both_bad", "B>>A", None),
    ],
)
def test_two_orders_settle_a_verdict_only_if_they_name_the_same_side(
    first: str, swapped: str, verdict: str | None
) -> None:
    assert settled_verdict(first, swapped) == verdict


@pytest.mark.parametrize(
    ("votes", "outcome"),
    [
        (["A>B", "A>>B", "B>A"], Outcome("scored", "A>B")),
        (["A>>B", "A>>B", "A>B"], Outcome("scored", "A>>B")),
        (["A=B", "both_bad", "both_bad"], Outcome("scored", "both_bad")),
        (["A=B", "both_bad"], Outcome("scored", "A=B")),
        (["A>B", "B>A"], Outcome.unsettled("no_majority")),
        (["A>B", "B>A", "A=B"], Outcome.unsettled("no_majority")),
    ],
)
def test_votes_need_a_majority_for_one_side(votes: list[str], outcome: Outcome) -> None:
    assert combine_settled(votes) == outcome


def test_an_attentive_judge_settles_a_pair() -> None:
    result = compared(('"A>B"', '"B>A"'))
    assert result.outcome == Outcome("scored", "A>B")
    assert [(verdict.order, verdict.value) for verdict in result.verdicts] == [
        ("first", "A>B"),
        ("swapped", "A>B"),
        ("both", "A>B"),
    ]


def test_a_judge_that_names_the_first_side_leaves_the_pair_unsettled_with_both_verdicts_kept() -> None:
    result = compared(('"A>B"', '"A>B"'))
    assert result.outcome == Outcome.unsettled("orders_disagree")
    assert [(verdict.value, verdict.flip) for verdict in result.verdicts] == [
        ("A>B", False),
        ("B>A", False),
        (None, True),
    ]


def test_one_order_that_cannot_be_read_leaves_no_verdict() -> None:
    assert compared(('"A>B"', "hm")).outcome == Outcome.unparsed("nothing_offered")


def test_the_second_prompt_shows_the_second_answer_first() -> None:
    tools = FakeTools(in_orders('"A>B"', '"B>A"'))
    compared(("", ""), tools=tools)
    assert [context.item.response["content"] for context in tools.seen] == ["first", "second"]


def test_a_judge_of_one_order_sees_the_side_that_was_drawn() -> None:
    tools = FakeTools(lambda question: '"A>B"')
    result = compared(
        ("", ""), item=replace(PAIR, other_first=True), tools=tools, judges=(judge(both_orders=False),)
    )
    assert [question.swapped for question in tools.asked[0]] == [True]
    assert result.outcome == Outcome("scored", "B>A")


def test_judges_that_all_contradict_themselves_have_no_majority() -> None:
    judges = (judge("one", both_orders=True), judge("two", both_orders=True))
    tools = FakeTools(in_orders('"A>B"', '"A>B"'), builds=(False, False))
    assert compared(("", ""), judges=judges, tools=tools).outcome == Outcome.unsettled("no_majority")


def test_settled_votes_outweigh_an_unsettled_one() -> None:
    judges = tuple(judge(str(number), both_orders=True) for number in range(3))
    tools = FakeTools(
        lambda question: '"A>B"' if question.judge == 0 or not question.swapped else '"B>A"',
        builds=(False, False, False),
    )
    assert compared(("", ""), judges=judges, tools=tools).outcome == Outcome("scored", "A>B")


def test_an_unsettled_vote_counts_for_the_quorum() -> None:
    assert compared(('"A>B"', '"A>B"'), quorum=2).outcome.reason == "quorum"
    assert compared(('"A>B"', '"A>B"'), quorum=1).outcome.reason == "orders_disagree"


def test_requests_and_replies_say_which_order_they_are_of() -> None:
    tools = FakeTools(in_orders('"A>B"', '"B>A"'))
    compared(("", ""), tools=tools, postprocess="source")
    assert [reply["swapped"] for reply in tools.seen[-1].replies] == [False, True]
    assert [request["swapped"] for request in tools.seen[-1].requests] == [False, True]


def test_all_pairs_or_those_with_a_baseline_are_compared() -> None:
    metric = MetricDefinition(name="m", gives="comparison", compares="all")
    assert metric.pairs(["x", "y", "z"]) == [("x", "y"), ("x", "z"), ("y", "z")]
    metric = MetricDefinition(name="m", gives="comparison", compares="baseline", baseline="y")
    assert metric.pairs(["x", "y", "z"]) == [("x", "y"), ("z", "y")]


def test_a_baseline_that_does_not_take_part_has_no_pairs() -> None:
    metric = MetricDefinition(name="m", gives="comparison", compares="baseline", baseline="q")
    with pytest.raises(ValueError, match="q"):
        metric.pairs(["x", "y"])


def test_three_steps_are_asked_for_where_stronger_verdicts_do_not_count() -> None:
    gives = Gives(COMPARISON, three_steps=True, both_bad=True, of_candidates=True)
    schema = schema_of(gives)["properties"]["verdict"]
    assert schema["enum"] == ["A>B", "A=B", "B>A", "both bad"]
    assert "[[A>B]] or [[A=B]] or [[B>A]] or [[both bad]]" in correction(
        "Which is better?", "empty", "", gives
    )
