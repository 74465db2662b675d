"""Answers that a run asked for, kept as a new version of the data set: its rows with their answers, for judging alone.

The version's file is made in the background from the tables, then read like any upload.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from django.db import transaction
from django.db.models import Q

from datasets import services, uploads
from datasets.core.formats import Format, structural_keys
from datasets.core.variables import messages_of
from datasets.importing.worker import Progress
from datasets.models import UPLOADED, Candidate, Dataset, Response, Row, Version
from datasets.versions import repair, row_writer
from evalsite.accounts.models import User
from evalsite.audit import Action

ORIGIN = "run"
STEP = "answers_of_run"


@transaction.atomic
def version_of_answers(*, version: Version, source: str, name: str, user: User | None) -> Version:
    """Another version with the answers of `source` (Candidate.source); one that is made of them already is given.

    `name`: of the run, for people.
    """
    Dataset.objects.select_for_update().get(pk=version.dataset_id)  # the second of two finds the first's
    step = [{"name": STEP, "value": source}]
    same = Version.objects.filter(
        parent=version, origin=ORIGIN, state__in=(*services.OPEN_STATES, "ready"), repairs=step
    ).first()
    if same:
        return same
    made = Version(
        dataset=version.dataset,
        origin=ORIGIN,
        parent=version,
        stopped_by=version.stopped_by,
        file_name=uploads.shown_name(f"{name[:200]}.jsonl"),
        stored_as=uploads.new_name(),
        chosen_format="judge_only",
        repairs=step,
    )
    return services.version_add(made, Action.DATASET_ANSWERS, user)


def write_file(version: Version, owner: str, progress: Progress) -> None:
    """Make the version's file; raises WorkStopped if the version is not `owner`'s any more."""
    assert version.parent is not None
    source = version.repairs[0]["value"]
    total = max(1, version.parent.rows)
    with repair.work_folder(version) as made:
        with made.open("wb") as file:
            for line, text in answered_lines(version.parent, source):
                file.write(text.encode() + b"\n")
                if line % 500 == 0:
                    progress(min(0.9, 0.9 * line / total))
        repair.take_file(version, owner, made, progress)


def answered_lines(version: Version, source: str) -> Iterator[tuple[int, str]]:
    """(line, JSON) of each row that has an answer of `source`, with those and the uploaded ones."""
    valid = Row.objects.filter(version=version, valid=True)
    # An uploaded model of the same name would be taken for the one that was asked.
    names = list(Candidate.objects.filter(version=version, source=source).values_list("name", flat=True))
    kept = Q(candidate__source=source) | Q(candidate__source=UPLOADED) & ~Q(candidate__name__in=names)
    for part in row_writer.slices(valid):
        answers: dict[int, list[tuple[str, str]]] = {}
        asked = set()
        found = Response.objects.filter(kept, row__in=part).exclude(raw="")
        of_all = found.order_by("candidate", "number")
        for pk, name, of, raw in of_all.values_list("row", "candidate__name", "candidate__source", "raw"):
            answers.setdefault(pk, []).append((name, raw))
            asked |= {pk} if of == source else set()
        for row in part:
            if row.pk in asked:
                text = as_messages(row.raw, cast(Format, version.format))
                whole = row_writer.WholeRow(row.line, True, text, answers[row.pk])
                yield row.line, row_writer.as_json(whole, "judge_only")


def as_messages(raw: str, form: Format) -> str:
    """The row as is, or a legacy one with its conversation as messages."""
    if not form.startswith("legacy"):
        return raw
    row: dict[str, Any] = json.loads(raw)
    hidden = structural_keys(form)
    kept = {name: value for name, value in row.items() if name not in hidden}
    return json.dumps({"messages": messages_of(row, form)} | kept, ensure_ascii=False)
