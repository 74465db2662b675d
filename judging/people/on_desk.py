"""An item on the desk: what its rater may see (showing.py) as safe HTML, with what is kept of the own verdict."""

from __future__ import annotations

import json
from dataclasses import dataclass

from django.utils.safestring import SafeString

from datasets.core.text_diff import Piece, pieces
from judging.core.people.criteria import Criterion, canonical
from judging.core.values import Value
from judging.people.desk_words import value_name
from judging.people.models import Assignment, AssignmentState
from judging.people.showing import Answer, shown_to
from judging.runs.export.records import data_of

LONGEST_COMPARED = 40_000  # characters; of longer answers the beginnings are compared


@dataclass(frozen=True, slots=True)
class Side:
    """One answer: `letter` is '' where there is but one."""

    letter: str
    html: SafeString
    reasoning: str
    calls: str
    empty: bool
    turns: list[tuple[str, SafeString]]


@dataclass(frozen=True, slots=True)
class OnDesk:
    """An item on the desk. `values` and `comment`: the draft, or the verdict that is being changed."""

    assignment: Assignment
    turns: list[tuple[str, SafeString]]
    reference: SafeString | None
    sides: list[Side]
    values: dict[int, Value]
    places_json: str
    comment: str
    attempt: int

    @property
    def given(self) -> bool:
        """Was a verdict given already, so that submitting changes it?"""
        return self.assignment.state == AssignmentState.GIVEN


def on_desk(assignment: Assignment, criteria: dict[int, Criterion]) -> OnDesk:
    """Everything that the desk shows of one item."""
    seen = shown_to(assignment)
    values, comment = _kept(assignment, criteria)
    both = [("A", seen.left), ("B", seen.right)] if seen.right else [("", seen.left)]
    return OnDesk(
        assignment=assignment,
        turns=seen.turns,
        reference=seen.reference_html if seen.reference else None,
        sides=[_side(letter, answer) for letter, answer in both if answer],
        values=values,
        places_json=json.dumps(places_of(values, criteria), ensure_ascii=False),
        comment=comment,
        attempt=assignment.rating.attempt if assignment.rating else 0,
    )


def _side(letter: str, answer: Answer) -> Side:
    content = answer.content
    return Side(
        letter, answer.html, answer.reasoning or "", answer.tool_calls, not content.strip(), answer.turns
    )


def differences(assignment: Assignment) -> tuple[list[Piece], list[Piece]]:
    """Both answers as pieces, left and right: `removed` stands only left, `added` only right. Empty for one answer."""
    seen = shown_to(assignment)
    if seen.right is None:
        return [], []
    found = pieces(seen.left.content[:LONGEST_COMPARED], seen.right.content[:LONGEST_COMPARED])
    return [one for one in found if one.kind != "added"], [one for one in found if one.kind != "removed"]


def _kept(assignment: Assignment, criteria: dict[int, Criterion]) -> tuple[dict[int, Value], str]:
    """Values as seen, and the comment: of the verdict given, else of the draft."""
    if assignment.state == AssignmentState.GIVEN and assignment.rating:
        return canonical(
            criteria, _numbered(assignment.rating.values), assignment.shown_first
        ), assignment.rating.comment
    draft = json.loads(assignment.draft) if assignment.draft else {}
    return _numbered(json.dumps(draft.get("values", {}))), draft.get("comment", "")


def _numbered(text: str) -> dict[int, Value]:
    return {int(number): value for number, value in json.loads(text or "{}").items()}


def places_of(values: dict[int, Value], criteria: dict[int, Criterion]) -> dict[int, int | str]:
    """Values as the form holds them: places among a criterion's choices, or texts."""
    places: dict[int, int | str] = {}
    for number, value in values.items():
        choices = criteria[number].choices if number in criteria else ()
        if number in criteria and criteria[number].scale == "text":
            places[number] = str(value)
        elif value in choices:
            places[number] = choices.index(value)
    return places


@dataclass(frozen=True, slots=True)
class Earlier:
    """An own earlier item in the list of them: what was asked, and what was said."""

    assignment: Assignment
    question: str
    said: str


def earlier(assignment: Assignment, criteria: dict[int, Criterion]) -> Earlier:
    """An item as the list shows it."""
    question = data_of(assignment.item.row.raw, assignment.evaluation.run.version.format)["question"] or ""
    given = _kept(assignment, criteria)[0] if assignment.state == AssignmentState.GIVEN else {}
    said = " · ".join(
        value_name(criteria[number], value)[:40] for number, value in given.items() if number in criteria
    )
    return Earlier(assignment, question[:300], said)
