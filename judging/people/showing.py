"""What a rater sees of an item: the conversation and one answer, or two sides; no name, no number, no score.

Whatever else a response or a row holds (a model's name, finish reasons, fields) stays out: it cannot get into a page.
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
from judging.markdown import Budget, html_of
from judging.people.models import Assignment, Evaluation, Item

Message: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer's text, its reasoning (None where there is none) and its tool calls as JSON text ('' where none).

    `before`: what of the conversation before it is this side's alone (two versions answer the first turn differently).
    """

    content: str
    reasoning: str | None = None
    tool_calls: str = ""
    before: Sequence[Message] = ()
    budget: Budget = field(default_factory=Budget, compare=False)  # of the page

    @property
    def html(self) -> SafeString:
        """The text as Markdown made safe."""
        return html_of(self.content, self.budget)

    @property
    def turns(self) -> list[tuple[str, SafeString]]:
        """`before`: who speaks, and what, as Markdown made safe."""
        return turns_of(self.before, self.budget)


@dataclass(frozen=True, slots=True)
class Shown:
    """`messages`: {role, content} of the conversation so far. `right` is None where one answer is scored.

    `reference`: the expected answer, if raters are to see it beside the answer.
    """

    messages: Sequence[Message]
    left: Answer
    right: Answer | None = None
    reference: str | None = None
    budget: Budget = field(default_factory=Budget, compare=False)

    @property
    def turns(self) -> list[tuple[str, SafeString]]:
        """Who speaks, and what, as Markdown made safe."""
        return turns_of(self.messages, self.budget)

    @property
    def reference_html(self) -> SafeString:
        return html_of(self.reference or "", self.budget)


def turns_of(messages: Sequence[Message], budget: Budget) -> list[tuple[str, SafeString]]:
    """Who speaks, and what, as Markdown made safe."""
    return [(one["role"], html_of(str(one["content"] or ""), budget)) for one in messages]


def shown_to(assignment: Assignment) -> Shown:
    """What the rater of an assignment sees, the sides as they are stored with it."""
    evaluation = assignment.evaluation
    return shown_in(
        evaluation, assignment.item, assignment.shown_first, with_reference=evaluation.shows_reference
    )


def shown_in(
    evaluation: Evaluation, item: Item, shown_first: int | None, *, with_reference: bool = False
) -> Shown:
    """An item of an evaluation as seen with `shown_first` (1 the response, 2 the other one) on the left."""
    messages, reference = conversation_of(item.row, evaluation.run.version.format)
    return shown(item, messages, shown_first, reference if with_reference else None, evaluation.hidden_roles)


def shown(
    item: Item,
    messages: list[Message],
    shown_first: int | None,
    reference: str | None = None,
    hides: Sequence[str] = (),
) -> Shown:
    """The same, of an item that need not be stored; `messages` of its row.

    Each answer belongs to its own conversation. What these have in common, from their beginning, is shown once; the
    rest with each answer. Turns of the roles that the evaluation `hides` are left out.
    """
    there = [one for one in (item.response, item.other_response) if one is not None]
    whole = (conversation_for(messages, response_data(one.raw)) for one in there)
    conversations = [[one for one in each if one["role"] not in hides] for each in whole]
    common = _in_common(conversations)
    budget = Budget()
    sides = [
        replace(answer_of(response), before=conversation[common:], budget=budget)
        for response, conversation in zip(there, conversations, strict=False)
    ]
    if shown_first == 2:
        sides.reverse()
    right = sides[1] if len(sides) > 1 else None
    return Shown(conversations[0][:common], sides[0], right, reference, budget)


def conversation_of(row: Row, fmt: str) -> tuple[list[Message], str | None]:
    """What was said at a row before its answer, {role, content} each, and the expected answer, if it has one."""
    messages = messages_of(json.loads(row.raw), next(one for one in FORMATS if one == fmt))
    if messages and messages[-1]["role"] == "assistant":
        messages = messages[:-1]
    return [{"role": one["role"], "content": one["content"]} for one in messages], reference_of(row, fmt)


def _in_common(conversations: Sequence[Sequence[Message]]) -> int:
    """With how many messages both begin."""
    alike = takewhile(lambda pair: all(one == pair[0] for one in pair), zip(*conversations, strict=False))
    return sum(1 for _ in alike)


def answer_of(response: Response) -> Answer:
    """What is to be read of a response."""
    given = response_data(response.raw)
    reasoning, calls = given["reasoning_content"], given["tool_calls"]
    return Answer(
        str(given["content"]),
        reasoning if isinstance(reasoning, str) and reasoning.strip() else None,
        json.dumps(_plain_calls(calls), ensure_ascii=False, indent=2) if calls else "",
    )


def _plain_calls(calls: Any) -> Any:
    """What is called with what. The rest stays out: the ids alone tell which provider made them."""
    if isinstance(calls, list):
        return [_plain_calls(one) for one in calls]
    if not isinstance(calls, dict):
        return calls
    called = {name: calls[name] for name in ("name", "arguments", "input") if name in calls}
    return called | ({"function": _plain_calls(calls["function"])} if "function" in calls else {})
