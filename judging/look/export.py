"""A look's notes as files: a line for each note, with its answer, groups and probability."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from datasets.models import Response
from evalsite.table_files import csv_of
from judging.look.models import Look
from judging.look.results import LookResult

COLUMNS = (
    "row",
    "candidate",
    "answer",
    "drawn_with",
    "person",
    "passed",
    "new_kind",
    "note",
    "groups",
    "changed_at",
)
FORMS = ("jsonl", "csv")


def records(look: Look) -> Iterator[dict[str, Any]]:
    """Each note of the look, in the order of the answers. `passed` is null where nobody decided."""
    result = LookResult(look)
    groups: dict[int, list[str]] = defaultdict(list)
    for view in result.groups:
        for note in view.notes:
            groups[note.pk].append(view.group.name)
    responses = Response.objects.in_bulk([answer.answer.response_id for answer in result.answers])
    for answer in result.answers:
        for note in answer.notes:
            yield {
                "row": answer.answer.row.line,
                "candidate": answer.candidate,
                "answer": json.loads(responses[answer.answer.response_id].raw).get("content"),
                "drawn_with": answer.answer.drawn_with,
                "person": note.author.username,
                "passed": note.passed,
                "new_kind": note.new_kind,
                "note": note.text,
                "groups": groups[note.pk],
                "changed_at": note.changed_at.isoformat(),
            }


def as_jsonl(look: Look) -> Iterator[bytes]:
    for record in records(look):
        yield json.dumps(record, ensure_ascii=False).encode() + b"\n"


def as_csv(look: Look) -> Iterator[bytes]:
    rows = ({**record, "groups": " | ".join(record["groups"])} for record in records(look))
    return csv_of(COLUMNS, ([row[column] for column in COLUMNS] for row in rows))
