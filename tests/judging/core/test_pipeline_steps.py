"""A metric's steps run in the order in which they stand, whatever it is. Effects are faked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec import structs

from judging.core.metric_definition import JudgeModel, MetricDefinition, Script
from judging.core.pipeline import judge_item
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
from judging.core.values import Outcome

ITEM = JudgedItem({"question": "?"}, {"content": "the answer"})
JUDGE = JudgeModel(name="j", template="t")
SCORED = ("preprocess", 0), ("postprocess", 1), ("postprocess", 2)


@dataclass
class Recorder:
    """Effects that note what ran; a judge replies its number in tens, a script returns what `returns` says."""

    metric: MetricDefinition
    returns: dict[int, ScriptResult] = field(default_factory=dict)
    fails: Sequence[int] = ()
    builds: tuple[bool, ...] = (False,) * 9
    ran: list[str] = field(default_factory=list)
    contexts: list[Context] = field(default_factory=list)
    read_judges: list[int] = field(default_factory=list)

    @property
    def scripts(self) -> list[Any]:
        return [self._script(number) for number in range(len(self.metric.scripts))]

    def _script(self, number: int) -> Any:
        async def run(context: Context) -> ScriptResult:
            self.ran.append(f"script {number}")
            self.contexts.append(context)
            return self.returns.get(number, ScriptResult())

        return run

    async def builds_on_others(self) -> tuple[bool, ...]:
        return self.builds

    @property
    def prompts(self) -> list[Any]:
        return [self._render] * 9

    async def _render(self, context: Context) -> str:
        self.contexts.append(context)
        return "prompt"

    async def ask(self, questions: Sequence[Question]) -> list[JudgeCall]:
        self.ran.append("judges " + ",".join(str(question.judge) for question in questions))
        return [call(question.judge, failed=question.judge in self.fails) for question in questions]

    async def apply_rules(self, item: JudgedItem, ask: Ask | None, previous: PreviousReplies | None) -> Ruled:
        self.ran.append("rules")
        return Ruled(Outcome("scored", 4))

    async def read(self, judge: int, content: str, finish_reason: str | None) -> Parsed:
        self.read_judges.append(judge)
        return Parsed(int(content))

    def flags(self, item: JudgedItem) -> tuple[str, ...]:
        return ()


def call(judge: int, *, failed: bool = False) -> JudgeCall:
    reply, failure = (None, Failure("quota", "empty")) if failed else ({"content": str(10 * judge)}, None)
    return JudgeCall(judge, 0, {}, reply, failure, [])


def metric(judges: int, *scripts: tuple[str, int], **more: Any) -> MetricDefinition:
    """A metric with scripts of these kinds, each after so many judge models."""
    placed = tuple(Script(kind=kind, source="s", after=after) for kind, after in scripts)  # type: ignore[arg-type]
    return MetricDefinition(name="m", judges=(JUDGE,) * judges, scripts=placed, **more)


def judged(recorder: Recorder, previous: PreviousReplies | None = None) -> JudgementResult:
    return asyncio.run(judge_item(ITEM, recorder.metric, recorder, recorder.ask, previous))


@pytest.mark.parametrize(
    ("definition", "ran"),
    [
        (metric(1, ("preprocess", 0), ("postprocess", 1)), ["script 0", "judges 0", "script 1"]),
        (metric(1, ("postprocess", 0), ("preprocess", 1)), ["script 0", "judges 0", "script 1"]),
        (metric(2, ("preprocess", 1)), ["judges 0", "script 0", "judges 1"]),
        (metric(3, ("preprocess", 0), ("preprocess", 0), ("postprocess", 2)),
         ["script 0", "script 1", "judges 0,1", "script 2", "judges 2"]),
        (metric(0, ("preprocess", 0), ("postprocess", 0), ("preprocess", 0)), ["script 0", "script 1", "script 2"]),
        (metric(0, ("postprocess", 0), ("preprocess", 1), rules="x"), ["script 0", "rules", "script 1"]),
    ],
)  # fmt: skip
def test_steps_run_one_after_the_other_and_judges_in_a_row_together(
    definition: MetricDefinition, ran: list[str]
) -> None:
    recorder = Recorder(definition)
    judged(recorder)
    assert recorder.ran == ran


def test_a_later_judge_of_a_row_that_names_earlier_replies_waits_for_them() -> None:
    recorder = Recorder(metric(4, ("preprocess", 1)), builds=(False, True, False, True))
    judged(recorder)
    assert recorder.ran == ["judges 0", "script 0", "judges 1,2", "judges 3"]


def test_a_script_between_judges_sees_what_came_before_it() -> None:
    recorder = Recorder(metric(2, ("preprocess", 0), ("preprocess", 1)), {0: ScriptResult("a")})
    judged(recorder)
    between = recorder.contexts[2]
    assert [seen.judge for seen in between.calls] == [0]
    assert [script.result for script in between.scripts] == ["a"]


@pytest.mark.parametrize("kind", ["preprocess", "postprocess"])
def test_what_a_script_changes_is_seen_by_all_that_follow(kind: str) -> None:
    changed = {"data": {"n": 1}, "response": {"content": "short"}}
    recorder = Recorder(metric(2, (kind, 1), ("postprocess", 2)), {0: ScriptResult(1, changed)})
    judged(recorder)
    assert [context.item.data.get("n") for context in recorder.contexts] == [None, None, 1, 1]
    assert recorder.contexts[-1].item.response["content"] == "short"


def test_preprocess_result_is_that_of_the_last_preprocess_before_the_template() -> None:
    returned = {0: ScriptResult("a"), 1: ScriptResult("b"), 2: ScriptResult("c")}
    recorder = Recorder(metric(2, ("preprocess", 0), ("preprocess", 1), ("postprocess", 1)), returned)
    judged(recorder)
    prompts = [recorder.contexts[1], recorder.contexts[4]]
    assert [context.preprocess_result for context in prompts] == ["a", "b"]


@pytest.mark.parametrize(
    ("definition", "returned", "value"),
    [
        (metric(2), {}, 5.0),  # the mean of both in the last row
        (metric(2, ("preprocess", 1)), {0: 7}, 10),
        (metric(2, ("postprocess", 1)), {0: 7}, 10),
        (metric(2, ("postprocess", 2)), {0: 7}, 7),
        (metric(2, ("postprocess", 2), ("preprocess", 2)), {0: 7, 1: 8}, 7),
        (metric(1, ("preprocess", 1)), {0: 8}, 0),
        (metric(1, ("postprocess", 1), ("postprocess", 1)), {0: 7, 1: 8}, 8),
        (metric(1, ("postprocess", 1), ("postprocess", 1)), {0: 7}, 7),
        (metric(0, ("preprocess", 0), ("preprocess", 0)), {0: 7, 1: 8}, 8),
        (metric(0, ("postprocess", 0), ("preprocess", 0)), {0: 7, 1: 8}, 7),
        (metric(0, ("postprocess", 0), rules="x"), {0: 7}, 4),
        (metric(0, ("postprocess", 1), rules="x"), {0: 7}, 7),
    ],
)
def test_the_value_is_what_the_last_step_gives_that_gives_one(
    definition: MetricDefinition, returned: dict[int, Any], value: Any
) -> None:
    recorder = Recorder(definition, {number: ScriptResult(result) for number, result in returned.items()})
    assert judged(recorder).outcome == Outcome("scored", value)


def test_a_last_postprocess_that_returns_none_gives_no_score_though_judges_did() -> None:
    assert judged(Recorder(metric(1, ("postprocess", 1)))).outcome.state == "no_score"


def test_only_the_replies_of_the_last_row_are_read() -> None:
    recorder = Recorder(metric(3, ("preprocess", 1)))
    judged(recorder)
    assert recorder.read_judges == [1, 2]


@pytest.mark.parametrize(("script", "ran"), [(0, ["script 0"]), (1, ["script 0", "judges 0", "script 1"])])
def test_a_script_that_fails_ends_the_item_with_its_error(script: int, ran: list[str]) -> None:
    failure = ScriptResult(failure=Failure("script_exception", "KeyError"))
    recorder = Recorder(metric(2, *SCORED), {script: failure})
    result = judged(recorder)
    assert (result.outcome, recorder.ran) == (Outcome.error("script_exception", "KeyError"), ran)
    assert result.scripts[-1] == failure


def test_a_judge_that_failed_for_good_is_seen_by_what_follows() -> None:
    recorder = Recorder(metric(2, ("preprocess", 1)), fails=(0,))
    assert judged(recorder).outcome.value == 10
    assert recorder.contexts[1].calls[0].as_seen() == {"content": None, "error": "quota: empty"}


def test_the_results_of_all_scripts_are_kept_in_order() -> None:
    returned = {number: ScriptResult(number, printed=f"{number}\n", seconds=0.5) for number in range(3)}
    assert judged(Recorder(metric(2, *SCORED), returned)).scripts == tuple(returned.values())


# --- stored replies re-parsed -----------------------------------------------------------------------------------------


def test_re_parsing_runs_the_steps_after_the_last_judge_only() -> None:
    stored = PreviousReplies((call(0), call(1)), (ScriptResult("a"), ScriptResult("b"), ScriptResult("old")))
    recorder = Recorder(metric(2, *SCORED), {2: ScriptResult("new")})
    result = judged(recorder, stored)
    assert (recorder.ran, result.outcome.value) == (["script 2"], "new")
    assert [script.result for script in result.scripts] == ["a", "b", "new"]


def test_re_parsing_a_metric_of_scripts_runs_them_all() -> None:
    recorder = Recorder(metric(0, ("preprocess", 0), ("postprocess", 0)), {1: ScriptResult(1)})
    judged(recorder, PreviousReplies((), (ScriptResult("old"), ScriptResult("old"))))
    assert recorder.ran == ["script 0", "script 1"]


@pytest.mark.parametrize(
    ("now", "value", "flags"),
    [
        (ScriptResult("a"), "new", ()),
        (ScriptResult("b"), 7, ("would_ask_again",)),
        (ScriptResult("a", {"data": {"x": 1}}), 7, ("would_ask_again",)),
        (ScriptResult("a", failure=Failure("script_exception")), 7, ("would_ask_again",)),
    ],
)
def test_re_parsing_leaves_an_item_whose_judges_would_be_shown_something_else(
    now: ScriptResult, value: object, flags: tuple[str, ...]
) -> None:
    left = JudgementResult(Outcome("scored", 7))
    stored = PreviousReplies((call(0),), (ScriptResult("a", {"data": {}}), ScriptResult("old")), left)
    recorder = Recorder(metric(1, ("preprocess", 0), ("postprocess", 1)), {0: now, 1: ScriptResult("new")})
    result = judged(recorder, stored)
    assert (result.outcome.value, result.flags) == (value, flags)


# --- the definition ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("definition", "steps"),
    [
        (metric(2), "J0 J1"),
        (metric(2, ("preprocess", 0), ("postprocess", 1), ("postprocess", 2)), "pre0 J0 post1 J1 post2"),
        (metric(1, ("preprocess", 0), ("postprocess", 1), rules="x"), "pre0 R0 post1"),
    ],
)
def test_the_steps_of_a_metric_are_listed_in_order(definition: MetricDefinition, steps: str) -> None:
    short = {"PREPROCESS": "pre", "POSTPROCESS": "post", "JUDGE_MODEL": "J", "RULES": "R"}
    assert " ".join(f"{short[step.type]}{step.number}" for step in definition.steps) == steps


def test_only_the_judges_of_the_last_row_vote() -> None:
    definition = structs.replace(
        metric(3, ("preprocess", 1)), judges=(JUDGE, JUDGE, structs.replace(JUDGE, repeats=3))
    )
    assert (definition.votes, definition.calls) == (4, 5)
