"""Stored judge replies of earlier attempts, in the form that the pipeline re-parses."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import OuterRef, Q, Subquery

from judging.core.results import (
    Failure,
    JudgeCall,
    JudgementResult,
    PreviousReplies,
    ScriptResult,
    Verdict,
)
from judging.core.values import Outcome, value_of
from judging.records import json_text
from judging.records.models import Judgement, JudgeReply


def previous_replies(attempts: Collection[int], *, requests: bool = True) -> dict[int, PreviousReplies]:
    """Replies and script results in order, by the id of the attempt that requested them. `requests`: include the
    requests, which scripts see."""
    if not attempts:
        return {}
    replies: dict[int, list[JudgeCall]] = {pk: [] for pk in attempts}
    judge_replies = JudgeReply.objects.filter(judgement__in=attempts).order_by(
        "judge", "repeat", "swapped", "criterion"
    )
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
        criterion=reply.criterion,
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


def results_before(attempts: Collection[int]) -> dict[int, JudgementResult]:
    """The stored result of the attempt before each of these attempts, by the id of the later one; without the lines of
    rule programs."""
    if not attempts:
        return {}
    of_same_answers = Q(other_response=OuterRef("other_response")) | Q(other_response=None)
    before = Judgement.objects.filter(
        of_same_answers,
        run_metric=OuterRef("run_metric"),
        response=OuterRef("response"),
        attempt=OuterRef("attempt") - 1,
    )
    pairs = Judgement.objects.filter(pk__in=attempts).annotate(before=Subquery(before.values("pk")[:1]))
    earlier = {pk: earlier for pk, earlier in pairs.values_list("pk", "before") if earlier}
    stored = Judgement.objects.in_bulk(list(earlier.values()))
    return {pk: stored_result(stored[before]) for pk, before in earlier.items()}


def stored_result(judgement: Judgement) -> JudgementResult:
    """The stored result of a judgement, without its calls and the lines of a rule program."""
    return JudgementResult(
        Outcome(judgement.state, value_of(judgement.value), judgement.reason, judgement.detail),
        verdicts=tuple(Verdict(**fields) for fields in json_text.loads(judgement.verdicts) or ()),
        scripts=script_results(judgement.scripts),
        flags=tuple(judgement.flags.split(",")) if judgement.flags else (),
        seconds=judgement.seconds or 0.0,
        checklist=judgement.checklist,
    )
