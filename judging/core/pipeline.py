"""One response's whole story: preprocess → judge models in order → postprocess or parsing → an outcome.

Pure: what touches processes and networks comes in as `Tools`. A metric is data (`MetricDefinition`) that is kept
as JSON, so a run's frozen copy is exactly what was judged by.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import msgspec

from judging.core.values import Outcome, Value, mean_of, outcome_of_value

ParserSpec = str | dict[str, str]


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


class MetricDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A named pipeline. Scripts are source texts; `undefined` is strict or lenient, `sandbox` batch or item."""

    name: str
    min_score: float = 1
    max_score: float = 10
    undefined: Literal["strict", "lenient"] = "strict"
    sandbox: Literal["batch", "item"] = "batch"
    preprocess: str = ""
    judges: tuple[JudgeModel, ...] = ()
    postprocess: str = ""

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str) -> MetricDefinition:
        """Raises msgspec.ValidationError for a text that is no definition."""
        return msgspec.json.decode(text, type=cls)


@dataclass(frozen=True, slots=True)
class Item:
    """What is judged: the row as templates see it and one response to it."""

    data: dict[str, Any]
    response: dict[str, Any]


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
class AskedJudge:
    """A judge model's request and what came back. `calls` holds every HTTP try, as JSON-able dicts.

    A reply that cannot be used (empty, cut off before a word) stands beside its failure.
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

    def as_seen(self) -> dict[str, Any]:
        """As templates and postprocess see it in `judge_resps`."""
        if self.failure is not None:
            return {"content": None, "error": f"{self.failure.code}: {self.failure.detail}".rstrip(": ")}
        return self.reply or {}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was read from one judge's reply."""

    judge: int
    repeat: int
    value: Value | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Story:
    """An outcome with everything that led to it."""

    outcome: Outcome
    asked: tuple[AskedJudge, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    preprocess: ScriptResult | None = None
    postprocess: ScriptResult | None = None
    flags: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Context:
    """What a template or a script may see of an item so far."""

    item: Item
    preprocess_result: Value | None = None
    asked: tuple[AskedJudge, ...] = ()


class Tools(Protocol):
    """The effects that a story needs. Implementations may batch what many stories ask for at once."""

    async def preprocess(self, context: Context) -> ScriptResult: ...

    async def render(self, judge: int, context: Context) -> str | Failure: ...

    async def ask(self, judge: int, repeat: int, prompt: str) -> AskedJudge: ...

    async def postprocess(self, context: Context) -> ScriptResult: ...

    async def read(self, judge: int, content: str) -> tuple[Value | None, str]: ...

    def flags(self, item: Item) -> tuple[str, ...]: ...


async def tell(item: Item, metric: MetricDefinition, tools: Tools) -> Story:
    """Judge one response by one metric. Whatever goes wrong becomes the outcome's reason, never an exception."""
    began = time.perf_counter()
    context, before = Context(item), None
    if metric.preprocess:
        before = await tools.preprocess(context)
        if before.failure:
            return Story(Outcome.error(before.failure.code, before.failure.detail), preprocess=before)
        context = Context(with_changes(item, before.changed), before.result)
    for number, judge in enumerate(metric.judges):
        prompt = await tools.render(number, context)
        if isinstance(prompt, Failure):
            outcome = Outcome.error(prompt.code, prompt.detail)
            return Story(outcome, context.asked, preprocess=before, seconds=time.perf_counter() - began)
        for repeat in range(judge.repeats):
            asked = await tools.ask(number, repeat, prompt)
            context = Context(context.item, context.preprocess_result, (*context.asked, asked))
    verdicts = tuple([await read_verdict(asked, tools) for asked in context.asked if asked.failure is None])
    after = await tools.postprocess(context) if metric.postprocess else None
    return Story(
        conclude(metric, before, context.asked, verdicts, after),
        context.asked,
        verdicts,
        before,
        after,
        tools.flags(item),
        time.perf_counter() - began,
    )


async def read_verdict(asked: AskedJudge, tools: Tools) -> Verdict:
    """Read a reply's content, never its reasoning."""
    value, reason = await tools.read(asked.judge, (asked.reply or {}).get("content") or "")
    return Verdict(asked.judge, asked.repeat, value, reason)


def conclude(
    metric: MetricDefinition,
    before: ScriptResult | None,
    asked: tuple[AskedJudge, ...],
    verdicts: tuple[Verdict, ...],
    after: ScriptResult | None,
) -> Outcome:
    """The last script's result if it is the metric's end, else the mean of what could be read."""
    last_script = after or (before if not metric.judges else None)
    if last_script is not None:
        if last_script.failure:
            return Outcome.error(last_script.failure.code, last_script.failure.detail)
        return outcome_of_value(last_script.result)
    read = [verdict.value for verdict in verdicts if verdict.value is not None]
    if read:
        return outcome_of_value(read[0] if len(read) == 1 else mean_of(read))
    if verdicts:
        return Outcome.unparsed(verdicts[-1].reason)
    failure = next((one.failure for one in reversed(asked) if one.failure), Failure("no_judge"))
    return Outcome.error(failure.code, failure.detail)


def with_changes(item: Item, changed: dict[str, dict[str, Any]]) -> Item:
    """The item with the fields that preprocess added or changed, for this response only."""
    if not changed:
        return item
    return Item({**item.data, **changed.get("data", {})}, {**item.response, **changed.get("response", {})})
