"""The pipeline of one response: which judge is called when, and the result of its replies. Effects are faked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from judging.core.metric_definition import JudgeModel, MetricDefinition, Script
from judging.core.pipeline import judge_item, read_verdicts, rounds
from judging.core.replies import Parsed
from judging.core.results import (
    Ask,
    Context,
    Failure,
    JudgeCall,
    JudgedItem,
    JudgementResult,
    PreviousReplies,
    Question,
    Ruled,
    ScriptResult,
)
from judging.core.values import Outcome, Value
from tests.make import with_scripts

ITEM = JudgedItem({"question": "?", "ref_answer": "the reference", "gt": None}, {"content": "the answer"})
Said = str | Failure


@dataclass
class FakeTools:
    """Fake effects backed by plain functions; `asked` records which questions were sent together."""

    says: Callable[[Question], Said] = lambda question: "5"
    before: Callable[[Context], ScriptResult] = lambda context: ScriptResult()
    after: Callable[[Context], ScriptResult] = lambda context: ScriptResult()
    prompt: Callable[[int, Context], str | Failure] = lambda judge, context: context.item.response["content"]
    rules: Callable[[JudgedItem], Ruled] = lambda item: Ruled(Outcome("scored", 5))
    builds: tuple[bool, ...] = (False,)
    metric: MetricDefinition = field(default_factory=lambda: MetricDefinition(name="m"))
    asked: list[list[Question]] = field(default_factory=list)
    seen: list[Context] = field(default_factory=list)

    @property
    def scripts(self) -> list[partial[Coroutine[None, None, ScriptResult]]]:
        return [partial(self._run, script) for script in self.metric.scripts]

    async def _run(self, script: Script, context: Context) -> ScriptResult:
        if script.kind == "preprocess":
            return self.before(context)
        self.seen.append(context)
        return self.after(context)

    async def builds_on_others(self) -> tuple[bool, ...]:
        return self.builds

    @property
    def prompts(self) -> list[partial[Coroutine[None, None, str | Failure]]]:
        return [partial(self._render, judge) for judge in range(9)]

    async def _render(self, judge: int, context: Context) -> str | Failure:
        self.seen.append(context)
        return self.prompt(judge, context)

    async def ask(self, questions: Sequence[Question]) -> list[JudgeCall]:
        self.asked.append(list(questions))
        return [reply_to(question, self.says(question)) for question in questions]

    async def apply_rules(self, item: JudgedItem, ask: Ask | None, previous: PreviousReplies | None) -> Ruled:
        return self.rules(item)

    async def read(self, judge: int, content: str, finish_reason: str | None) -> Parsed:
        try:
            return Parsed(json.loads(content))
        except ValueError:
            return Parsed(None, "nothing_offered")

    def flags(self, item: JudgedItem) -> tuple[str, ...]:
        return ()


def reply_to(question: Question, said: Said) -> JudgeCall:
    failure = said if isinstance(said, Failure) else None
    reply = None if failure else {"content": said}
    request = {"messages": [{"role": "user", "content": question.prompt}]}
    return JudgeCall(
        question.judge,
        question.repeat,
        request,
        reply,
        failure,
        [],
        swapped=question.swapped,
        criterion=question.criterion,
    )


def metric(*judges: JudgeModel, **more: Any) -> MetricDefinition:
    return MetricDefinition(name="m", **with_scripts({"judges": judges, **more}))


def judge(name: str = "j", **more: Any) -> JudgeModel:
    return JudgeModel(name=name, template="t", **more)


def found(
    definition: MetricDefinition, tools: FakeTools, previous: PreviousReplies | None = None
) -> JudgementResult:
    tools.metric = definition
    return asyncio.run(judge_item(ITEM, definition, tools, tools.ask, previous))


def by_judge(*said: Said) -> Callable[[Question], Said]:
    return lambda question: said[question.judge]


def in_orders(first: Said, swapped: Said) -> Callable[[Question], Said]:
    return lambda question: swapped if question.swapped else first


BOTH = metric(judge(parse="comparison", both_orders=True))
SCRIPTED = {"preprocess": "source"}


def test_one_judge_s_number_is_the_value_as_it_was_read() -> None:
    assert found(metric(judge()), FakeTools()).outcome == Outcome("scored", 5)


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (("4", "7"), Outcome("scored", 5.5)),
        (("4", "no idea"), Outcome("scored", 4)),
        (("4", Failure("cut")), Outcome("scored", 4)),
        (("what", "no idea"), Outcome.unparsed("nothing_offered")),
        (("what", Failure("cut")), Outcome.unparsed("nothing_offered")),
        ((Failure("bad_key", "no"), Failure("cut", "short")), Outcome.error("cut", "short")),
    ],
)
def test_several_judges_come_to_the_mean_of_what_could_be_read(
    said: tuple[Said, Said], outcome: Outcome
) -> None:
    tools = FakeTools(by_judge(*said), builds=(False, False))
    assert found(metric(judge("a"), judge("b")), tools).outcome == outcome


def test_every_reply_stays_with_its_verdict() -> None:
    result = found(metric(judge("a"), judge("b")), FakeTools(by_judge("4", "7"), builds=(False, False)))
    assert [(one.judge, one.value) for one in result.verdicts] == [(0, 4), (1, 7)]
    assert len(result.calls) == 2


def test_repeats_of_a_judge_are_asked_together_and_averaged() -> None:
    tools = FakeTools(lambda question: str(question.repeat + 1))
    result = found(metric(judge(repeats=3)), tools)
    assert [len(together) for together in tools.asked] == [3]
    assert result.outcome == Outcome("scored", 2.0)


def test_judges_that_build_on_nobody_are_asked_together() -> None:
    tools = FakeTools(builds=(False, False, True))
    found(metric(judge("a"), judge("b"), judge("c")), tools)
    assert [[one.judge for one in together] for together in tools.asked] == [[0, 1], [2]]


@pytest.mark.parametrize(
    ("builds", "expected"),
    [
        ((), []),
        ((False,), [[0]]),
        ((True,), [[0]]),
        ((False, True, True), [[0], [1], [2]]),
        ((False, True, False), [[0, 2], [1]]),
        ((False, False, True, False, True), [[0, 1, 3], [2], [4]]),
    ],
)
def test_a_judge_that_builds_on_others_comes_after_all_before_it(
    builds: tuple[bool, ...], expected: list[list[int]]
) -> None:
    assert rounds(builds) == expected


def test_a_judge_sees_the_replies_of_those_before_it_in_order_and_no_others() -> None:
    tools = FakeTools(by_judge("1", "2", "3"), builds=(False, True, False))
    found(metric(judge("a", repeats=2), judge("b"), judge("c")), tools)
    of_the_second = tools.seen[2]
    assert [(one.judge, one.repeat) for one in of_the_second.calls] == [(0, 0), (0, 1)]


def test_what_was_asked_is_in_the_order_of_judges_whatever_the_rounds() -> None:
    result = found(metric(judge("a"), judge("b"), judge("c")), FakeTools(builds=(False, True, False)))
    assert [one.judge for one in result.calls] == [0, 1, 2]


def test_a_judge_that_failed_for_good_is_seen_with_its_error() -> None:
    tools = FakeTools(by_judge(Failure("quota", "empty"), "3"), builds=(False, True))
    assert found(metric(judge("a"), judge("b")), tools).outcome.value == 3
    assert tools.seen[1].calls[0].as_seen() == {"content": None, "error": "quota: empty"}


def test_a_prompt_that_cannot_be_made_ends_the_story_before_its_round_is_asked() -> None:
    tools = FakeTools(
        builds=(False, False), prompt=lambda judge, _: Failure("prompt_undefined", "x") if judge else "p"
    )
    result = found(metric(judge("a"), judge("b")), tools)
    assert result.outcome == Outcome.error("prompt_undefined", "x")
    assert tools.asked == []


def test_what_earlier_rounds_said_is_kept_when_a_later_prompt_fails() -> None:
    tools = FakeTools(builds=(False, True), prompt=lambda judge, _: Failure("prompt_load") if judge else "p")
    assert len(found(metric(judge("a"), judge("b")), tools).calls) == 1


# --- scripts -----------------------------------------------------------------------------------------------------


def test_what_preprocess_adds_is_seen_by_template_and_postprocess_of_this_response_only() -> None:
    tools = FakeTools(before=lambda _: ScriptResult(7, {"data": {"n": 1}, "response": {"content": "short"}}))
    found(metric(judge(), preprocess="s", postprocess="s"), tools)
    for context in tools.seen:
        assert (context.item.data["n"], context.item.response["content"]) == (1, "short")
        assert context.preprocess_result == 7
    assert ITEM.response == {"content": "the answer"}
    assert "n" not in ITEM.data


@pytest.mark.parametrize(
    ("returned", "outcome"),
    [
        (True, Outcome("scored", True)),
        ("good", Outcome("scored", "good")),
        (2**63 - 1, Outcome("scored", 2**63 - 1)),
        (None, Outcome("no_score", reason="none_returned")),
    ],
)
def test_a_metric_of_preprocess_alone_is_what_it_returns(returned: Value | None, outcome: Outcome) -> None:
    tools = FakeTools(before=lambda _: ScriptResult(returned))
    assert found(metric(preprocess="s"), tools).outcome == outcome
    assert tools.asked == []


def test_a_metric_of_postprocess_alone_is_what_it_returns() -> None:
    assert found(metric(postprocess="s"), FakeTools(after=lambda _: ScriptResult(3))).outcome.value == 3


def test_a_metric_of_nothing_is_an_error() -> None:
    assert found(metric(), FakeTools()).outcome == Outcome.error("no_judge")


def test_postprocess_decides_over_the_judges_and_their_verdicts_stay() -> None:
    result = found(metric(judge(), postprocess="s"), FakeTools(after=lambda _: ScriptResult(99)))
    assert (result.outcome.value, result.verdicts[0].value) == (99, 5)


def test_postprocess_that_returns_none_is_no_score_though_the_judge_gave_one() -> None:
    result = found(metric(judge(), postprocess="s"), FakeTools(after=lambda _: ScriptResult(None)))
    assert result.outcome.state == "no_score"


@pytest.mark.parametrize("which", ["before", "after"])
def test_a_script_that_fails_is_the_item_s_error(which: str) -> None:
    failing = {which: lambda _: ScriptResult(failure=Failure("script_exception", "ZeroDivisionError"))}
    result = found(metric(judge(), preprocess="s", postprocess="s"), FakeTools(**failing))
    assert result.outcome == Outcome.error("script_exception", "ZeroDivisionError")


def test_nobody_is_asked_after_preprocess_failed() -> None:
    tools = FakeTools(before=lambda _: ScriptResult(failure=Failure("script_timeout")))
    found(metric(judge(), preprocess="s"), tools)
    assert tools.asked == []


def test_postprocess_sees_one_reply_for_each_question_in_order() -> None:
    tools = FakeTools(builds=(False, False))
    found(metric(judge("a", repeats=2), judge("b", both_orders=True), postprocess="s"), tools)
    places = [one.place[:3] for one in tools.seen[-1].calls]
    assert places == [(0, 0, False), (0, 1, False), (1, 0, False), (1, 0, True)]


# --- both orders -------------------------------------------------------------------------------------------------


def test_a_comparison_is_asked_in_both_orders_at_once() -> None:
    tools = FakeTools()
    found(BOTH, tools)
    ((first, swapped),) = tools.asked
    assert (first.prompt, swapped.prompt) == ("the answer", "the reference")
    assert (first.swapped, swapped.swapped) == (False, True)


@pytest.mark.parametrize(
    ("first", "swapped", "value", "flip"),
    [
        ("2", "4", 2, False),  # the reference both times
        ("1", "4", 2, False),  # both on the same side: the weaker one
        ("4", "1", 4, False),
        ("2", "2", 3, True),  # A both times: position bias
        ("5", "5", 3, True),
        ("3", "3", 3, False),
        ("3", "4", 3, False),
    ],
)
def test_both_orders_come_to_one_verdict(first: str, swapped: str, value: int, flip: bool) -> None:
    result = found(BOTH, FakeTools(in_orders(first, swapped)))
    assert result.outcome == Outcome("scored", value)
    assert result.flags == (("order_flip",) if flip else ())


def test_both_verdicts_and_what_they_come_to_are_kept() -> None:
    result = found(BOTH, FakeTools(in_orders("1", "2")))
    kept = [(one.order, one.value, one.flip) for one in result.verdicts]
    assert kept == [("first", 1, False), ("swapped", 4, False), ("both", 3, True)]


@pytest.mark.parametrize(
    ("first", "swapped", "state"),
    [
        ("2", "what", "unparsed"),
        ("what", "2", "unparsed"),
        ("2", Failure("cut"), "error"),
        (Failure("cut"), "2", "error"),
    ],
)
def test_half_a_comparison_is_no_score(first: Said, swapped: Said, state: str) -> None:
    assert found(BOTH, FakeTools(in_orders(first, swapped))).outcome.state == state


def test_without_a_reference_there_is_only_one_order() -> None:
    tools = FakeTools(before=lambda _: ScriptResult(1, {"data": {"ref_answer": None}}))
    result = found(metric(*BOTH.judges, **SCRIPTED), tools)
    assert len(tools.asked[0]) == 1
    assert result.outcome.value == 5


def test_repeats_in_both_orders_are_combined_each_and_then_averaged() -> None:
    said = {(0, False): "1", (0, True): "5", (1, False): "2", (1, True): "2"}
    tools = FakeTools(lambda question: said[question.repeat, question.swapped])
    assert found(metric(judge(both_orders=True, repeats=2)), tools).outcome.value == 2.0


# --- stored replies re-parsed -----------------------------------------------------------------------------------------


def test_replies_that_were_received_before_are_read_and_nobody_is_asked() -> None:
    tools = FakeTools()
    result = found(metric(judge()), tools, PreviousReplies((reply_to(Question(0, 0, "p"), "8"),)))
    assert (result.outcome.value, tools.asked, tools.seen) == (8, [], [])


def test_what_preprocess_did_then_is_seen_by_postprocess_now() -> None:
    earlier = ScriptResult(1, {"data": {"n": 6}})
    tools = FakeTools(after=lambda context: ScriptResult(context.item.data["n"]))
    previous = PreviousReplies((reply_to(Question(0, 0, "p"), "8"),), (earlier,))
    result = found(metric(judge(), preprocess="s", postprocess="s"), tools, previous)
    assert (result.outcome.value, result.scripts[0]) == (6, earlier)


@pytest.mark.parametrize(("said", "reason"), [("I would", "cut_off"), ("7", "")])
def test_a_reply_that_was_cut_off_before_its_score_says_so(said: str, reason: str) -> None:
    asked = JudgeCall(0, 0, {}, {"content": said, "finish_reason": "length"}, None, [], 0.0)
    (verdict,) = asyncio.run(read_verdicts((asked,), FakeTools()))
    assert verdict.reason == reason


def test_a_verdict_says_how_and_where_it_was_read() -> None:
    class Reading(FakeTools):
        async def read(self, judge: int, content: str, finish_reason: str | None) -> Parsed:
            return Parsed(8, form="brackets", place=(3, 8))

    (verdict,) = asyncio.run(read_verdicts((reply_to(Question(0, 0, "p"), "is [[8]]"),), Reading()))
    assert (verdict.form, verdict.place) == ("brackets", (3, 8))


def test_an_unread_reply_says_what_stood_there() -> None:
    class Reading(FakeTools):
        async def read(self, judge: int, content: str, finish_reason: str | None) -> Parsed:
            return Parsed(None, "ambiguous", detail="7 | 8")

    result = found(metric(judge()), Reading())
    assert (result.outcome.reason, result.outcome.detail) == ("ambiguous", "7 | 8")


@pytest.mark.parametrize("finish", ["content_filter", "sensitive"])
def test_a_filtered_reply_is_a_refusal_whatever_it_says(finish: str) -> None:
    call = JudgeCall(0, 0, {}, {"content": "8", "finish_reason": finish}, None, [], 0.0)
    (verdict,) = asyncio.run(read_verdicts((call,), FakeTools()))
    assert (verdict.value, verdict.reason, verdict.detail) == (None, "refusal", "8")
