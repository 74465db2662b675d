"""Stores references as answers, for raters to score or to see next to a model's answer.

They are stored in the data set's hidden version 0, because they may change and versions never do.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, cast

from django.db import transaction

from datasets.core.formats import Format
from datasets.core.variables import EARLIER, before_question, has_earlier_answers, messages_of, row_data
from datasets.models import Candidate, Response, Row, Version, VersionState

NAME = "reference"
_BATCH = 500


def reference_of(row: Row, fmt: str) -> str | None:
    """A valid row's expected answer: its final assistant message, else its `ref_answer` as text."""
    data = row_data(row.raw, cast(Format, fmt))
    texts = (
        value if isinstance(value, str) else as_text(value) for value in (data["gt"], data["ref_answer"])
    )
    return next((text for text in texts if text.strip()), None)


def reference_response(row: Row, fmt: str) -> dict[str, Any] | None:
    """The reference as a response; includes the row's earlier turns, as it may be shown with another version's row."""
    text = reference_of(row, fmt)
    if text is None:
        return None
    messages = messages_of(json.loads(row.raw), cast(Format, fmt))
    return {"content": text} | ({EARLIER: before_question(messages)} if has_earlier_answers(messages) else {})


def as_text(value: Any) -> str:
    """A JSON value as text; '' for null."""
    return "" if value is None else json.dumps(value, ensure_ascii=False)


@transaction.atomic
def references_made(
    version: Version, rows: Sequence[Row], name: str = "", candidate: Candidate | None = None
) -> tuple[Candidate, dict[int, int]]:
    """The candidate "reference" of a version, and {row: response} for those of `rows` that have one.

    Repeated calls return the same objects; with `name`, a new candidate of that name is created, to which further calls
    can add as `candidate`.
    """
    hidden, _ = Version.objects.get_or_create(
        dataset=version.dataset,
        number=0,
        defaults={"state": VersionState.READY, "origin": "references", "format": "judge_only"},
    )
    candidate = candidate or _candidate_made(hidden, version, name)
    responses = ((row.pk, reference_response(row, version.format)) for row in rows)
    return candidate, _stored(
        hidden, candidate, {pk: response for pk, response in responses if response is not None}
    )


def _candidate_made(hidden: Version, version: Version, name: str) -> Candidate:
    if name:
        return Candidate.objects.create(version=hidden, name=name, source=f"s{uuid.uuid4().hex[:9]}")
    source = f"v{version.number}"[:10]
    return Candidate.objects.get_or_create(version=hidden, name=NAME, source=source)[0]


def _stored(hidden: Version, candidate: Candidate, answers: Mapping[int, dict[str, Any]]) -> dict[int, int]:
    """Store the answers; the `line` of a hidden row is the id of the row whose reference it holds."""
    response_ids: dict[int, int] = {}
    rest = iter(answers)
    while part := list(islice(rest, _BATCH)):
        rows = [Row(version=hidden, line=pk, valid=True, raw="{}") for pk in part]
        Row.objects.bulk_create(rows, ignore_conflicts=True)
        hidden_rows = Row.objects.filter(version=hidden, line__in=part)
        lines = dict(hidden_rows.values_list("pk", "line"))
        responses = [
            Response(row_id=pk, candidate=candidate, number=1, raw=json.dumps(answers[line]))
            for pk, line in lines.items()
        ]
        Response.objects.bulk_create(responses, ignore_conflicts=True)
        stored = Response.objects.filter(row__in=list(lines), candidate=candidate)
        response_ids |= {lines[row]: pk for pk, row in stored.values_list("pk", "row_id")}
    return response_ids
