"""Reply cache: within a project, identical requests to the same judge are sent once, if the run allows it.

By default only requests at temperature 0 are cached; with `any_temperature`, the others too. The key covers the URL,
every byte of the request and the repeat number, because three repeats need three replies.
"""

from __future__ import annotations

import asyncio
import hashlib
from functools import partial

import msgspec

from judging.core.judges.errors import JudgeError
from judging.core.judges.settings import Request, chat_url
from judging.core.results import JudgeCall, Question
from judging.endpoints.client import RunInThread
from judging.runs.models import CachedReply
from judging.runs.stored_replies import judge_call
from judging.runs.worker.threads import Batcher

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


def known_replies(project: int, digests: list[str]) -> list[JudgeCall | None]:
    """The cached reply for each digest, or None."""
    found = CachedReply.objects.filter(project=project, digest__in=digests).select_related("reply")
    by_digest = {one.digest: judge_call(one.reply) for one in found}
    return [by_digest.get(digest) for digest in digests]


class ReplyCache:
    """The reply cache of one run in one worker."""

    def __init__(self, project: int, in_thread: RunInThread, *, any_temperature: bool = False) -> None:
        self._look = Batcher(in_thread, partial(known_replies, project))
        self._any_temperature = any_temperature
        self._asking: dict[str, asyncio.Event] = {}
        self._recent: dict[str, JudgeCall] = {}

    def digest(self, url: str, request: Request, repeat: int) -> str:
        """The request's cache key; '' if it must always be sent."""
        return digest_of(url, request, repeat, any_temperature=self._any_temperature)

    async def find(self, digest: str, question: Question) -> JudgeCall | None:
        """Return a cached reply to `question`, waiting for an identical request in progress. On None, the caller must
        send the request and then call `keep`."""
        while True:
            found = self._recent.get(digest) or await self._look(digest)
            if found is not None:
                return _copy(found, digest, question)
            if digest not in self._asking:
                self._asking[digest] = asyncio.Event()
                return None
            await self._asking[digest].wait()

    def keep(self, digest: str, asked: JudgeCall | None) -> None:
        """Store the result of a call. After None or a failure, the next waiting request is sent."""
        if asked is not None and asked.failure is None:
            self._recent[digest] = asked
            if len(self._recent) > RECENT:
                del self._recent[next(iter(self._recent))]
        self._asking.pop(digest).set()


def _copy(found: JudgeCall, digest: str, question: Question) -> JudgeCall:
    """The reply to `question`: made without calls, free and without delay."""
    return JudgeCall(
        question.judge,
        question.repeat,
        found.request,
        found.reply,
        found.failure,
        [],
        endpoint=found.endpoint,
        swapped=question.swapped,
        digest=digest,
        copied=True,
    )
