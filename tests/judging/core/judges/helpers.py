"""Helpers that send one judge request from a test, each in a new event loop."""

import asyncio
from collections.abc import Mapping
from random import Random
from typing import Any

from judging.core.judges.client import NO_GUARD, AskResult, RetryPolicy, ask, ask_with_retries
from judging.core.judges.errors import JudgeError
from judging.core.judges.http_clients import open_client
from judging.core.judges.probe import Probe, probe
from judging.core.judges.protocols import CHAT
from judging.core.judges.reply import Reply
from judging.core.judges.settings import JudgeSettings, Timeouts, build_request

PARAMS = {"temperature": 0, "max_tokens": 9, "top_p": 0.5, "stop": ["x"]}
LONG_TIMEOUTS = Timeouts(connect=60, first_byte=60, idle=60, whole=60)
"""Long timeouts, so that a slow machine does not fail tests that are not about timeouts."""


def settings_for(url: str, **fields: Any) -> JudgeSettings:
    return JudgeSettings(**{"url": url, "model": "m", "api_key": "sk-secret-key", **fields})


def probed(url: str, **fields: Any) -> Probe:
    return asyncio.run(probe(settings_for(url, **fields)))


def ask_once(url: str, prompt: str = "hi", on_text: Any = None, **fields: Any) -> Reply:
    settings = settings_for(url, **fields)

    async def once() -> Reply:
        async with open_client(settings) as client:
            return await ask(client, settings, build_request(settings, prompt), on_text=on_text)

    return asyncio.run(once())


def failure_of(url: str, **fields: Any) -> JudgeError:
    try:
        reply = ask_once(url, **fields)
    except JudgeError as error:
        return error
    raise AssertionError(f"answered {reply}")


class Pauses(list[float]):
    """A fake sleep that returns at once and records the requested durations."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def ask_until_done(
    url: str,
    pauses: Pauses | None = None,
    guard: Any = NO_GUARD,
    system_prompt: str | None = None,
    protocol: str = CHAT,
    params: Mapping[str, Any] = PARAMS,
    **policy: Any,
) -> AskResult:
    settings = settings_for(
        url, params=params, timeouts=LONG_TIMEOUTS, system_prompt=system_prompt, protocol=protocol
    )

    async def in_client() -> AskResult:
        async with open_client(settings) as client:
            return await ask_with_retries(
                client,
                settings,
                build_request(settings, "hi"),
                policy=RetryPolicy(**policy),
                sleep=Pauses() if pauses is None else pauses,
                random=Random(1),
                guard=guard,
            )

    return asyncio.run(in_client())
