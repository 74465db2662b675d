"""An item as raters see it: the conversation and one answer, or two sides, without names, numbers or scores.

Everything else in a response or row (model name, finish reason, fields) is dropped here, so that no page can show it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, TypeAlias

from django.utils.safestring import SafeString

from datasets.core.formats import FORMATS
from datasets.core.variables import conversation_for, messages_of, response_data
from datasets.models import Response, Row
from datasets.versions.references import reference_of
from evalsite.text_diff import Passage, sides
from judging.core.people.criteria import Criterion, as_shown
from judging.core.people.parts import LETTERS, parts_of, split
from judging.core.values import Value
from judging.markdown import MarkupBudget, html_of
from judging.people.item_criteria import marks_spans
from judging.people.labels import value_label, values_of
from judging.people.models import Assignment, AssignmentState, Evaluation, Item
from judging.records.stored_judgement import data_of

Message: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AnswerView:
    """An answer's text, its reasoning (None if there is none) and its tool calls as JSON text ('' if none).

    `before`: the part of the conversation that only this side has (two versions may answer the first turn differently).
    """

    content: str
    reasoning: str | None = None
    tool_calls: str = ""
    before: Sequence[Message] = ()
    budget: MarkupBudget = field(default_factory=MarkupBudget, compare=False)  # of the page

    @property
    def html(self) -> SafeString:
        """The text as sanitized Markdown."""
        return html_of(self.content, self.budget)

    @property
    def turns(self) -> list[tuple[str, SafeString]]:
        """`before` as (speaker, sanitized Markdown)."""
        return turns_of(self.before, self.budget)


@dataclass(frozen=True, slots=True)
class ItemView:
    """`messages`: {role, content} of the conversation so far. `right` is None if a single answer is rated; `further`:
    the third and later ones, where answers are ranked.

    `reference`: the expected answer, if raters may see it next to the answer. `marks_spans`: the answer is shown as the
    plain text in which raters mark spans.
    """

    messages: Sequence[Message]
    left: AnswerView
    right: AnswerView | None = None
    reference: str | None = None
    budget: MarkupBudget = field(default_factory=MarkupBudget, compare=False)
    further: Sequence[AnswerView] = ()
    marks_spans: bool = False

    @property
    def turns(self) -> list[tuple[str, SafeString]]:
        """(speaker, sanitized Markdown) of each message."""
        return turns_of(self.messages, self.budget)

    @property
    def sides(self) -> list[tuple[str, AnswerView]]:
        """The answers with their letters, '' for a single one."""
        if self.right is None:
            return [("", self.left)]
        return list(zip(LETTERS, [self.left, self.right, *self.further], strict=False))

    @property
    def reference_html(self) -> SafeString:
        return html_of(self.reference or "", self.budget)


def turns_of(messages: Sequence[Message], budget: MarkupBudget) -> list[tuple[str, SafeString]]:
    """(speaker, sanitized Markdown) of each message."""
    return [(message["role"], html_of(str(message["content"] or ""), budget)) for message in messages]


def shown_to(assignment: Assignment) -> ItemView:
    """An assignment's item as its rater sees it, with the stored order of the sides."""
    evaluation, item = assignment.evaluation, assignment.item
    view = _shown_in_order(evaluation, item, assignment.order, with_reference=evaluation.shows_reference)
    return replace(view, marks_spans=marks_spans(evaluation))


def shown_in(
    evaluation: Evaluation, item: Item, shown_first: int | None, *, with_reference: bool = False
) -> ItemView:
    """An evaluation's item with `shown_first` (1: the response, 2: the other one) on the left."""
    order = [1, 0] if shown_first == 2 else []
    return _shown_in_order(evaluation, item, order, with_reference=with_reference)


def _shown_in_order(
    evaluation: Evaluation, item: Item, order: Sequence[int], *, with_reference: bool
) -> ItemView:
    messages, reference = conversation_of(item.row, evaluation.run.version.format)
    return shown(item, messages, order, reference if with_reference else None, evaluation.hidden_roles)


def shown(
    item: Item,
    messages: list[Message],
    order: Sequence[int] = (),
    reference: str | None = None,
    hides: Sequence[str] = (),
) -> ItemView:
    """The same for an item that need not be stored; `messages`: of its row, `order`: positions of its answers in the
    order shown, as in the item if empty.

    Each answer belongs to its own conversation. Their common beginning is shown once, the rest with each answer. Turns
    of roles in `hides` are removed.
    """
    answers = item.answers
    answers = [answers[position] for position in order] or answers
    whole = (conversation_for(messages, response_data(response.raw)) for response in answers)
    conversations = [
        [message for message in conversation if message["role"] not in hides] for conversation in whole
    ]
    common = _in_common(conversations)
    budget = MarkupBudget()
    left, *others = [
        replace(answer_of(response), before=conversation[common:], budget=budget)
        for response, conversation in zip(answers, conversations, strict=True)
    ]
    right = others[0] if others else None
    return ItemView(conversations[0][:common], left, right, reference, budget, others[1:])


def conversation_of(row: Row, fmt: str) -> tuple[list[Message], str | None]:
    """The messages before a row's answer, each as {role, content}, and the expected answer or None."""
    messages = messages_of(json.loads(row.raw), next(name for name in FORMATS if name == fmt))
    if messages and messages[-1]["role"] == "assistant":
        messages = messages[:-1]
    return [{"role": message["role"], "content": message["content"]} for message in messages], reference_of(
        row, fmt
    )


def _in_common(conversations: Sequence[Sequence[Message]]) -> int:
    """The number of messages that all conversations start with."""
    alike = takewhile(
        lambda pair: all(message == pair[0] for message in pair), zip(*conversations, strict=False)
    )
    return sum(1 for _ in alike)


def answer_of(response: Response) -> AnswerView:
    """The readable parts of a response."""
    data = response_data(response.raw)
    reasoning, calls = data["reasoning_content"], data["tool_calls"]
    return AnswerView(
        str(data["content"]),
        reasoning if isinstance(reasoning, str) and reasoning.strip() else None,
        json.dumps(_plain_calls(calls), ensure_ascii=False, indent=2) if calls else "",
    )


def _plain_calls(calls: Any) -> Any:
    """Tool names and arguments only: ids alone would reveal the provider."""
    if isinstance(calls, list):
        return [_plain_calls(call) for call in calls]
    if not isinstance(calls, dict):
        return calls
    called = {name: calls[name] for name in ("name", "arguments", "input") if name in calls}
    return called | ({"function": _plain_calls(calls["function"])} if "function" in calls else {})


LONGEST_COMPARED = 40_000  # characters; longer answers are compared up to here


@dataclass(frozen=True, slots=True)
class DeskItem:
    """An item on the desk. `criteria`: as they stand for its row. `values` and `comment`: of the draft, else of the
    verdict being changed."""

    assignment: Assignment
    view: ItemView
    criteria: dict[int, Criterion]
    values: dict[int, Value]
    places_json: str
    comment: str
    attempt: int

    @property
    def rated(self) -> bool:
        """Whether it has been rated, so that submitting changes the verdict."""
        return self.assignment.state == AssignmentState.RATED

    @property
    def half_changed(self) -> bool:
        """Whether a change of its verdict was entered but not submitted."""
        return self.rated and bool(self.assignment.draft)


def desk_item(assignment: Assignment, criteria: dict[int, Criterion]) -> DeskItem:
    """Everything that the desk shows for one item."""
    values, comment = _stored_values(assignment, criteria)
    return DeskItem(
        assignment=assignment,
        view=shown_to(assignment),
        criteria=criteria,
        values=values,
        places_json=json.dumps(places_of(values, criteria), ensure_ascii=False),
        comment=comment,
        attempt=assignment.rating.attempt if assignment.rating else 0,
    )


def differences(assignment: Assignment) -> tuple[list[Passage], list[Passage]]:
    """Both answers in pieces, left and right: `removed` occurs only on the left, `added` only on the right. Empty
    unless there are two."""
    seen = shown_to(assignment)
    if seen.right is None or seen.further:
        return [], []
    return sides(seen.left.content[:LONGEST_COMPARED], seen.right.content[:LONGEST_COMPARED])


def _stored_values(assignment: Assignment, criteria: dict[int, Criterion]) -> tuple[dict[int, Value], str]:
    """Values as the rater sees them, and the comment: of the draft, else of the verdict."""
    if assignment.rating and not assignment.draft:
        return _rated_values(assignment, criteria), assignment.rating.comment
    draft = json.loads(assignment.draft or "{}")
    values = {int(number): value for number, value in draft.get("values", {}).items()}
    return values, draft.get("comment", "")


def _rated_values(assignment: Assignment, criteria: dict[int, Criterion]) -> dict[int, Value]:
    """The verdict in force as its rater saw it; empty without one."""
    values = values_of(assignment.rating.values) if assignment.rating else {}
    return as_shown(criteria, values, assignment.shown_first, assignment.order)


def places_of(values: dict[int, Value], criteria: dict[int, Criterion]) -> dict[str, int | str]:
    """Values as the form sends them, by key of the part: indices into a criterion's choices, or texts."""
    places: dict[str, int | str] = {}
    by_key = split(criteria, values)
    for part in parts_of(criteria):
        value = by_key.get(part.key)
        if value is not None and part.criterion.is_written:
            places[part.key] = str(value)
        elif value in part.criterion.choices:
            places[part.key] = part.criterion.choices.index(value)
    return places


@dataclass(frozen=True, slots=True)
class Earlier:
    """One of the rater's earlier items in their list: question and verdict."""

    assignment: Assignment
    question: str
    said: str


def earlier(assignment: Assignment, criteria: dict[int, Criterion]) -> Earlier:
    """An item as the list of earlier items shows it."""
    question = data_of(assignment.item.row.raw, assignment.evaluation.run.version.format)["question"] or ""
    said = " · ".join(
        value_label(criteria[number], value)[:40]
        for number, value in _rated_values(assignment, criteria).items()
        if number in criteria
    )
    return Earlier(assignment, question[:300], said)
