"""Effects of judgements: batched rendering and scripts in the sandbox, requests to judge models, and rule programs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from judging.core.asking_again import ASKED_AGAIN, correction, further_request, prompt_of, with_further_call
from judging.core.injection_check import holds_verdict
from judging.core.judges.client import AskResult
from judging.core.judges.reply import OF_SERVER, Reply
from judging.core.judges.settings import Request, build_request
from judging.core.metric_definition import MetricDefinition, Script
from judging.core.pipeline import read_call, result_by_rules
from judging.core.prompts import names_of, render, render_item, script_arguments
from judging.core.replies import Parsed, Parser, make_parser
from judging.core.results import (
    INJECTED_VERDICT,
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
from judging.core.rules.ask import read_call as read_line
from judging.core.rules.check import read_program
from judging.core.rules.evaluate import Ask as AskLines
from judging.core.rules.evaluate import evaluate, judge_by_rules, ruled
from judging.core.rules.program import BlockCall, Reason, Scored
from judging.core.rules.python_blocks import run_code
from judging.core.sandbox.job import SandboxFailure
from judging.core.sandbox.pool import Sandbox
from judging.core.scripts import ScriptOutcome, run_preprocess, run_script, script_result
from judging.core.structured_output import structure_for
from judging.core.values import Outcome
from judging.endpoints.gate import RunInThread
from judging.endpoints.gate_pool import ModelConnection
from judging.endpoints.requests import Caller, Waiting
from judging.engine.chunks import NumberFormat
from judging.engine.reply_cache import ReplyCache
from judging.engine.threads import Batcher

_OF_OTHERS = ("judge_resps", "judge_reqs")
_REPLY_SEEN = ("content", "reasoning_content", "tool_calls", "finish_reason", "model")
"""The fields of a judge's reply that templates, scripts and pages see."""


class MetricEffects:
    """Implements core.results.Effects for one metric of one run. All its judgements share sandbox batches, connections
    and the reply cache.

    Without a `caller`, no requests can be sent and only stored replies are parsed.
    """

    def __init__(
        self,
        metric: MetricDefinition,
        models: list[ModelConnection],
        caller: Caller | None,
        sandbox: Sandbox,
        in_sandbox: RunInThread,
        cache: ReplyCache | None = None,
    ) -> None:
        self.metric = metric
        self.cache = cache
        self.models = models
        self.caller = caller
        self.sandbox = sandbox
        self._in_sandbox = in_sandbox
        self._builds: tuple[bool, ...] | None = None
        self.prompts = [Batcher(in_sandbox, partial(self._render, judge.template)) for judge in metric.judges]
        self.scripts = [Batcher(in_sandbox, partial(self._run_script, script)) for script in metric.scripts]
        self._parsers = [make_parser(judge.parse, metric.reading_of(judge)) for judge in metric.judges]
        self._readings = [
            metric.reading_of(judge) if isinstance(judge.parse, str) else None for judge in metric.judges
        ]
        self._structures = [
            structure_for(metric, judge, model.settings.structured) if number in metric.last_row else None
            for number, (judge, model) in enumerate(
                zip(metric.judges, models, strict=False)
            )  # none: not asked
        ]
        self._searches = [Batcher(in_sandbox, partial(self._search, parser)) for parser in self._parsers]
        reasoning = any("reasoning_content" in judge.template for judge in metric.judges)
        self._shown_fields = ("content", "reasoning_content") if reasoning else ("content",)
        self.rules = RuleEffects(metric, sandbox, in_sandbox) if metric.rules else None

    @property
    def alone(self) -> RuleEffects | None:
        """The metric's rule program if it needs neither scripts nor judges, so it can run outside the event loop."""
        return self.rules if self.rules and self.rules.alone else None

    @property
    def numbers(self) -> NumberFormat:
        """The number format that the metric needs. An `alone` program has no scripts or templates: "exact" suffices."""
        if self.rules is None:
            return "plain"
        return "exact" if self.rules.alone else "both"

    async def builds_on_others(self) -> tuple[bool, ...]:
        if self._builds is None:
            self._builds = await self._in_sandbox(self._find_builds)
        return self._builds

    def _find_builds(self) -> tuple[bool, ...]:
        """Whether each judge's template uses other judges' replies. A template with a syntax error yields no names;
        rendering reports the error."""
        used_names = (names_of(self.sandbox, judge.template)[0].used for judge in self.metric.judges)
        return tuple(any(name.path[0] in _OF_OTHERS for name in used) for used in used_names)

    async def ask(self, waiting: Waiting, questions: Sequence[Question]) -> list[JudgeCall]:
        """Ask the judge models. Raises Abandoned if the run is abandoned before all questions are sent, after waiting
        for those already sent."""
        if len(questions) == 1:
            return [await self._call(questions[0], waiting)]
        calls = await asyncio.gather(
            *(self._call(question, waiting) for question in questions), return_exceptions=True
        )
        for call in calls:
            if isinstance(call, BaseException):
                raise call
        return [call for call in calls if isinstance(call, JudgeCall)]

    async def _call(self, question: Question, waiting: Waiting) -> JudgeCall:
        """Ask the judge model, and up to `ask_again` times once more if its reply can't be read."""
        request = self._request(question)
        call = await self._first_call(question, request, waiting)
        is_read = question.judge in self.metric.last_row and not self.metric.at_once
        for _ in range(self.metric.ask_again if is_read else 0):
            reason, detail = await self._unread(call)
            if reason not in ASKED_AGAIN:
                break
            sentence = correction(question.prompt, reason, detail, self._readings[question.judge])
            further = await self._send(question, further_request(call.request, call.text, sentence), waiting)
            call = with_further_call(call, further, reason)
            if further.failure is not None:
                break
        return call

    def _request(self, question: Question) -> Request:
        model, structure = self.models[question.judge], self._structures[question.judge]
        if structure is None:
            return build_request(model.settings, question.prompt)
        return build_request(model.settings, structure.described(question.prompt), structure.parameters)

    async def _unread(self, call: JudgeCall) -> tuple[str, str]:
        """Why a reply can't be read, and what stood there; ("", "") if it can, or if there is none."""
        if call.failure is not None:
            return "", ""
        if self.metric.rules:
            result = read_line(call)
            return (result.code, "") if isinstance(result, Reason) else ("", "")
        parsed = await read_call(call, self)
        return parsed.reason, parsed.detail

    async def _first_call(self, question: Question, request: Request, waiting: Waiting) -> JudgeCall:
        """Ask the judge model, or reuse a cached reply to the same request."""
        model = self.models[question.judge]
        digest = self.cache.digest(model.settings.url, request, question.repeat) if self.cache else ""
        cached = await self.cache.find(digest, question) if self.cache and digest else None
        if cached is not None:
            return cached
        call: JudgeCall | None = None
        try:
            call = await self._send(question, request, waiting, digest)
        finally:
            if self.cache and digest:
                self.cache.store(digest, call)
        return call

    async def _send(
        self, question: Question, request: Request, waiting: Waiting, digest: str = ""
    ) -> JudgeCall:
        assert self.caller is not None
        model = self.models[question.judge]
        return as_judge_call(
            question,
            request,
            await self.caller.call(model, request, waiting, place_of(question)),
            model,
            digest,
        )

    async def apply_rules(self, item: JudgedItem, ask: Ask | None, previous: PreviousReplies | None) -> Ruled:
        assert self.rules is not None
        return await self.rules.apply(item, ask if self.metric.judges else None, previous)

    async def read(self, judge: int, content: str, finish_reason: str | None) -> Parsed:
        parser = self._parsers[judge]
        if not parser.sandbox_script:
            return parser.read(content, finish_reason)
        outcome = await self._searches[judge](parser.readable(content))
        if outcome.failure is not None:
            return Parsed(None, sandbox_failure(outcome.failure, "parser").code)
        return parser.conclude(outcome.result if isinstance(outcome.result, str) else None)

    def flags(self, item: JudgedItem) -> tuple[str, ...]:
        """Check the parts of the answers that the judges see; reasoning only if a template includes it."""
        shown = (answer.get(name) for answer in item.answers for name in self._shown_fields)
        injected = any(isinstance(text, str) and holds_verdict(text) for text in shown)
        return (INJECTED_VERDICT,) if injected else ()

    def _render(self, template: str, contexts: list[Context]) -> list[str | Failure]:
        items = [render_item(context, self.metric) for context in contexts]
        return [
            (rendered.text or "") if rendered.error is None else sandbox_failure(rendered.error, "prompt")
            for rendered in render(self.sandbox, template, items, self.metric.undefined)
        ]

    def _search(self, parser: Parser, texts: list[str]) -> list[ScriptOutcome]:
        """Run a user's regular expression in the sandbox, because it may never terminate."""
        items: list[tuple[dict[str, Any], dict[str, Any]]] = [({}, {"content": text}) for text in texts]
        return run_preprocess(self.sandbox, parser.sandbox_script, items)

    def _run_script(self, script: Script, contexts: list[Context]) -> list[ScriptResult]:
        items = [script_arguments(self.metric.judges, context) for context in contexts]
        each_alone = self.metric.sandbox == "item"
        outcomes = run_script(self.sandbox, script.kind, script.source, items, each_alone=each_alone)
        return [script_result(script.kind, outcome) for outcome in outcomes]


class RuleEffects:
    """One metric's rule program, parsed once."""

    def __init__(self, metric: MetricDefinition, sandbox: Sandbox, in_sandbox: RunInThread) -> None:
        reading = read_program(metric.rules)
        self.program = reading.program
        errors = [f"{error.place.line}: {error.code}" for error in reading.errors[:1]]
        self._broken = Ruled(Outcome.error("rules_invalid", "".join(errors)))  # if there is no program
        self.sandbox, self.in_sandbox = sandbox, in_sandbox
        self.each_alone = metric.sandbox == "item"
        rules = self.program.rules if self.program else ()
        mechanical = all(rule.function.by == "machine" for rule in rules)
        self.alone = mechanical and not metric.scripts
        self._blocks: dict[str, Batcher[BlockCall, Scored | Reason]] = {}

    def result(self, item: JudgedItem) -> JudgementResult:
        """Score an item with an `alone` program, which needs no script, block or judge."""
        return result_by_rules(ruled(evaluate(self.program, item)) if self.program else self._broken)

    async def apply(self, item: JudgedItem, ask: AskLines | None, previous: PreviousReplies | None) -> Ruled:
        """Score an item. With `previous`, earlier judge replies are reused and no request is sent. `ask` is None if
        the metric has no judge model."""
        if self.program is None:
            return self._broken
        if previous is not None:
            ask = _replayed(previous.calls)
        return await judge_by_rules(self.program, item, self._run, ask)

    async def _run(self, call: BlockCall) -> Scored | Reason:
        label = call.code.label
        if label not in self._blocks:
            work = partial(run_code, self.sandbox, call.code, each_alone=self.each_alone)
            self._blocks[label] = Batcher(self.in_sandbox, work)
        return await self._blocks[label](call)


def _replayed(calls: Sequence[JudgeCall]) -> AskLines:
    """Return an Ask that replays an earlier attempt's replies. They are matched by prompt, because line numbers
    differ if the program has changed."""
    by_prompt: dict[str, list[JudgeCall]] = {}
    for call in calls:
        by_prompt.setdefault(prompt_of(call.request), []).append(call)

    async def ask(questions: Sequence[Question]) -> list[JudgeCall | None]:
        return [
            by_prompt[question.prompt].pop(0) if by_prompt.get(question.prompt) else None
            for question in questions
        ]

    return ask


def place_of(question: Question) -> str:
    """Which of a judgement's questions it is."""
    return f"{question.judge}-{question.repeat}-{int(question.swapped)}-{question.criterion}"


def sandbox_failure(failure: SandboxFailure, what: str) -> Failure:
    """A failure with a code like prompt_undefined; the detail includes the line in the user's source."""
    place = f" (line {failure.line})" if failure.line else ""
    return Failure(f"{what}_{failure.code}", failure.message + place)


def as_judge_call(
    question: Question, request: Request, ask_result: AskResult | Failure, model: ModelConnection, digest: str
) -> JudgeCall:
    """The record stored with a judgement: the client's result, or why the request could not be sent."""
    record = partial(
        JudgeCall,
        question.judge,
        question.repeat,
        endpoint=model.endpoint,
        swapped=question.swapped,
        criterion=question.criterion,
    )
    if isinstance(ask_result, Failure):
        return record(request, None, ask_result, [])
    error = ask_result.error if ask_result.reply_to_read is None else None
    reply = ask_result.reply_to_read or ask_result.reply
    return record(
        ask_result.request,
        _seen(reply) if reply else None,
        Failure(error.code, error.message) if error else None,
        [call.record() for call in ask_result.calls],
        seconds=ask_result.seconds,
        first_token_seconds=ask_result.first_token_seconds,
        prompt_tokens=ask_result.usage.prompt_tokens,
        completion_tokens=ask_result.usage.completion_tokens,
        digest=digest,
    )


def _seen(reply: Reply) -> dict[str, Any]:
    of_server = {name: said for name in OF_SERVER if (said := getattr(reply, name))}
    return {name: getattr(reply, name) for name in _REPLY_SEEN} | of_server
