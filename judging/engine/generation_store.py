"""Storage of generated answers.

All judgements of a response share one call, which is stored in the transaction of the first of them, or earlier. If
another worker's answer was stored first, it wins, and judgements of this worker's answer are not stored.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.db.models import F

from judging.core.results import Failure
from judging.records.json_text import as_json, storable
from judging.records.models import RunCandidate

_ANSWER = "UPDATE datasets_response SET raw = %s WHERE id = %s AND raw = ''"
_COLUMNS = (
    "run_id, response_id, state, error, detail, endpoint_id, request, calls, prompt_tokens, completion_tokens, "
    "seconds, first_token_seconds, finish_reason, model, finished_at, attempt"
)
_GENERATION = f"""
INSERT INTO judging_generation ({_COLUMNS})
VALUES ({"%s, " * 15} (SELECT COALESCE(MAX(g.attempt), 0) + 1 FROM judging_generation g WHERE g.response_id = %s))
"""  # noqa: S608 (constants only)


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A response without an answer yet; `number` counts from 1 within row and candidate.

    `is_other`: it is the second answer of a comparison.
    """

    response: int
    candidate: int
    number: int
    is_other: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Generated:
    """One attempt at an answer, made while `chunk` was held. `raw`: the response's JSON text, '' if it failed."""

    of: Unanswered
    run: int
    chunk: int
    raw: str
    failure: Failure | None
    request: dict[str, Any]
    calls: list[dict[str, Any]] = field(default_factory=list)
    endpoint: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float = 0.0
    first_token_seconds: float | None = None
    finish_reason: str = ""
    model: str = ""

    @property
    def why(self) -> str:
        """Why there is no answer: error code and detail; '' if there is one."""
        return f"{self.failure.code}: {self.failure.detail}".rstrip(": ") if self.failure else ""


def write(generated: Sequence[Generated], held: Collection[int]) -> set[Generated]:
    """Store attempts whose chunks are still held, in the caller's transaction. Returns the lost ones, whose chunk is no
    longer held or for which another worker's answer was stored first."""
    stored: list[Generated] = []
    lost: set[Generated] = set()
    with connection.cursor() as cursor:
        # In the same order in every worker, to prevent deadlocks.
        for attempt in sorted(generated, key=lambda attempt: attempt.of.response):
            # A failed attempt writes an empty answer, so that it also waits for concurrent writers here.
            if attempt.chunk in held and _write_answer(cursor, attempt):
                stored.append(attempt)
            else:
                lost.add(attempt)
        if stored:
            cursor.executemany(_GENERATION, [_row(attempt) for attempt in stored])
    for run, candidate in sorted({(attempt.run, attempt.of.candidate) for attempt in stored}):
        _count(
            run,
            candidate,
            [attempt for attempt in stored if (attempt.run, attempt.of.candidate) == (run, candidate)],
        )
    return lost


def _write_answer(cursor: Any, attempt: Generated) -> bool:
    cursor.execute(_ANSWER, [attempt.raw, attempt.of.response])
    return bool(cursor.rowcount)


def _row(attempt: Generated) -> tuple[Any, ...]:
    return (
        attempt.run,
        attempt.of.response,
        "failed" if attempt.failure else "answered",
        attempt.failure.code if attempt.failure else "",
        storable(attempt.failure.detail if attempt.failure else ""),
        attempt.endpoint,
        as_json(attempt.request),
        as_json(attempt.calls),
        attempt.prompt_tokens,
        attempt.completion_tokens,
        attempt.seconds,
        attempt.first_token_seconds,
        (storable(attempt.finish_reason) or "")[:100],
        (storable(attempt.model) or "")[:300],
        time.time(),
        attempt.of.response,
    )


def _count(run: int, candidate: int, stored: Sequence[Generated]) -> None:
    failed = sum(attempt.failure is not None for attempt in stored)
    RunCandidate.objects.filter(run=run, candidate=candidate).update(
        answered=F("answered") + len(stored) - failed,
        failed=F("failed") + failed,
        calls=F("calls") + sum(len(attempt.calls) for attempt in stored),
        prompt_tokens=F("prompt_tokens") + sum(attempt.prompt_tokens or 0 for attempt in stored),
        completion_tokens=F("completion_tokens") + sum(attempt.completion_tokens or 0 for attempt in stored),
    )
