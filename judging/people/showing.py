"""What a rater sees of an item: the conversation and one answer, or two sides; no name, no number, no score.

Whatever else a response or a row holds (a model's name, finish reasons, fields) stays out: it cannot get into a page.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from datasets.core.formats.names import FORMATS
from datasets.core.variables import messages_of, response_data
from datasets.models import Response
from judging.markdown import html_of
from judging.people.models import Assignment, Item


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer's text, its reasoning (None where there is none) and its tool calls as JSON text ('' where none)."""

    content: str
    reasoning: str | None = None
    tool_calls: str = ""

    @property
    def html(self) -> SafeString:
        """The text as Markdown made safe."""
        return html_of(self.content)


@dataclass(frozen=True, slots=True)
class Shown:
    """`messages`: {role, content} of the conversation so far. `right` is None where one answer is scored.

    `reference`: the expected answer, if raters are to see it beside the answer.
    """

    messages: list[dict[str, Any]]
    left: Answer
    right: Answer | None = None
    reference: str | None = None

    @property
    def turns(self) -> list[tuple[str, SafeString]]:
        """Who speaks, and what, as Markdown made safe."""
        return [(one["role"], html_of(str(one["content"] or ""))) for one in self.messages]

    @property
    def reference_html(self) -> SafeString:
        return html_of(self.reference or "")


def shown_to(assignment: Assignment) -> Shown:
    """What the rater of an assignment sees, the sides as they are stored with it."""
    evaluation = assignment.evaluation
    return shown_of(
        assignment.item,
        evaluation.run.version.format,
        assignment.shown_first,
        with_reference=evaluation.shows_reference,
    )


def shown_of(item: Item, fmt: str, shown_first: int | None, *, with_reference: bool = False) -> Shown:
    """An item as seen with `shown_first` (1 the response, 2 the other one) on the left."""
    messages = messages_of(json.loads(item.row.raw), next(one for one in FORMATS if one == fmt))
    reference = None
    if messages and messages[-1]["role"] == "assistant":
        reference, messages = messages[-1]["content"], messages[:-1]
    asked = [{"role": one["role"], "content": one["content"]} for one in messages]
    sides = [answer_of(item.response)]
    if item.other_response is not None:
        sides.append(answer_of(item.other_response))
        if shown_first == 2:
            sides.reverse()
    return Shown(asked, sides[0], sides[1] if len(sides) > 1 else None, reference if with_reference else None)


def answer_of(response: Response) -> Answer:
    """What is to be read of a response."""
    given = response_data(response.raw)
    reasoning, calls = given["reasoning_content"], given["tool_calls"]
    return Answer(
        str(given["content"]),
        reasoning if isinstance(reasoning, str) and reasoning.strip() else None,
        json.dumps(calls, ensure_ascii=False, indent=2) if calls else "",
    )
