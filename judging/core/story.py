"""What a story is made of: the metric as data, what is judged, what was asked and read, and the effects that it needs.

A metric (`MetricDefinition`) is kept as JSON, so a run's frozen copy is exactly what was judged by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import msgspec

from judging.core.juries import Jury
from judging.core.rules.check import read_program
from judging.core.values import Outcome, Value

ParserSpec = str | dict[str, str]
Order = Literal["first", "swapped", "both"]

FORMAT_FAILED = "format_failed"  # flag: the answer lacks the format that a rule program wants
TRUNCATED = "truncated"  # flag: a judge's reply ended with its limit of tokens
ORDER_FLIP = "order_flip"  # flag: the winner changed with the order in which the two were shown


class JudgeModel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One judge model of a metric: whom to ask (an endpoint's id or an address) and what."""

    name: str
    template: str
    endpoint: int | None = None
    url: str = ""
    model: str = ""
    api_key_env: str = ""
    system_prompt: str | None = None
    params: dict[str, Any] = {}
    parse: ParserSpec = "score"
    repeats: int = 1
    both_orders: bool = False

    @property
    def calls(self) -> int:
        """Requests for one judgement, if all succeed."""
        return self.repeats * (2 if self.both_orders else 1)


class MetricDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A named pipeline. Scripts are source texts; `undefined` is strict or lenient, `sandbox` batch or item.

    `rules`: the text of a rule program, in place of judge models that score; the one judge model beside it is whom
    the program's own lines ask. `jury`: how the judges' votes come to a score where no postprocess says; `quorum`:
    how many of them must be readable. `values`: of an imported metric, the kind of its values; one without a
    `scale_declared` has no lowest and no highest score.
    """

    name: str
    min_score: float = 1
    max_score: float = 10
    undefined: Literal["strict", "lenient"] = "strict"
    sandbox: Literal["batch", "item"] = "batch"
    preprocess: str = ""
    judges: tuple[JudgeModel, ...] = ()
    rules: str = ""
    postprocess: str = ""
    jury: Jury = "mean"
    quorum: int = 1
    values: Literal["", "number", "bool", "category", "comparison"] = ""
    scale_declared: bool = True

    @property
    def calls(self) -> int:
        """Requests for one judgement, if all succeed. Of a rule program one for each line that a judge model scores;
        `@all` counts as one field."""
        return round(self.calls_over(1))

    def calls_over(self, fields: float) -> float:
        """The same where the references have so many fields, which `@all` stands for."""
        if self.rules:
            program = read_program(self.rules).program
            judged = [rule for rule in program.rules if rule.function.by == "judge"] if program else []
            return sum(fields if rule.target.kind == "all" else 1 for rule in judged)
        return sum(judge.calls for judge in self.judges)

    @property
    def votes(self) -> int:
        """How many votes on one response there are at most; a comparison in both orders is one."""
        return sum(judge.repeats for judge in self.judges)

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str) -> MetricDefinition:
        """Raises msgspec.ValidationError for a text that is no definition."""
        return msgspec.json.decode(text, type=cls)


@dataclass(frozen=True, slots=True)
class Item:
    """What is judged: the row as templates see it and one response to it. `exact`: the row's reference with its
    numbers as they are written, for a rule program; without it they are what Python makes of them."""

    data: dict[str, Any]
    response: dict[str, Any]
    exact: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a step gave nothing: a code from a bounded list, and words."""

    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """What a script returned, the fields that it changed, what it printed."""

    result: Value | None = None
    changed: dict[str, dict[str, Any]] = field(default_factory=dict)
    printed: str = ""
    failure: Failure | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt for a judge model of the metric; `swapped`: it shows the two sides exchanged."""

    judge: int
    repeat: int
    prompt: str
    swapped: bool = False


@dataclass(frozen=True, slots=True)
class AskedJudge:
    """A judge model's request and what came back. `calls` holds every HTTP try, as JSON-able dicts.

    A reply that cannot be used (empty, cut off before a word) stands beside its failure. `digest` names a request that
    need not be asked again; `copied`: it was not, the reply is an earlier one's.
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

    @property
    def place(self) -> tuple[int, int, bool]:
        """What it is sorted by and known by."""
        return self.judge, self.repeat, self.swapped

    def as_seen(self) -> dict[str, Any]:
        """As templates and postprocess see it in `judge_resps`."""
        if self.failure is not None:
            return {"content": None, "error": f"{self.failure.code}: {self.failure.detail}".rstrip(": ")}
        return self.reply or {}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was read from one judge's reply; of order `both`, what its verdicts in both orders come to.

    The value of a swapped one is turned back: it is as if it had been asked in the first order.
    """

    judge: int
    repeat: int
    value: Value | None
    reason: str = ""
    order: Order = "first"
    flip: bool = False


class RuledLine(msgspec.Struct, frozen=True, gc=False):
    """A line of a rule program on one field: the line in the program, its score with the reason, the field's value
    as JSON text (None where the answer lacks it), perhaps cut."""

    line: int
    score: int | float | None
    field: str
    function: str
    reason: str
    params: dict[str, str]
    answer: str | None


class Ruled(msgspec.Struct, frozen=True):
    """What a rule program says of an answer. `failure`: why it lacks the program's format; then there are no lines."""

    outcome: Outcome
    lines: tuple[RuledLine, ...] = ()
    failure: dict[str, Any] | None = None
    asked: tuple[AskedJudge, ...] = ()
    verdicts: tuple[Verdict, ...] = ()


class Story(msgspec.Struct, frozen=True):
    """An outcome with everything that led to it."""

    outcome: Outcome
    asked: tuple[AskedJudge, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    preprocess: ScriptResult | None = None
    postprocess: ScriptResult | None = None
    flags: tuple[str, ...] = ()
    seconds: float = 0.0
    rules: Ruled | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """What a template or a script may see of an item so far."""

    item: Item
    preprocess_result: Value | None = None
    asked: tuple[AskedJudge, ...] = ()


@dataclass(frozen=True, slots=True)
class Heard:
    """What an earlier attempt was told, to be read again: its judges' replies and what its preprocess did."""

    asked: tuple[AskedJudge, ...]
    preprocess: ScriptResult | None = None


class Tools(Protocol):
    """The effects that a story needs. Implementations may batch what many stories ask for at once."""

    async def preprocess(self, context: Context) -> ScriptResult: ...

    async def builds_on_others(self) -> tuple[bool, ...]:
        """Of each judge model, whether its template refers to what earlier ones were asked or said."""
        ...

    async def render(self, judge: int, context: Context) -> str | Failure: ...

    async def ask(self, questions: Sequence[Question]) -> list[AskedJudge]:
        """All of them at the same time; one answer each, in order."""
        ...

    async def apply_rules(self, context: Context, heard: Heard | None) -> Ruled:
        """The metric's rule program on an item."""
        ...

    async def postprocess(self, context: Context) -> ScriptResult: ...

    async def read(self, judge: int, content: str) -> tuple[Value | None, str]: ...

    def flags(self, item: Item) -> tuple[str, ...]: ...
