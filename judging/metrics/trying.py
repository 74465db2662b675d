"""«Try on this row»: the prompt sent to the judge model for real, its reply told as it comes; nothing is stored."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalsite.secrets import Undecryptable
from judging.core.jail.keeper import JailBroken
from judging.core.jail.pool import JailRefused
from judging.core.judges.client import open_client
from judging.core.judges.errors import JudgeError
from judging.core.judges.retry import AskResult, Guard, RetryPolicy, ask_with_retries
from judging.core.judges.settings import JudgeSettings, Timeouts, build_request
from judging.core.pipeline import JudgeModel, MetricDefinition
from judging.core.replies import Parsed, Parser, make_parser, why_unread
from judging.core.scripts import ScriptOutcome, run_preprocess
from judging.endpoints.client_pool import default_concurrency, judge_settings
from judging.endpoints.limiter import endpoint_key
from judging.endpoints.manual_calls import Say, Turn, Waiting, Work
from judging.endpoints.manual_calls import Trial as Calls
from judging.endpoints.models import Endpoint
from judging.metrics.preview import shared_jail

TIMEOUTS = Timeouts(connect=5.0, first_byte=60.0, idle=30.0, whole=120.0)
POLICY = RetryPolicy(tries=2, longest_retry_after=10.0)
ALTOGETHER = 150.0  # seconds, with what is waited for and tried again
PATIENCE = 20.0  # seconds that a trial waits for a slot and its pace, beside the runs

# Each try holds a web thread until the reply has come: some must be left for everybody else.
_turns = threading.BoundedSemaphore(2)


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the reply, as it came; `kind` is content or reasoning."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Trial:
    """How it ended: a reply with what was read from it, or a code and words why there is none."""

    request: dict[str, Any]
    asked: AskResult | None = None
    parsed: Parsed | None = None
    code: str = ""
    detail: str = ""
    waited: float = 0.0  # seconds, for its turn

    @property
    def seconds(self) -> float:
        return sum(call.seconds + call.waited for call in self.asked.calls) if self.asked else 0.0


def settings_for(judge: JudgeModel) -> tuple[JudgeSettings | None, str, str]:
    """How a judge model would be asked now; or None with the code and detail of what is in the way."""
    row = Endpoint.objects.filter(pk=judge.endpoint).first() if judge.endpoint else None
    if row is None and not judge.url:
        return None, "no_endpoint", ""
    if judge.api_key_env and not os.environ.get(judge.api_key_env):
        return None, "key_missing", judge.api_key_env
    if row is not None:
        judge = replace_address(judge, row)
    try:
        return replace(judge_settings(judge, row), timeouts=TIMEOUTS), "", ""
    except Undecryptable:
        return None, "key_unreadable", ""


def replace_address(judge: JudgeModel, row: Endpoint) -> JudgeModel:
    """The judge model with its endpoint's address, model and parameters, as a run would freeze them."""
    return JudgeModel(
        name=judge.name,
        template=judge.template,
        url=row.url,
        model=row.model,
        params={**row.params, **judge.params},
        system_prompt=judge.system_prompt,
    )


def turn_for(judge: JudgeModel) -> Turn:
    """A place among the calls that runs make to the same endpoint."""
    return Turn(endpoint_key(judge), judge.endpoint, default_concurrency(), patience=PATIENCE)


def try_prompt(
    settings: JudgeSettings, metric: MetricDefinition, judge: JudgeModel, prompt: str
) -> Iterator[Text | Waiting | Trial]:
    """The reply's pieces as they come and what is waited for before, at the end a Trial. Closing the iterator ends
    the call."""
    request = build_request(settings, prompt)
    if not _turns.acquire(timeout=5):
        yield Trial(request, code="busy_here")
        return
    try:
        with Calls(turn_for(judge), _asking(settings, request)) as calls:
            yield from calls.said()
            asked: AskResult | TimeoutError | JudgeError
            try:
                asked = calls.result()
            except (JudgeError, TimeoutError) as error:
                asked = error
        yield replace(concluded(request, asked, metric, judge), waited=calls.turn.waited)
    finally:
        _turns.release()


def _asking(settings: JudgeSettings, request: dict[str, Any]) -> Work[AskResult]:
    async def work(watch: Guard, say: Say) -> AskResult:
        async with asyncio.timeout(ALTOGETHER), open_client(settings) as client:
            return await ask_with_retries(
                client,
                settings,
                request,
                policy=POLICY,
                watch=watch,
                on_text=lambda kind, text: say(Text(kind, text)),
            )

    return work


def concluded(
    request: dict[str, Any],
    asked: AskResult | JudgeError | TimeoutError,
    metric: MetricDefinition,
    judge: JudgeModel,
) -> Trial:
    """What is read from the reply, as a run would read it."""
    if isinstance(asked, TimeoutError):
        return Trial(request, code="timeout_whole")
    if isinstance(asked, JudgeError):
        return Trial(request, code=asked.code, detail=asked.message)
    if asked.error is not None:
        return Trial(asked.request, asked, code=asked.error.code, detail=asked.error.message)
    assert asked.reply is not None
    parsed = read_reply(metric, judge, asked.reply.content)
    why_not = why_unread(parsed.reason, asked.reply.finish_reason)
    return Trial(asked.request, asked, parsed, code=why_not)


def read_reply(metric: MetricDefinition, judge: JudgeModel, content: str) -> Parsed:
    """The score in a reply; a user's regular expression is searched for in the jail."""
    (parsed,) = read_replies(make_parser(judge.parse, metric.min_score, metric.max_score), [content])
    return parsed


def read_replies(parser: Parser, contents: Sequence[str]) -> list[Parsed]:
    """The scores in several replies, one each."""
    if not parser.jail_script:
        return [parser(content) for content in contents]
    items: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {"content": parser.readable(content)}) for content in contents
    ]
    try:
        found = run_preprocess(shared_jail(), parser.jail_script, items)
    except (JailRefused, JailBroken):
        return [Parsed(None, "script_refused")] * len(items)
    return [_concluded(parser, one) for one in found]


def _concluded(parser: Parser, found: ScriptOutcome) -> Parsed:
    if found.failure is not None:
        return Parsed(None, f"parser_{found.failure.code}")
    return parser.conclude(found.result if isinstance(found.result, str) else None)
