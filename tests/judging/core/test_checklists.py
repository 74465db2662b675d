"""Checklists: the questions about criteria, reading their verdicts, and the share of points."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from msgspec import structs

from judging.core.checklists import Checklist, checklist_from, entries_by_criterion, read_at_once
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.core.pipeline import judge_item
from judging.core.prompts import render_item
from judging.core.results import Failure, JudgeCall, JudgedItem, JudgementResult, PreviousReplies
from judging.core.values import Outcome
from tests.judging.core.test_pipeline import FakeTools, Said

RUBRIC = [
    {"criterion": "names a dose", "points": 7, "tags": ["accuracy"]},
    {"criterion": "is kind", "points": 4},
    {"criterion": "recommends antibiotics", "points": -6},
]
METRIC = MetricDefinition(
    name="m", judges=(JudgeModel(name="j", template="t"),), gives="checklist", min_score=0, max_score=1
)
AT_ONCE = structs.replace(METRIC, at_once=True)


def judged(metric: MetricDefinition, *said: Said, rubric: Any = RUBRIC) -> JudgementResult:
    """The result where criterion n is answered by the n-th reply."""
    item = JudgedItem({"question": "?", "rubric": rubric}, {"content": "the answer"})
    tools = FakeTools(says=lambda question: said[max(0, question.criterion - 1)])
    return asyncio.run(judge_item(item, metric, tools, tools.ask))


def criteria_of(result: JudgementResult) -> Checklist:
    checklist = checklist_from(result.checklist)
    assert checklist is not None
    return checklist


def met_in(result: JudgementResult) -> list[bool | None]:
    return [criterion.met for criterion in criteria_of(result).criteria]


def test_each_criterion_is_asked_about_by_itself() -> None:
    tools = FakeTools(says=lambda question: "true")
    item = JudgedItem({"question": "?", "rubric": RUBRIC}, {"content": "a"})
    asyncio.run(judge_item(item, METRIC, tools, tools.ask))
    variables = [render_item(context, METRIC).criteria["criterion"] for context in tools.seen]
    assert [criterion["text"] for criterion in variables] == [entry["criterion"] for entry in RUBRIC]
    assert (variables[0]["points"], variables[0]["tags"]) == (7, ["accuracy"])
    assert [question.criterion for question in tools.asked[0]] == [1, 2, 3]


def test_the_value_is_the_share_of_points_met() -> None:
    result = judged(METRIC, "true", "false", "true")
    assert result.outcome == Outcome("scored", (7 - 6) / 11)
    assert met_in(result) == [True, False, True]


def test_a_value_below_zero_is_kept_uncut_and_shown_as_zero() -> None:
    value = judged(METRIC, "false", "false", "true").outcome.value
    assert value == pytest.approx(-6 / 11)
    assert (METRIC.verdict_of(value), METRIC.verdict_of(0.5)) == ("0", "")


def test_a_criterion_that_cannot_be_read_leaves_the_value_open_with_its_bounds() -> None:
    result = judged(METRIC, "true", "hm", "false")
    assert result.outcome == Outcome("unparsed", reason="criteria_open", detail="1/3: 0.636…1")
    checklist = criteria_of(result)
    assert (checklist.low, checklist.high) == (pytest.approx(7 / 11), 1.0)
    assert (checklist.criteria[1].met, checklist.criteria[1].reason) == (None, "nothing_offered")


def test_a_failed_call_is_an_error_that_can_be_retried() -> None:
    result = judged(METRIC, "true", Failure("connect", "refused"), "false")
    assert (result.outcome.state, result.outcome.reason) == ("error", "connect")
    assert met_in(result) == [True, None, False]


@pytest.mark.parametrize("rubric", [None, "Be kind", [], [{"criterion": "a", "points": -1}]])
def test_without_a_rubric_nothing_is_asked(rubric: Any) -> None:
    result = judged(METRIC, "true", rubric=rubric)
    assert (result.outcome.state, result.outcome.reason, result.calls) == ("error", "rubric_unreadable", ())


def test_several_votes_on_a_criterion_need_a_majority() -> None:
    judges = tuple(JudgeModel(name=name, template="t") for name in "abc")
    says = {0: ["true", "true"], 1: ["true", "false"], 2: ["false", "hm"]}
    tools = FakeTools(
        says=lambda question: says[question.judge][question.criterion - 1], builds=(False, False, False)
    )
    item = JudgedItem({"rubric": ["a", "b"]}, {"content": "x"})
    result = asyncio.run(judge_item(item, structs.replace(METRIC, judges=judges), tools, tools.ask))
    assert met_in(result) == [True, None]
    assert criteria_of(result).criteria[1].reason == "no_majority"


def test_stored_replies_are_read_again_without_questions() -> None:
    first = judged(METRIC, "true", "hm", "false")
    item = JudgedItem({"question": "?", "rubric": RUBRIC}, {"content": "the answer"})
    replies = tuple(structs_with(call, "true") if call.criterion == 2 else call for call in first.calls)
    again = asyncio.run(judge_item(item, METRIC, FakeTools(), None, PreviousReplies(replies)))
    assert again.outcome == Outcome("scored", 1.0)


def structs_with(call: JudgeCall, content: str) -> JudgeCall:
    return JudgeCall(call.judge, call.repeat, {}, {"content": content}, None, [], criterion=call.criterion)


def at_once(*entries: tuple[Any, str], around: str = "%s") -> str:
    criteria = [{"id": name, "reasoning": "because {so}", "verdict": verdict} for name, verdict in entries]
    return around % json.dumps({"criteria": criteria})


@pytest.mark.parametrize(
    ("reply", "met"),
    [
        (at_once(("1", "met"), ("2", "not met"), ("3", "not met")), [True, False, False]),
        (at_once((3, "met"), (1, "不满足"), (2, "满足"), around="```json\n%s\n```"), [False, True, True]),
        (at_once(("1", "met"), ("2", "met")), [True, True, None]),
        (at_once(("1", "met"), ("2", "met"), ("4", "met")), [True, True, None]),
        (at_once(("1", "met"), ("1", "not met"), ("2", "met"), ("3", "met")), [None, True, True]),
        (at_once(("1", "maybe"), ("2", "met"), ("3", "met")), [None, True, True]),
        (at_once(("1", "met"), ("2", "met"), ("3", "met"))[:-40], [True, True, None]),
        (at_once(("1", "met"), ("2", "met"), ("3", "met"), around="<think>%s"), [None, None, None]),
        ("all of them are met", [None, None, None]),
    ],
)
def test_one_reply_about_all_criteria_is_read_by_their_numbers(reply: str, met: list[bool | None]) -> None:
    result = judged(AT_ONCE, reply)
    assert (len(result.calls), met_in(result)) == (1, met)


def test_the_words_that_were_read_are_found_in_the_reply() -> None:
    content = at_once(("1", "met"), ("2", "not met"), around="Well.\n%s")
    verdicts = read_at_once(JudgeCall(0, 0, {}, {"content": content}, None, []), 2)
    assert [content[slice(*verdict.place)] for verdict in verdicts if verdict.place][1].find("not met") >= 0


def test_many_open_braces_take_no_longer_than_they_must() -> None:
    assert entries_by_criterion("{" * 100_000) == {}
