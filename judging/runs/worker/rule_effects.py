"""Effects of a rule metric: batched Python blocks in the sandbox, and immediate results where no judge is needed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from judging.core.metric_definition import MetricDefinition
from judging.core.pipeline import result_by_rules
from judging.core.results import Item, JudgeCall, JudgementResult, PreviousReplies, Question, Ruled
from judging.core.rules.check import read_program
from judging.core.rules.evaluate import Ask, evaluate, judge_by_rules, ruled
from judging.core.rules.program import BlockCall, Reason, Scored
from judging.core.rules.python_blocks import run_code
from judging.core.sandbox.pool import Sandbox
from judging.core.values import Outcome
from judging.endpoints.client import RunInThread
from judging.runs.worker.threads import Batcher

BROKEN = "rules_invalid"


class RuleEffects:
    """One metric's rule program, parsed once."""

    def __init__(self, metric: MetricDefinition, sandbox: Sandbox, in_sandbox: RunInThread) -> None:
        reading = read_program(metric.rules)
        self.program = reading.program
        errors = [f"{one.place.line}: {one.code}" for one in reading.errors[:1]]
        self._broken = Ruled(Outcome.error(BROKEN, "".join(errors)))  # the result if the program is invalid
        self.sandbox, self.in_sandbox = sandbox, in_sandbox
        self.each_alone = metric.sandbox == "item"
        self.alone = not metric.preprocess and not metric.postprocess and self._asks_nobody()
        self._blocks: dict[str, Batcher[BlockCall, Scored | Reason]] = {}

    def _asks_nobody(self) -> bool:
        rules = self.program.rules if self.program else ()
        return all(rule.function.by == "machine" for rule in rules)

    def result(self, item: Item) -> JudgementResult:
        """Score an item with an `alone` program, which needs no script, block or judge."""
        said = ruled(evaluate(self.program, item)) if self.program else self._broken
        return result_by_rules(said)

    async def apply(self, item: Item, ask: Ask | None, previous: PreviousReplies | None) -> Ruled:
        """Score an item. With `previous`, earlier judge replies are reused and no request is sent. `ask` is None if
        the metric has no judge model."""
        if self.program is None:
            return self._broken
        if previous is not None:
            ask = _from(previous.asked)
        return await judge_by_rules(self.program, item, self._run, ask)

    async def _run(self, call: BlockCall) -> Scored | Reason:
        label = call.code.label
        if label not in self._blocks:
            work = partial(run_code, self.sandbox, call.code, each_alone=self.each_alone)
            self._blocks[label] = Batcher(self.in_sandbox, work)
        return await self._blocks[label](call)


def _from(calls: Sequence[JudgeCall]) -> Ask:
    """Return an Ask that replays an earlier attempt's replies. They are matched by prompt, because line numbers
    differ if the program has changed."""
    by_prompt: dict[str, list[JudgeCall]] = {}
    for one in calls:
        by_prompt.setdefault(_prompt_of(one.request), []).append(one)

    async def ask(questions: Sequence[Question]) -> list[JudgeCall | None]:
        return [by_prompt[one.prompt].pop(0) if by_prompt.get(one.prompt) else None for one in questions]

    return ask


def _prompt_of(request: dict[str, Any]) -> str:
    messages = request.get("messages") or [{}]
    return str(messages[-1].get("content", ""))
