"""The effects of a story, batched: rendering and scripts in the sandbox, asking through an endpoint's slots."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from judging.core.judges.replies import Reply
from judging.core.judges.retry import AskResult, RequestAttempt
from judging.core.judges.settings import build_request
from judging.core.pipeline import (
    AskedJudge,
    Context,
    Failure,
    Heard,
    Item,
    MetricDefinition,
    Question,
    Ruled,
    ScriptResult,
)
from judging.core.planted import planted_verdict
from judging.core.prompts import Rendered, names_of, render
from judging.core.replies import Parser, make_parser
from judging.core.sandbox.job import Failure as SandboxFailure
from judging.core.sandbox.pool import Sandbox
from judging.core.scripts import ScriptKind, ScriptOutcome, failure_detail, run_postprocess, run_preprocess
from judging.core.template_context import postprocess_arguments, render_item
from judging.core.values import Value
from judging.endpoints.client_pool import ModelConnection
from judging.endpoints.requests import Caller
from judging.runs.batcher import Batcher
from judging.runs.reply_cache import ReplyCache
from judging.runs.rule_tools import RuleTools
from judging.runs.store import Seen

Asks = TypeVar("Asks")
Answer = TypeVar("Answer")
_OF_OTHERS = ("judge_resps", "judge_reqs")


class MetricTools:
    """Implements core.pipeline.Tools for one metric of one run."""

    def __init__(
        self,
        metric: MetricDefinition,
        lanes: list[ModelConnection],
        caller: Caller,
        sandbox: Sandbox,
        threads: ThreadPoolExecutor,
        cache: ReplyCache | None = None,
    ) -> None:
        self.metric = metric
        self.cache = cache
        self.lanes = lanes
        self.caller = caller
        self.sandbox = sandbox
        self.threads = threads
        self._builds: tuple[bool, ...] | None = None
        self._renders = [self._batched(self._render(number)) for number in range(len(metric.judges))]
        self._before = self._batched(self._preprocess)
        self._after = self._batched(self._postprocess)
        self._parsers = [
            make_parser(judge.parse, metric.min_score, metric.max_score) for judge in metric.judges
        ]
        self._searches = [self._batched(self._search(parser)) for parser in self._parsers]
        reasoning = any("reasoning_content" in judge.template for judge in metric.judges)
        self._shown = ("content", "reasoning_content") if reasoning else ("content",)
        ask = self.ask if metric.judges else None
        self.rules = RuleTools(metric, sandbox, threads, ask) if metric.rules else None

    @property
    def alone(self) -> RuleTools | None:
        """The metric's rule program, if it needs neither scripts nor judges: it can be asked outside the loop."""
        return self.rules if self.rules and self.rules.alone else None

    @property
    def seen(self) -> Seen:
        """As what it wants to see a row's numbers. No script or template sees what a program judges alone."""
        if self.rules is None:
            return "plain"
        return "exact" if self.rules.alone else "both"

    async def preprocess(self, context: Context) -> ScriptResult:
        return await self._before(context)

    async def postprocess(self, context: Context) -> ScriptResult:
        return await self._after(context)

    async def apply_rules(self, context: Context, heard: Heard | None) -> Ruled:
        assert self.rules is not None
        return await self.rules.apply(context.item, heard.asked if heard else None)

    async def render(self, judge: int, context: Context) -> str | Failure:
        return await self._renders[judge](context)

    async def builds_on_others(self) -> tuple[bool, ...]:
        if self._builds is None:
            self._builds = await asyncio.get_running_loop().run_in_executor(self.threads, self._find_builds)
        return self._builds

    def _find_builds(self) -> tuple[bool, ...]:
        """A template that has no names because it has a syntax error is told of when it is rendered."""
        found = (names_of(self.sandbox, judge.template)[0].used for judge in self.metric.judges)
        return tuple(any(one.path[0] in _OF_OTHERS for one in used) for used in found)

    async def ask(self, questions: Sequence[Question]) -> list[AskedJudge]:
        """Abandoned if the run lets go before all of them are under way; those that are, are waited for."""
        story = asyncio.current_task()
        assert story is not None
        if len(questions) == 1:
            return [await self._answer(questions[0], story)]
        answers = await asyncio.gather(
            *(self._answer(one, story) for one in questions), return_exceptions=True
        )
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return [answer for answer in answers if isinstance(answer, AskedJudge)]

    async def _answer(self, question: Question, story: asyncio.Task[Any]) -> AskedJudge:
        lane = self.lanes[question.judge]
        request = build_request(lane.settings, question.prompt)
        digest = self.cache.digest(lane.settings.url, request, question.repeat) if self.cache else ""
        if not self.cache or not digest:
            return await self._answer_anew(question, request, lane, story)
        known = await self.cache.find(digest, question)
        if known is not None:
            return known
        asked: AskedJudge | None = None
        try:
            asked = replace(await self._answer_anew(question, request, lane, story), digest=digest)
        finally:
            self.cache.keep(digest, asked)
        return asked

    async def _answer_anew(
        self, question: Question, request: dict[str, Any], lane: ModelConnection, story: asyncio.Task[Any]
    ) -> AskedJudge:
        asked = await self.caller.call(lane, request, story)
        if isinstance(asked, Failure):
            return not_asked(question, request, lane, asked)
        return as_asked_judge(question, asked, lane)

    async def read(self, judge: int, content: str) -> tuple[Value | None, str]:
        parser = self._parsers[judge]
        if not parser.sandbox_script:
            parsed = parser(content)
            return parsed.value, parsed.reason
        found = await self._searches[judge](parser.readable(content))
        if found.failure is not None:
            return None, sandbox_failure(found.failure, "parser").code
        parsed = parser.conclude(found.result if isinstance(found.result, str) else None)
        return parsed.value, parsed.reason

    def flags(self, item: Item) -> tuple[str, ...]:
        """Only what a judge is shown is looked at: the reasoning where a template shows it."""
        shown = (item.response.get(name) for name in self._shown)
        planted = any(isinstance(text, str) and planted_verdict(text) for text in shown)
        return ("planted_verdict",) if planted else ()

    def _batched(self, work: Callable[[list[Asks]], list[Answer]]) -> Batcher[Asks, Answer]:
        async def in_thread(questions: list[Asks]) -> list[Answer]:
            return await asyncio.get_running_loop().run_in_executor(self.threads, work, questions)

        return Batcher(in_thread)

    def _render(self, judge: int) -> Callable[[list[Context]], list[str | Failure]]:
        template = self.metric.judges[judge].template

        def work(contexts: list[Context]) -> list[str | Failure]:
            items = [render_item(context, self.metric) for context in contexts]
            return [
                prompt_or_failure(one) for one in render(self.sandbox, template, items, self.metric.undefined)
            ]

        return work

    def _search(self, parser: Parser) -> Callable[[list[str]], list[ScriptOutcome]]:
        """A user's regular expression, which may take for ever, runs where scripts run."""

        def work(texts: list[str]) -> list[ScriptOutcome]:
            return run_preprocess(
                self.sandbox, parser.sandbox_script, [({}, {"content": text}) for text in texts]
            )

        return work

    def _preprocess(self, contexts: list[Context]) -> list[ScriptResult]:
        items = [(context.item.data, context.item.response) for context in contexts]
        alone = self.metric.sandbox == "item"
        return [
            script_result("preprocess", one)
            for one in run_preprocess(self.sandbox, self.metric.preprocess, items, each_alone=alone)
        ]

    def _postprocess(self, contexts: list[Context]) -> list[ScriptResult]:
        items = [postprocess_arguments(self.metric, context) for context in contexts]
        alone = self.metric.sandbox == "item"
        return [
            script_result("postprocess", one)
            for one in run_postprocess(self.sandbox, self.metric.postprocess, items, each_alone=alone)
        ]


def prompt_or_failure(rendered: Rendered) -> str | Failure:
    if rendered.error is not None:
        return sandbox_failure(rendered.error, "prompt")
    assert rendered.text is not None
    return rendered.text


def sandbox_failure(failure: SandboxFailure, what: str) -> Failure:
    """Codes such as prompt_undefined or script_timeout; the detail names the line of the user's own source."""
    place = f" (line {failure.line})" if failure.line else ""
    return Failure(f"{what}_{failure.code}", failure.message + place)


def script_result(kind: ScriptKind, outcome: ScriptOutcome) -> ScriptResult:
    met = outcome.failure
    failure = Failure(f"script_{met.code}", failure_detail(kind, met)) if met else None
    return ScriptResult(outcome.result, outcome.changed, outcome.printed, failure, met.line if met else None)


def not_asked(question: Question, request: dict[str, Any], lane: ModelConnection, why: Failure) -> AskedJudge:
    """A question that could not be sent."""
    return AskedJudge(
        question.judge,
        question.repeat,
        request,
        None,
        why,
        [],
        endpoint=lane.endpoint,
        swapped=question.swapped,
    )


def as_asked_judge(question: Question, asked: AskResult, lane: ModelConnection) -> AskedJudge:
    """The client's answer as the story keeps it."""
    reply, error = asked.reply, asked.error
    return AskedJudge(
        question.judge,
        question.repeat,
        asked.request,
        reply_seen(reply) if reply else None,
        Failure(error.code, error.message) if error else None,
        [call_seen(call) for call in asked.calls],
        seconds=reply.seconds if reply else sum(call.seconds for call in asked.calls),
        first_token_seconds=reply.first_token_seconds if reply else None,
        prompt_tokens=reply.usage.prompt_tokens if reply else None,
        completion_tokens=reply.usage.completion_tokens if reply else None,
        endpoint=lane.endpoint,
        swapped=question.swapped,
    )


def call_seen(call: RequestAttempt) -> dict[str, Any]:
    """One HTTP try, as it is kept: what there is nothing to say of is left out."""
    seen: dict[str, Any] = {"started_unix": call.started_unix, "seconds": call.seconds, "status": call.status}
    if call.error_code:
        seen |= {"error_code": call.error_code, "message": call.message, "waited": call.waited}
    return seen


def reply_seen(reply: Reply) -> dict[str, Any]:
    """A judge's reply as templates, scripts and pages see it."""
    return {
        "content": reply.content,
        "reasoning_content": reply.reasoning_content,
        "tool_calls": reply.tool_calls,
        "finish_reason": reply.finish_reason,
        "model": reply.model,
    }
