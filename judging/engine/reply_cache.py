"""Reply cache: within a project, identical requests to the same judge are sent once, if the run allows it.

By default only requests at temperature 0 are cached; with `any_temperature`, the others too. The key covers the URL,
every byte of the request and the repeat number, because three repeats need three replies.
"""

from __future__ import annotations

import asyncio
import hashlib
from functools import partial

import msgspec

from judging.core.judges.addresses import chat_url
from judging.core.judges.errors import JudgeError
from judging.core.judges.settings import Request
from judging.core.results import JudgeCall, Question
from judging.endpoints.gate import RunInThread
from judging.engine.threads import Batcher
from judging.records.models import CachedReply
from judging.records.stored_replies import judge_call

RECENT = 2000  # replies held in memory until they are in the database


def digest_of(url: str, request: Request, repeat: int, *, any_temperature: bool = False) -> str:
    """The cache key of a request; '' if it cannot be sent, or if its temperature is not 0 and not `any_temperature`."""
    if not any_temperature and request.get("temperature") != 0:
        return ""
    try:
        body = msgspec.json.encode(request, order="sorted")
        return hashlib.sha256(b"%s\n%d\n%s" % (chat_url(url).encode(), repeat, body)).hexdigest()
    except (UnicodeEncodeError, JudgeError):
        return ""


def cached_replies(project: int, digests: list[str]) -> list[JudgeCall | None]:
    """The cached reply for each digest, or None."""
    entries = CachedReply.objects.filter(project=project, digest__in=digests).select_related("reply")
    by_digest = {entry.digest: judge_call(entry.reply) for entry in entries}
    return [by_digest.get(digest) for digest in digests]


class ReplyCache:
    """The reply cache of one run in one worker."""

    def __init__(self, project: int, in_thread: RunInThread, *, any_temperature: bool = False) -> None:
        self._look_up = Batcher(in_thread, partial(cached_replies, project))
        self._any_temperature = any_temperature
        self._asking: dict[str, asyncio.Event] = {}
        self._recent: dict[str, JudgeCall] = {}

    def digest(self, url: str, request: Request, repeat: int) -> str:
        """The request's cache key; '' if it must always be sent."""
        return digest_of(url, request, repeat, any_temperature=self._any_temperature)

    async def find(self, digest: str, question: Question) -> JudgeCall | None:
        """Return a cached reply to `question`, waiting for an identical request in progress. On None, the caller must
        send the request and then call `store`."""
        while True:
            cached = self._recent.get(digest) or await self._look_up(digest)
            if cached is not None:
                return _copy(cached, digest, question)
            if digest not in self._asking:
                self._asking[digest] = asyncio.Event()
                return None
            await self._asking[digest].wait()

    def store(self, digest: str, call: JudgeCall | None) -> None:
        """Store the result of a call. After None or a failure, the next waiting request is sent."""
        if call is not None and call.failure is None:
            self._recent[digest] = call
            if len(self._recent) > RECENT:
                del self._recent[next(iter(self._recent))]
        self._asking.pop(digest).set()


def _copy(cached: JudgeCall, digest: str, question: Question) -> JudgeCall:
    """The reply to `question`: made without calls, free and without delay."""
    return JudgeCall(
        question.judge,
        question.repeat,
        cached.request,
        cached.reply,
        cached.failure,
        [],
        endpoint=cached.endpoint,
        swapped=question.swapped,
        digest=digest,
        copied=True,
    )
