"""Stored judge replies of earlier attempts, in the form that the pipeline re-parses."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from judging.core.results import Failure, JudgeCall, PreviousReplies, ScriptResult
from judging.records import json_text
from judging.records.models import Judgement, JudgeReply


def previous_replies(attempts: Collection[int], *, requests: bool = True) -> dict[int, PreviousReplies]:
    """Replies and script results in order, by the id of the attempt that requested them. `requests`: include the
    requests, which scripts see."""
    if not attempts:
        return {}
    replies: dict[int, list[JudgeCall]] = {pk: [] for pk in attempts}
    judge_replies = JudgeReply.objects.filter(judgement__in=attempts).order_by("judge", "repeat", "swapped")
    for reply in judge_replies.defer("calls") if requests else judge_replies.defer("calls", "request"):
        replies[reply.judgement_id].append(judge_call(reply, request=requests))
    stored = Judgement.objects.filter(pk__in=attempts).values_list("pk", "scripts")
    return {pk: PreviousReplies(tuple(replies[pk]), script_results(scripts)) for pk, scripts in stored}


def judge_call(reply: JudgeReply, *, request: bool = True) -> JudgeCall:
    """A stored reply as a JudgeCall, without its HTTP attempts and optionally without its request."""
    seen = {
        "content": reply.content,
        "reasoning_content": reply.reasoning,
        "tool_calls": None,
        **(json_text.loads(reply.extra) if reply.extra else {}),
    }
    return JudgeCall(
        reply.judge,
        reply.repeat,
        json_text.loads(reply.request) if request else {},
        seen,
        Failure(reply.error, reply.detail) if reply.error else None,
        [],
        endpoint=reply.endpoint_id,
        swapped=reply.swapped,
    )


def script_results(scripts: str) -> tuple[ScriptResult, ...]:
    """The results stored in a judgement's `scripts`."""
    stored: list[dict[str, Any]] = json_text.loads(scripts) or []
    return tuple(
        ScriptResult(
            **fields | {"failure": Failure(**failure) if (failure := fields.get("failure")) else None}
        )
        for fields in stored
    )
