"""Reassembles rows with their answers, streamed in slices by line in constant memory."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from django.db.models import QuerySet

from datasets.core.decode import Unreadable, Upload, blocks
from datasets.models import Response, Row, Version
from datasets.selectors import encoding_of
from datasets.uploads import limits_of_kept

FIRST_SLICE, SLICE = 20, 500
LINES = 10_000


@dataclass(frozen=True, slots=True)
class WholeRow:
    """A stored row with its answers: (model, JSON of the response) in the order of the upload."""

    line: int
    valid: bool
    raw: str
    answers: list[tuple[str, str]] = field(default_factory=list)


def whole_rows(version: Version, *, only_valid: bool) -> Iterator[WholeRow]:
    """The version's rows, ordered by line."""
    rows = Row.objects.filter(version=version)
    for part in slices(rows.filter(valid=True) if only_valid else rows):
        yield from with_answers(part)


def with_answers(rows: list[Row]) -> Iterator[WholeRow]:
    """Rows of one version with their answers."""
    responses = Response.uploaded.filter(row__in=[row.pk for row in rows]).order_by("pk")
    answers: dict[int, list[tuple[str, str]]] = {row.pk: [] for row in rows}
    for row_id, name, raw in responses.values_list("row_id", "candidate__name", "raw"):
        answers[row_id].append((name, raw))
    for row in rows:
        yield WholeRow(row.line, row.valid, row.raw, answers[row.pk])


def slices(rows: QuerySet[Row]) -> Iterator[list[Row]]:
    """Rows of one version in slices ordered by line, one query each; the first slice is small to start quickly."""
    after, size = 0, FIRST_SLICE
    while part := list(rows.filter(line__gt=after).order_by("line")[:size]):
        yield part
        after, size = part[-1].line, SLICE


def as_json(row: WholeRow, fmt: str) -> str:
    """A valid row as a line of JSONL that reads back equal; CSV records become conversations."""
    text = _conversation(row.raw) if fmt == "legacy_csv" else row.raw.strip()
    if not row.answers:
        return text
    outputs = f'"model_outputs":[{",".join(_entries(row))}]'
    return with_key(text, outputs, first=False)


def loaded_object(text: str | bytes) -> dict[str, Any] | None:
    """Parse an object; None for other values and invalid JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def free_name(name: str, taken: Container[str]) -> str:
    """The name, or the first of `name_2`, `name_3`, … that is not taken."""
    return next(free for n in count(1) if (free := f"{name}_{n}" if n > 1 else name) not in taken)


def with_key(text: str, pair: str, *, first: bool) -> str:
    """Add a `"key":value` pair at the start or end of an object's text."""
    inner = text.strip()[1:-1]
    if not inner.strip():
        return "{" + pair + "}"
    return "{" + (f"{pair},{inner}" if first else f"{inner},{pair}") + "}"


def _entries(row: WholeRow) -> Iterator[str]:
    by_model: dict[str, list[str]] = {}
    for name, raw in row.answers:
        by_model.setdefault(name, []).append(raw)
    for name, responses in by_model.items():
        yield f'{{"model_name":{json.dumps(name, ensure_ascii=False)},"responses":[{",".join(responses)}]}}'


def _conversation(raw: str) -> str:
    row = json.loads(raw)
    turn = {"prompt": row.pop("prompt"), "response": row.pop("response")}
    system = {"system": row.pop("system")} if "system" in row else {}
    return json.dumps(system | {"conversation": [turn]} | row, ensure_ascii=False)


def jsonl(version: Version) -> Iterator[bytes]:
    """The version's valid rows as JSONL: rows of a JSONL file unchanged, CSV records as conversations."""
    if version.format != "legacy_csv" and version.file_is_kept:
        yield from _lines_of_file(version)
        return
    for row in whole_rows(version, only_valid=True):
        yield as_json(row, version.format).encode() + b"\n"


def _lines_of_file(version: Version) -> Iterator[bytes]:
    """Yield the file's own lines, as the tables lack extra keys next to model names and answers."""
    wanted = _valid_lines(version)
    line = next(wanted, None)
    # The file was within the limits when it was read.
    limits = replace(limits_of_kept(), file_bytes=1 << 60, unpacked_bytes=1 << 60)
    with Upload(version.path, limits) as upload, suppress(Unreadable):  # yields the rows before the damage
        for block in blocks(upload, encoding_of(version)):
            last, lines = block.first + len(block.lines) - 1, []
            while line is not None and line <= last:
                if line in block.oversized:  # the limit was higher when it was read
                    lines.append(_from_tables(version, line))
                else:
                    lines.append(block.lines[line - block.first].strip() + b"\n")
                line = next(wanted, None)
            yield b"".join(lines)
            if line is None:
                return


def _from_tables(version: Version, line: int) -> bytes:
    (row,) = with_answers(list(Row.objects.filter(version=version, line=line)))
    return as_json(row, version.format).encode() + b"\n"


def _valid_lines(version: Version) -> Iterator[int]:
    rows = Row.objects.filter(version=version, valid=True).order_by("line").values_list("line", flat=True)
    after = 0
    while part := list(rows.filter(line__gt=after)[:LINES]):
        yield from part
        after = part[-1]
