"""The first rows of a version: fields of their references, and how often each line of a program scores 1."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from datasets import selectors
from datasets.core.variables import reference_in, row_and_response
from datasets.models import Candidate, Response, Version
from evalsite.truncation import truncate
from judging.core.results import JudgedItem
from judging.core.rules.evaluate import RuleEvaluation
from judging.core.rules.formats import NotInFormat, check_depth, read_fields
from judging.core.rules.program import WORST, BlockCall, Format, Reason, Scored
from judging.core.rules.python_blocks import run_code
from judging.core.rules.values import Value, exact_json, from_python, text_of
from judging.core.sandbox.job import SandboxError
from judging.core.sandbox.pool import Sandbox

LOOKED_AT = 200  # rows used for a live preview
_SHOWN = 80  # characters of an example
BLOCK_SECONDS = 1.0  # for all blocks of a program
ENDED = ("timeout", "memory", "killed", "load", "syntax")  # failures that would also occur on other rows

Key = tuple[int, str]  # line of the program, field


@dataclass(frozen=True, slots=True)
class SeenField:
    """A field of the references: how many have it, its kind, an example, and the maximum text length."""

    name: str
    rows: int
    kind: str
    example: str
    longest: int


def items_of(version: Version, candidate: Candidate | None, most: int) -> list[JudgedItem]:
    """The first rows, each with the candidate's first answer."""
    rows = selectors.sample_rows(version, most)
    answers = Response.objects.filter(row__in=[row.pk for row in rows], candidate=candidate)
    first: dict[int, Response] = {}
    for answer in answers.order_by("number"):
        first.setdefault(answer.row_id, answer)
    return [
        JudgedItem(
            *row_and_response(selectors.row_values(row), first[row.pk].raw),
            selectors.exact_reference(row, exact_json),
        )
        for row in rows
        if row.pk in first
    ]


def references_of(version: Version) -> Iterator[Any]:
    """The references of the first rows, unparsed."""
    rows = selectors.sample_rows(version, LOOKED_AT)
    return (reference_in(selectors.exact_reference(row, exact_json)) for row in rows)


def fields_of(reference: Any, form: Format | None = None) -> dict[str, Value]:
    """A reference's fields by name; empty if it does not have the format. Without a format, it is guessed."""
    try:
        if isinstance(reference, dict):
            check_depth(reference)
            fields = from_python(reference)
            return fields if isinstance(fields, dict) else {}
        if isinstance(reference, str):
            return read_fields(form or guessed_format([reference]), reference)
    except NotInFormat:
        pass
    return {}


def mean_fields(version: Version) -> float:
    """The mean number of fields in the references of the first rows; 1 if there are none."""
    counts = [len(fields_of(reference)) for reference in references_of(version)]
    return sum(counts) / len(counts) if any(counts) else 1


def guessed_format(references: list[Any]) -> Format:
    """The format of the first reference whose format is recognized; text if there is none."""
    for reference in references:
        if isinstance(reference, dict):
            return Format("json")
        for form in (Format("json"), Format("xml")):
            if isinstance(reference, str) and has_format(reference, form):
                return form
    return Format("text")


def has_format(text: str, form: Format) -> bool:
    try:
        read_fields(form, text)
    except NotInFormat:
        return False
    return True


def fields_seen(references: list[Any], form: Format | None = None) -> list[SeenField]:
    """All fields of these references, in order of first occurrence."""
    by_name: dict[str, list[Value]] = {}
    for reference in references:
        for name, value in fields_of(reference, form).items():
            by_name.setdefault(name, []).append(value)
    return [_seen(name, values) for name, values in by_name.items()]


def _seen(name: str, values: list[Value]) -> SeenField:
    texts = [text_of(value) for value in values]
    return SeenField(name, len(values), kind_of(values[0]), truncate(texts[0], _SHOWN), max(map(len, texts)))


def kind_of(value: Value) -> str:
    """text, list, object, or value (a number, true, false, null)."""
    if isinstance(value, str):
        return "text"
    return "list" if isinstance(value, list) else "object" if isinstance(value, dict) else "value"


# --- counts for the live preview: lines that ask a judge model are not counted --------------------------------


@dataclass(frozen=True, slots=True)
class LineCounts:
    """Counts over several rows: answers, answers without the format, and how often each line and field scored 1."""

    rows: int
    without_format: int
    lines: dict[Key, tuple[int, int]]  # (gave 1, scored)


def count_lines(evaluations: list[RuleEvaluation], sandbox: Sandbox | None) -> LineCounts:
    """Count the scores of each line. `sandbox` runs the Python blocks; without one they are not counted."""
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
    return LineCounts(len(evaluations), without, lines)


def _by_blocks(evaluations: list[RuleEvaluation], sandbox: Sandbox) -> Iterator[tuple[Key, float]]:
    """Yield the scores of the program's Python blocks, block by block, without failed calls."""
    waiting: dict[str, list[tuple[Key, BlockCall]]] = {}
    for evaluation in evaluations:
        for call in evaluation.calls:
            line = evaluation.lines[call.line]
            waiting.setdefault(call.code.label, []).append(((line.rule.place.line, line.name), call))
    for calls in waiting.values():
        results = _in_time(sandbox, [call for _key, call in calls], len(waiting))
        for (key, _call), result in zip(calls, results, strict=False):
            if isinstance(result, Scored):
                yield key, result.score


def _in_time(sandbox: Sandbox, calls: list[BlockCall], blocks: int) -> list[Scored | Reason]:
    """Results of one block's first calls, as many as fit into the time limit. A hanging call ends them."""
    finished: list[Scored | Reason] = []
    began, size = time.monotonic(), 1
    while size and len(finished) < len(calls):
        batch = calls[len(finished) : len(finished) + size]
        try:
            results = run_code(sandbox, batch[0].code, batch)
        except SandboxError:
            break
        finished += results
        if any(isinstance(result, Reason) and result.params.get("why") in ENDED for result in results):
            break
        spent = time.monotonic() - began
        fits = (BLOCK_SECONDS / blocks - spent) * len(finished) / max(spent, 1e-6)
        size = max(0, min(size * 8, int(fits)))
    return finished
