"""Calls that generate a run's answers, and how they are stored.

The judgements of a response share one call. It is stored in the transaction of the first judgement that arrives
with it, or earlier. If another worker was faster, its answer is kept, and judgements of ours are released.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from judging.core.results import Failure
from judging.runs.json_text import as_json, storable

_ANSWER = "UPDATE datasets_response SET raw = %s WHERE id = %s AND raw = ''"
_COLUMNS = (
    "run_id, response_id, state, error, detail, endpoint_id, request, calls, prompt_tokens, completion_tokens, "
    "seconds, first_token_seconds, finish_reason, model, finished_at, attempt"
)
_GENERATION = f"""
INSERT INTO judging_generation ({_COLUMNS})
VALUES ({"%s, " * 15} (SELECT COALESCE(MAX(g.attempt), 0) + 1 FROM judging_generation g WHERE g.response_id = %s))
"""  # noqa: S608 (constants only)
_COUNT = """
UPDATE judging_runcandidate SET answered = answered + %s, failed = failed + %s, calls = calls + %s,
       prompt_tokens = prompt_tokens + %s, completion_tokens = completion_tokens + %s
 WHERE run_id = %s AND candidate_id = %s
"""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A response without an answer yet: `number` from 1 within row and candidate."""

    response: int
    candidate: int
    number: int


@dataclass(frozen=True, slots=True, eq=False)
class Generated:
    """One try at an answer, while `chunk` was held. `raw`: the answer as a response keeps it, '' where it failed."""

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
        """Why there is no answer: a code with words."""
        return f"{self.failure.code}: {self.failure.detail}".rstrip(": ") if self.failure else ""


def write(generated: Sequence[Generated], held: Collection[int]) -> set[Generated]:
    """Store tries of chunks that are still held, in the caller's transaction. Returns those that are lost: another
    worker's answer was there first."""
    stored: list[Generated] = []
    lost: set[Generated] = set()
    with connection.cursor() as cursor:
        # In one order in every worker, so that two never wait for each other's rows.
        for one in sorted(generated, key=lambda one: one.of.response):
            # A failed try writes nothing, but waits in the same place for who is writing.
            if one.chunk in held and _write_answer(cursor, one):
                stored.append(one)
            else:
                lost.add(one)
        if stored:
            cursor.executemany(_GENERATION, [_row(one) for one in stored])
        for place in sorted({(one.run, one.of.candidate) for one in stored}):
            cursor.execute(_COUNT, _counts(place, stored))
    return lost


def _write_answer(cursor: Any, one: Generated) -> bool:
    cursor.execute(_ANSWER, [one.raw, one.of.response])
    return bool(cursor.rowcount)


def _row(one: Generated) -> tuple[Any, ...]:
    return (
        one.run,
        one.of.response,
        "failed" if one.failure else "answered",
        one.failure.code if one.failure else "",
        storable(one.failure.detail if one.failure else ""),
        one.endpoint,
        as_json(one.request),
        as_json(one.calls),
        one.prompt_tokens,
        one.completion_tokens,
        one.seconds,
        one.first_token_seconds,
        (storable(one.finish_reason) or "")[:100],
        (storable(one.model) or "")[:300],
        time.time(),
        one.of.response,
    )


def _counts(place: tuple[int, int], stored: Iterable[Generated]) -> list[Any]:
    own = [one for one in stored if (one.run, one.of.candidate) == place]
    failed = sum(one.failure is not None for one in own)
    return [
        len(own) - failed,
        failed,
        sum(len(one.calls) for one in own),
        sum(one.prompt_tokens or 0 for one in own),
        sum(one.completion_tokens or 0 for one in own),
        *place,
    ]
