"""Data of a judgement: item, calls and replies, result, and the effects that judging needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import msgspec

from judging.core.judges.reply import OF_SERVER
from judging.core.replies import Parsed, Place
from judging.core.values import Outcome, Value

Order = Literal["first", "swapped", "both"]

FORMAT_FAILED = "format_failed"  # flag: the answer lacks the format that the rule program requires
INJECTED_VERDICT = "planted_verdict"  # flag: the text shown to a judge contains what looks like a verdict
TRUNCATED = "truncated"  # flag: a judge's reply was cut off by its token limit
WOULD_ASK_AGAIN = "would_ask_again"  # flag: not re-parsed, because its judges would be shown something else
ORDER_FLIP = "order_flip"  # flag: the winner changed with the order in which the two were shown


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """What is judged: the row as templates see it, and one response to it, or two that are compared.

    `exact`: the row's reference with its numbers as written, for rule programs; without it they are as parsed by
    Python. `other`: the second answer (B) of a comparison of candidates; `response` is A. `other_first`: a judge that
    is asked in one order sees B first.
    """

    data: dict[str, Any]
    response: dict[str, Any]
    exact: dict[str, Any] | None = None
    other: dict[str, Any] | None = None
    other_first: bool = False

    @property
    def answers(self) -> tuple[dict[str, Any], ...]:
        return (self.response,) if self.other is None else (self.response, self.other)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a step failed: a code from a fixed list, and details."""

    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """What a script returned, changed and printed; `seconds`: of processor time."""

    result: Value | None = None
    changed: dict[str, dict[str, Any]] = field(default_factory=dict)
    printed: str = ""
    failure: Failure | None = None
    line: int | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt for a judge model of the metric; `swapped`: it shows the two sides exchanged; `criterion`: the number of
    the criterion that it is about, from 1 (0: not about a single one)."""

    judge: int
    repeat: int
    prompt: str
    swapped: bool = False
    criterion: int = 0


@dataclass(frozen=True, slots=True)
class JudgeCall:
    """A judge model's request and reply. `calls` holds every HTTP try, as JSON-able dicts.

    An unusable reply (empty, or cut off before any text) is stored along with its failure. `digest` identifies a
    request whose reply can be reused; `copied`: the reply is an earlier one's.
    """

    judge: int
    repeat: int
    request: dict[str, Any]
    reply: dict[str, Any] | None
    failure: Failure | None
    calls: list[dict[str, Any]]
    seconds: float = 0.0
    first_token_seconds: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    endpoint: int | None = None
    swapped: bool = False
    digest: str = ""
    copied: bool = False
    criterion: int = 0

    @property
    def place(self) -> tuple[int, int, bool, int]:
        """The key for sorting and lookup."""
        return self.judge, self.repeat, self.swapped, self.criterion

    @property
    def text(self) -> str:
        """What a verdict is read from: the reply's content, or without any the arguments of its first tool call."""
        reply = self.reply or {}
        content: str = reply.get("content") or ""
        calls = reply.get("tool_calls")
        if content.strip() or not (isinstance(calls, list) and calls and isinstance(calls[0], dict)):
            return content
        arguments = (calls[0].get("function") or {}).get("arguments")
        return arguments if isinstance(arguments, str) else content

    def as_seen(self) -> dict[str, Any]:
        """The reply as templates and postprocess see it in `judge_resps`."""
        if self.failure is not None:
            return {"content": None, "error": f"{self.failure.code}: {self.failure.detail}".rstrip(": ")}
        return {name: value for name, value in (self.reply or {}).items() if name not in OF_SERVER}

    def of_pair(self, seen: dict[str, Any]) -> dict[str, Any]:
        """The request or reply as seen in a comparison of candidates, where both orders are asked."""
        return {**seen, "swapped": self.swapped}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict parsed from one judge's reply; with order `both`, the combination of both orders.

    The value of a swapped verdict is converted to the first order. `form`: how the value was stated in the reply,
    `place`: where, from start to end; `detail`: what stood there instead of a value. `criterion`: the number of the
    criterion that it is about, from 1; 0 without a checklist.
    """

    judge: int
    repeat: int
    value: Value | None
    reason: str = ""
    order: Order = "first"
    flip: bool = False
    form: str = ""
    place: Place | None = None
    detail: str = ""
    criterion: int = 0


class RuledLine(msgspec.Struct, frozen=True, gc=False):
    """A line of a rule program applied to one field.

    `line`: the line in the program; `answer`: the field's value as JSON text, possibly truncated, None if the answer
    lacks it.
    """

    line: int
    score: int | float | None
    field: str
    function: str
    reason: str
    params: dict[str, str]
    answer: str | None


class Ruled(msgspec.Struct, frozen=True):
    """A rule program's outcome. `failure`: why the answer lacks the program's format; there are no lines then."""

    outcome: Outcome
    lines: tuple[RuledLine, ...] = ()
    failure: dict[str, Any] | None = None
    calls: tuple[JudgeCall, ...] = ()
    verdicts: tuple[Verdict, ...] = ()


class JudgementResult(msgspec.Struct, frozen=True):
    """An outcome with everything that led to it. `scripts`: the results of those that ran, in order. `checklist`: JSON
    of what became of each criterion."""

    outcome: Outcome
    calls: tuple[JudgeCall, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    scripts: tuple[ScriptResult, ...] = ()
    flags: tuple[str, ...] = ()
    seconds: float = 0.0
    rules: Ruled | None = None
    checklist: str = ""


@dataclass(frozen=True, slots=True)
class Context:
    """The data of an item that templates and scripts can see so far: the item as the scripts left it, the last
    preprocess's result, the judges' calls and the scripts' results. `criterion`: the number of the one asked about."""

    item: JudgedItem
    preprocess_result: Value | None = None
    calls: tuple[JudgeCall, ...] = ()
    scripts: tuple[ScriptResult, ...] = ()
    criterion: int = 0

    @property
    def requests(self) -> list[dict[str, Any]]:
        """`judge_reqs` of templates and scripts."""
        if self.item.other is None:
            return [call.request for call in self.calls]
        return [call.of_pair(call.request) for call in self.calls]

    @property
    def replies(self) -> list[dict[str, Any]]:
        """`judge_resps` of templates and scripts."""
        if self.item.other is None:
            return [call.as_seen() for call in self.calls]
        return [call.of_pair(call.as_seen()) for call in self.calls]


@dataclass(frozen=True, slots=True)
class PreviousReplies:
    """Stored data of an earlier attempt, to be parsed again: its judges' replies and its scripts' results.

    `left`: what is left as it is if a script before the judges, which has changed since, gives another result; None if
    none of these scripts has changed.
    """

    calls: tuple[JudgeCall, ...]
    scripts: tuple[ScriptResult, ...] = ()
    left: JudgementResult | None = None


Ask = Callable[[Sequence[Question]], Awaitable[Sequence[JudgeCall]]]
"""Sends all questions to judge models in parallel; returns one answer each, in order."""


class Effects(Protocol):
    """The effects that judgements need besides calls. Implementations can batch them."""

    @property
    def scripts(self) -> Sequence[Callable[[Context], Awaitable[ScriptResult]]]:
        """The metric's scripts."""
        ...

    async def builds_on_others(self) -> tuple[bool, ...]:
        """For each judge model, whether its template uses requests or replies of earlier ones."""
        ...

    @property
    def prompts(self) -> Sequence[Callable[[Context], Awaitable[str | Failure]]]:
        """For each judge model, the renderer of its template."""
        ...

    async def apply_rules(self, item: JudgedItem, ask: Ask | None, previous: PreviousReplies | None) -> Ruled:
        """Apply the metric's rule program to an item."""
        ...

    async def read(self, judge: int, content: str, finish_reason: str | None) -> Parsed:
        """The value of a judge model's reply, or the reason why there is none."""
        ...

    def flags(self, item: JudgedItem) -> tuple[str, ...]: ...
