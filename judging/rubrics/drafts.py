"""Drafts of a row's rubric: one counted request, then each criterion accepted into an edit of the row, or discarded.

A row that is set aside for tests, or is in a sealed test, is never sent.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from datasets.core.row_repairs import with_criteria
from datasets.core.rubric import RUBRIC, lines_of
from datasets.models import Row, RowEdit, Version
from datasets.selectors import row_values
from datasets.versions.row_edits import FileRow, file_row, last_edit, row_edit_save
from evalsite.accounts.models import User
from evalsite.audit import Action, record
from judging.endpoints.models import Endpoint
from judging.look.services import all_set_aside
from judging.metrics.model_drafts import CannotDraft, request_draft
from judging.metrics.models import DraftState
from judging.rubrics.models import RubricDraft
from judging.rubrics.reply import read_criteria, rubric_prompt
from judging.rule_messages import reader_language
from judging.trust.selectors import sealed_lines

MOST_DRAFTS = 10
"""Requests for one row; further ones are refused."""
ACCEPTED, DISCARDED = "accepted", "discarded"


class DecisionRefused(Exception):
    """Nothing was accepted. `code`: nothing_chosen, decided (by somebody else meanwhile), or row_deleted."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class RubricLine:
    """An item of a rubric. `group`: the number of its criteria if it is a group, else 0."""

    text: str
    points: Any
    drafted_by: str
    group: int


@dataclass(frozen=True, slots=True)
class RowRubric:
    """A row with its rubric as it stands in the draft of the next version, else in the file."""

    row: Row
    file: FileRow
    edit: RowEdit | None

    @property
    def text(self) -> str:
        """The row's text; '' if the next version leaves it out."""
        return self.edit.text if self.edit and self.edit.is_open else self.file.text

    @property
    def items(self) -> list[dict[str, Any]]:
        """{criterion, points?, drafted_by?, children?, …} of each item of the rubric, whether it can be read or not."""
        try:
            value = json.loads(self.text)[RUBRIC]
        except (ValueError, KeyError, TypeError, RecursionError):
            return []
        items = lines_of(value) if isinstance(value, str) else value if isinstance(value, list) else []
        return [item if isinstance(item, dict) else {"criterion": str(item)} for item in items]

    @property
    def existing(self) -> list[str]:
        """The texts of the criteria, those in groups included."""
        return [text for item in self.items for text in _texts(item)]

    @property
    def lines(self) -> list[RubricLine]:
        """The items for the page."""
        return [
            RubricLine(
                str(item.get("criterion", "")),
                item.get("points", item.get("weight", 1)),
                str(item.get("drafted_by", "")),
                len(_texts(item)) if item.get("children") else 0,
            )
            for item in self.items
        ]


def _texts(item: Any) -> list[str]:
    if not isinstance(item, dict):
        return [str(item)]
    children = item.get("children")
    if isinstance(children, list) and children:
        return [text for child in children for text in _texts(child)]
    return [str(item.get("criterion", ""))]


def row_rubric(version: Version, line: int) -> RowRubric:
    """A valid row's rubric. Raises Row.DoesNotExist, or ValidationError if the row cannot be edited."""
    row = Row.objects.get(version=version, line=line, valid=True)
    return RowRubric(row, file_row(version, line), last_edit(version, line))


def obstacle_of(rubric: RowRubric) -> str:
    """Why no model may draft it: table, set_aside, sealed, too_many; '' for nothing."""
    version, row = rubric.row.version, rubric.row
    if rubric.file.table:
        return "table"
    if row.pk in all_set_aside(version):
        return "set_aside"
    if row.line in sealed_lines(version):
        return "sealed"
    return "too_many" if drafts_of(version, row.line).count() >= MOST_DRAFTS else ""


def drafts_of(version: Version, line: int) -> Any:
    """All requests for a row, newest first."""
    drafts = RubricDraft.objects.filter(version=version, line=line)
    return drafts.select_related("created_by").order_by("-pk")


def prompt_of(rubric: RowRubric) -> str:
    """What is sent to a model, in the reader's language."""
    return rubric_prompt(row_values(rubric.row), rubric.existing, reader_language())


def rubric_draft(*, rubric: RowRubric, endpoint: Endpoint, user: User) -> RubricDraft:
    """Ask a model for criteria and store its reply as a draft; a failed call is stored, too. Raises CannotDraft."""
    if obstacle := obstacle_of(rubric):
        raise CannotDraft(obstacle)
    version = rubric.row.version
    draft = RubricDraft(version=version, line=rubric.row.line)
    if request_draft(draft, endpoint=endpoint, prompt=prompt_of(rubric), user=user):
        draft.lines = [
            {"criterion": criterion.text, "points": criterion.points, "decision": ""}
            for criterion in read_criteria(draft.reply, rubric.existing)
        ]
        draft.conclude(bool(draft.lines), "no_criteria")
    with transaction.atomic():
        draft.save()
        _record(Action.RUBRIC_DRAFTED, draft, user, model=draft.model, calls=draft.calls)
    return draft


def rubric_decide(*, draft: RubricDraft, decisions: dict[int, str], user: User) -> int:
    """Decide on lines of a draft, by place: accepted ones are added to the row's rubric in the next version's draft.

    Returns the number accepted. Raises DecisionRefused, EditConflict, or ValidationError if the row cannot be edited.
    """
    with transaction.atomic():
        stored = RubricDraft.objects.select_for_update().get(pk=draft.pk)
        chosen = {place: decision for place, decision in decisions.items() if place < len(stored.lines)}
        if not chosen:
            raise DecisionRefused("nothing_chosen")
        if any(stored.lines[place]["decision"] for place in chosen):
            raise DecisionRefused("decided")
        accepted = [place for place, decision in sorted(chosen.items()) if decision == ACCEPTED]
        if accepted:
            stored.edit = _edited_row(stored, accepted, user)
        for place, decision in chosen.items():
            stored.lines[place]["decision"] = decision
        if all(line["decision"] for line in stored.lines):
            stored.state = DraftState.DONE
        stored.save(update_fields=["lines", "state", "edit"])
        _record(
            Action.RUBRIC_DECIDED,
            stored,
            user,
            accepted=len(accepted),
            discarded=len(chosen) - len(accepted),
        )
    return len(accepted)


def _edited_row(draft: RubricDraft, accepted: Collection[int], user: User) -> RowEdit | None:
    rubric = row_rubric(draft.version, draft.line)
    if not rubric.text:
        raise DecisionRefused("row_deleted")
    lines = [draft.lines[place] for place in accepted]
    criteria = [
        {"criterion": line["criterion"], "points": line["points"], "drafted_by": draft.model}
        for line in lines
    ]
    try:
        text = with_criteria(rubric.text, criteria)
    except ValueError:
        raise DecisionRefused("not_list") from None
    state = rubric.edit.state if rubric.edit else ""
    return row_edit_save(row=rubric.file, text=text, state=state, user=user)


def _record(action: Action, draft: RubricDraft, user: User, **detail: Any) -> None:
    dataset = draft.version.dataset
    record(
        action,
        project=dataset.project,
        thing=dataset,
        by=user,
        version=draft.version.number,
        line=draft.line,
        **detail,
    )
