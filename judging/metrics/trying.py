"""«Try on this row»: the prompt sent to the judge model for real, its reply told as it comes; nothing is stored."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from evalsite.secrets import Undecryptable
from judging.core.jail.keeper import JailBroken
from judging.core.jail.pool import JailRefused
from judging.core.judges.client import open_client
from judging.core.judges.errors import JudgeError
from judging.core.judges.patience import Asked, RetryPolicy, ask_patiently
from judging.core.judges.settings import JudgeSettings, Timeouts, build_request
from judging.core.pipeline import JudgeModel, MetricDefinition
from judging.core.replies import Parsed, Parser, make_parser
from judging.core.scripts import ScriptOutcome, run_preprocess
from judging.metrics.models import Endpoint
from judging.metrics.preview import shared_jail
from judging.runs.lanes import judge_settings

TIMEOUTS = Timeouts(connect=5.0, first_byte=60.0, idle=30.0, whole=120.0)
POLICY = RetryPolicy(tries=2, longest_retry_after=10.0)
ALTOGETHER = 150.0  # seconds, with what is tried again

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
    asked: Asked | None = None
    parsed: Parsed | None = None
    code: str = ""
    detail: str = ""

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


def try_prompt(
    settings: JudgeSettings, metric: MetricDefinition, judge: JudgeModel, prompt: str
) -> Iterator[Text | Trial]:
    """The reply's pieces as they come, at the end a Trial. Closing the iterator ends the call.

    Uses no database, so that it may run while a response is being streamed.
    """
    request = build_request(settings, prompt)
    if not _turns.acquire(timeout=5):
        yield Trial(request, code="busy_here")
        return
    try:
        with _Call(settings, request) as call:
            yield from call.pieces()
            asked = call.asked()
        yield concluded(request, asked, metric, judge)
    finally:
        _turns.release()


class _Call:
    """One question in an event loop of its own thread."""

    def __init__(self, settings: JudgeSettings, request: dict[str, Any]) -> None:
        self._settings, self._request = settings, request
        self._said: queue.SimpleQueue[Text | None] = queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> _Call:
        self._thread.start()
        self._future: Future[Asked] = asyncio.run_coroutine_threadsafe(self._ask(), self._loop)
        self._future.add_done_callback(lambda _: self._said.put(None))
        return self

    def __exit__(self, *_: object) -> None:
        self._future.cancel()
        asyncio.run_coroutine_threadsafe(_settled(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _ask(self) -> Asked:
        async with asyncio.timeout(ALTOGETHER), open_client(self._settings) as client:
            return await ask_patiently(
                client,
                self._settings,
                self._request,
                policy=POLICY,
                on_text=lambda kind, text: self._said.put(Text(kind, text)),
            )

    def pieces(self) -> Iterator[Text]:
        while (said := self._said.get()) is not None:
            yield said

    def asked(self) -> Asked | JudgeError | TimeoutError:
        try:
            return self._future.result(0)
        except (JudgeError, TimeoutError) as error:
            return error


async def _settled() -> None:
    """Lets what was cancelled close its connection before the loop is closed."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.wait(others, timeout=5) if others else None


def concluded(
    request: dict[str, Any],
    asked: Asked | JudgeError | TimeoutError,
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
    return Trial(asked.request, asked, parsed, code=parsed.reason)


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
