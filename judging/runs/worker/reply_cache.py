"""Reuse of replies: within a project, the same request to the same judge is sent once, if the run allows it.

Only requests at temperature 0 are expected to have the same reply; a `warm` cache includes others. The key is
exact: the address, every byte of the request and the number of the repeat, because three repeats need
three replies.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from judging.core.judges.errors import JudgeError
from judging.core.judges.settings import Request, chat_url
from judging.core.results import JudgeCall, Question
from judging.endpoints.client import RunInThread
from judging.runs.models import CachedReply
from judging.runs.stored_replies import judge_call
from judging.runs.worker.threads import Batcher

RECENT = 2000  # replies that are kept until they are stored


def digest_of(url: str, request: Request, repeat: int, *, warm: bool = False) -> str:
    """'' if the judge may reply differently the next time (unless `warm`), or if the request cannot be sent."""
    if not warm and request.get("temperature") != 0:
        return ""
    try:
        body = msgspec.json.encode(request, order="sorted")
        return hashlib.sha256(b"%s\n%d\n%s" % (chat_url(url).encode(), repeat, body)).hexdigest()
    except (UnicodeEncodeError, JudgeError):
        return ""


def known_replies(project: int, digests: list[str]) -> list[JudgeCall | None]:
    """The reply to each of the requests, None for new ones."""
    found = CachedReply.objects.filter(project=project, digest__in=digests).select_related("reply")
    by_digest = {one.digest: judge_call(one.reply) for one in found}
    return [by_digest.get(digest) for digest in digests]


class ReplyCache:
    """Of one run in one worker."""

    def __init__(self, project: int, in_thread: RunInThread, *, warm: bool = False) -> None:
        self._look = Batcher(in_thread, partial(known_replies, project))
        self._warm = warm
        self._asking: dict[str, asyncio.Event] = {}
        self._recent: dict[str, JudgeCall] = {}

    def digest(self, url: str, request: Request, repeat: int) -> str:
        """The request's key; '' if it must be sent in any case."""
        return digest_of(url, request, repeat, warm=self._warm)

    async def find(self, digest: str, question: Question) -> JudgeCall | None:
        """The reply that is known or in progress, as an answer to `question`; None: ask, and then say so by `keep`."""
        while True:
            found = self._recent.get(digest) or await self._look(digest)
            if found is not None:
                return _copy(found, digest, question)
            if digest not in self._asking:
                self._asking[digest] = asyncio.Event()
                return None
            await self._asking[digest].wait()

    def keep(self, digest: str, asked: JudgeCall | None) -> None:
        """Store the result of a call; after None or a failure the next request is sent."""
        if asked is not None and asked.failure is None:
            self._recent[digest] = asked
            if len(self._recent) > RECENT:
                del self._recent[next(iter(self._recent))]
        self._asking.pop(digest).set()


def _copy(found: JudgeCall, digest: str, question: Question) -> JudgeCall:
    place: dict[str, Any] = {
        "judge": question.judge,
        "repeat": question.repeat,
        "swapped": question.swapped,
    }
    nothing: dict[str, Any] = {"calls": [], "seconds": 0.0, "first_token_seconds": None}
    unpaid: dict[str, Any] = {"prompt_tokens": None, "completion_tokens": None}
    return replace(found, **place, **nothing, **unpaid, digest=digest, copied=True)
