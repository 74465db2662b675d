"""How the answer came about that a judgement is of: as records and pages tell it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from judging.runs import strict
from judging.runs.models import Generation, Judgement
from judging.runs.worker.generation import ANSWER_FAILED


def tries_at(judgements: Iterable[Judgement]) -> dict[int, list[Generation]]:
    """By response, every try at its answer in order."""
    found: dict[int, list[Generation]] = {}
    responses = {one.response_id for one in judgements}
    for one in Generation.objects.filter(response__in=responses).order_by("response", "attempt"):
        found.setdefault(one.response_id, []).append(one)
    return found


def generation_of(judgement: Judgement, tries: Sequence[Generation]) -> Generation | None:
    """The try that gave the answer, or the one without whose answer the judgement failed."""
    if judgement.finished_at is None:
        return None
    failed = judgement.reason == ANSWER_FAILED
    state = Generation.State.FAILED if failed else Generation.State.ANSWERED
    of_state = [one for one in tries if one.state == state]
    before = [one for one in of_state if not failed or one.finished_at <= judgement.finished_at]
    found = before or of_state
    return found[-1] if found else None


def generation_seen(one: Generation, judgement: Judgement) -> dict[str, Any]:
    """As a record tells it, with the answer; `calls` counts the HTTP tries."""
    tries = strict.loads(one.calls)
    raw = judgement.response.raw
    return {
        "attempt": one.attempt,
        "state": one.state,
        "request": strict.loads(one.request),
        "answer": strict.loads(raw) if raw and one.state == Generation.State.ANSWERED else None,
        "calls": len(tries),
        "tries": tries,
        "seconds": one.seconds,
        "first_token_seconds": one.first_token_seconds,
        "tokens": {"prompt_tokens": one.prompt_tokens, "completion_tokens": one.completion_tokens},
        "finish_reason": one.finish_reason or None,
        "model": one.model or None,
        "error": (f"{one.error}: {one.detail}" if one.detail else one.error) or None,
    }
