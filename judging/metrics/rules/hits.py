"""How often each line of a program gives 1 over a sample of answers, counted while one types.

Python blocks are run too, as many as there is time for; lines that ask a judge model are not counted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from judging.core.rules.evaluate import Evaluation
from judging.core.rules.program import WORST, Call, Reason, Scored
from judging.core.rules.python_blocks import run_code
from judging.core.sandbox.pool import Sandbox, SandboxRefused
from judging.core.sandbox.supervisor import SandboxBroken

SECONDS = 1.0  # for all blocks of a program
ENDED = ("timeout", "memory", "killed", "load", "syntax")  # failures that other rows would meet too

Key = tuple[int, str]  # line of the program, field


@dataclass(frozen=True, slots=True)
class Hits:
    """Over the sample of rows: answers, those without the format, and how often each line and field gave 1."""

    rows: int
    without_format: int
    lines: dict[Key, tuple[int, int]]  # (gave 1, scored)


def count_hits(evaluations: list[Evaluation], sandbox: Sandbox | None) -> Hits:
    """`sandbox` runs the Python blocks; without one they are not counted."""
    lines: dict[Key, tuple[int, int]] = {}

    def count(key: Key, score: float) -> None:
        lowest, counted = lines.get(key, (0, 0))
        lines[key] = (lowest + (score == WORST), counted + 1)

    for evaluation in evaluations:
        for line in evaluation.lines:
            if line.score is not None:
                count((line.rule.place.line, line.name), line.score)
    for key, score in _by_blocks(evaluations, sandbox) if sandbox else ():
        count(key, score)
    without = sum(evaluation.failure is not None for evaluation in evaluations)
    return Hits(len(evaluations), without, lines)


def _by_blocks(evaluations: list[Evaluation], sandbox: Sandbox) -> Iterator[tuple[Key, float]]:
    """What the program's Python blocks give, a block after the other; who fails is left out."""
    waiting: dict[str, list[tuple[Key, Call]]] = {}
    for evaluation in evaluations:
        for call in evaluation.calls:
            line = evaluation.lines[call.line]
            waiting.setdefault(call.code.label, []).append(((line.rule.place.line, line.name), call))
    for calls in waiting.values():
        keys, results = (
            [key for key, _call in calls],
            _in_time(sandbox, [call for _key, call in calls], len(waiting)),
        )
        yield from (
            (key, one.score) for key, one in zip(keys, results, strict=False) if isinstance(one, Scored)
        )


def _in_time(sandbox: Sandbox, calls: list[Call], blocks: int) -> list[Scored | Reason]:
    """Results of the first calls of one block: more at a time while they are quick, none after one that hangs."""
    found: list[Scored | Reason] = []
    began, size = time.monotonic(), 1
    while size and len(found) < len(calls):
        batch = calls[len(found) : len(found) + size]
        try:
            results = run_code(sandbox, batch[0].code, batch)
        except (SandboxBroken, SandboxRefused):
            break
        found += results
        if any(isinstance(one, Reason) and one.params.get("why") in ENDED for one in results):
            break
        spent = time.monotonic() - began
        fits = (SECONDS / blocks - spent) * len(found) / max(spent, 1e-6)
        size = max(0, min(size * 8, int(fits)))
    return found
