"""One response's whole story: preprocess → judge models in order → postprocess or parsing → an outcome.

Pure: what touches processes and networks comes in as `Tools`. A metric is data (`MetricDefinition`) that is kept
as JSON, so a run's frozen copy is exactly what was judged by.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import msgspec

from judging.core.replies import combine_orders, is_flip, turned_back, with_sides_swapped
from judging.core.rules.check import read_program
from judging.core.values import Outcome, Value, mean_of, outcome_of_value

ParserSpec = str | dict[str, str]
Order = Literal["first", "swapped", "both"]

FORMAT_FAILED = "format_failed"  # flag: the answer lacks the format that a rule program wants
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
    the program's own lines ask.
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

    @property
    def calls(self) -> int:
        """Requests for one judgement, if all succeed. Of a rule program one for each line that a judge model scores;
        `@all` counts as one field."""
        if self.rules:
            program = read_program(self.rules).program
            return sum(rule.function.by == "judge" for rule in program.rules) if program else 0
        return sum(judge.calls for judge in self.judges)

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
class Question:
    """A prompt for a judge model of the metric; `swapped`: it shows the two sides exchanged."""

    judge: int
    repeat: int
    prompt: str
    swapped: bool = False


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
    swapped: bool = False

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


@dataclass(frozen=True, slots=True)
class RuledLine:
    """A line of a rule program on one field: the line in the program, its score with the reason, the field's value
    as JSON text (None where the answer lacks it), perhaps cut."""

    line: int
    score: int | float | None
    field: str
    function: str
    reason: str
    params: dict[str, str]
    answer: str | None


@dataclass(frozen=True, slots=True)
class Ruled:
    """What a rule program says of an answer. `failure`: why it lacks the program's format; then there are no lines."""

    outcome: Outcome
    lines: tuple[RuledLine, ...] = ()
    failure: dict[str, Any] | None = None
    asked: tuple[AskedJudge, ...] = ()
    verdicts: tuple[Verdict, ...] = ()


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


async def tell(item: Item, metric: MetricDefinition, tools: Tools, heard: Heard | None = None) -> Story:
    """Judge one response by one metric; with `heard`, by what its judges said before, asking nobody.

    Whatever goes wrong becomes the outcome's reason, never an exception.
    """
    began = time.perf_counter()
    context, before = Context(item), heard.preprocess if heard else None
    if metric.preprocess:
        before = before or await tools.preprocess(context)
        if before.failure:
            return Story(_failed(before.failure), preprocess=before)
        context = Context(with_changes(item, before.changed), before.result)
    if metric.rules:
        ruled = await tools.apply_rules(context, heard)
        context = replace(context, asked=ruled.asked)
        after = await tools.postprocess(context) if metric.postprocess else None
        flags = tools.flags(item) if ruled.asked else ()
        return story_by_rules(ruled, before, after, flags, time.perf_counter() - began)
    if heard is not None:
        context = replace(context, asked=heard.asked)
    elif metric.judges:
        context, failure = await ask_judges(metric, context, tools)
        if failure is not None:
            seconds = time.perf_counter() - began
            return Story(_failed(failure), context.asked, preprocess=before, seconds=seconds)
    verdicts = await read_verdicts(context.asked, tools)
    after = await tools.postprocess(context) if metric.postprocess else None
    flipped = (ORDER_FLIP,) if any(one.flip for one in verdicts) else ()
    return Story(
        conclude(metric, before, context.asked, verdicts, after),
        context.asked,
        verdicts,
        before,
        after,
        (*tools.flags(item), *flipped),
        time.perf_counter() - began,
    )


def story_by_rules(
    ruled: Ruled,
    before: ScriptResult | None = None,
    after: ScriptResult | None = None,
    flags: tuple[str, ...] = (),
    seconds: float = 0.0,
) -> Story:
    """What a rule program said as a story; a script after it has the last word."""
    outcome = ruled.outcome if after is None else outcome_of_script(after)
    marks = (FORMAT_FAILED, *flags) if ruled.failure else flags
    return Story(outcome, ruled.asked, ruled.verdicts, before, after, marks, seconds, ruled)


def outcome_of_script(script: ScriptResult) -> Outcome:
    """What the metric's last script says."""
    return _failed(script.failure) if script.failure else outcome_of_value(script.result)


def _failed(failure: Failure) -> Outcome:
    return Outcome.error(failure.code, failure.detail)


async def ask_judges(
    metric: MetricDefinition, context: Context, tools: Tools
) -> tuple[Context, Failure | None]:
    """The context with all that was asked, in the order of judges, repeats and sides; or the first prompt's failure.

    The prompts of a round are made before any of it is asked, so that one that fails costs nothing.
    """
    for judges in rounds(await tools.builds_on_others() if len(metric.judges) > 1 else (False,)):
        questions: list[Question] = []
        for judge in judges:
            made = await questions_of(judge, metric.judges[judge], context, tools)
            if isinstance(made, Failure):
                return context, made
            questions += made
        asked = (*context.asked, *await tools.ask(questions))
        context = replace(context, asked=tuple(sorted(asked, key=lambda one: one.place)))
    return context, None


def rounds(builds_on_others: Sequence[bool]) -> list[list[int]]:
    """Judges in groups that are asked at the same time: one that builds on others comes after all before it."""
    found: list[list[int]] = []
    place: list[int] = []
    for judge, builds in enumerate(builds_on_others):
        place.append(1 + max(place, default=-1) if builds else 0)
        if place[-1] == len(found):
            found.append([])
        found[place[-1]].append(judge)
    return found


async def questions_of(
    number: int, judge: JudgeModel, context: Context, tools: Tools
) -> list[Question] | Failure:
    """Every question to one judge model: each repeat, and each in both orders if there is another order."""
    earlier = replace(context, asked=tuple(one for one in context.asked if one.judge < number))
    prompts: list[tuple[str, bool]] = []
    for swapped in (False, True) if judge.both_orders else (False,):
        seen = swapped_context(earlier) if swapped else earlier
        if seen is None:
            continue
        prompt = await tools.render(number, seen)
        if isinstance(prompt, Failure):
            return prompt
        prompts.append((prompt, swapped))
    return [
        Question(number, repeat, prompt, swapped)
        for repeat in range(judge.repeats)
        for prompt, swapped in prompts
    ]


def swapped_context(context: Context) -> Context | None:
    """What a comparison's template sees with the two sides exchanged; None without a reference or an answer."""
    sides = with_sides_swapped(context.item.data, context.item.response)
    return replace(context, item=Item(*sides)) if sides else None


async def read_verdicts(asked: tuple[AskedJudge, ...], tools: Tools) -> tuple[Verdict, ...]:
    """What each reply says, and after the two of one comparison what they come to."""
    found: list[Verdict] = []
    read = {one.place: await read_verdict(one, tools) for one in asked if one.failure is None}
    for one in asked:
        if one.place not in read:
            continue
        found.append(read[one.place])
        first = read.get((one.judge, one.repeat, False))
        if one.swapped and first is not None:
            found.append(combined(first, read[one.place]))
    return tuple(found)


async def read_verdict(asked: AskedJudge, tools: Tools) -> Verdict:
    """Read a reply's content, never its reasoning."""
    value, reason = await tools.read(asked.judge, (asked.reply or {}).get("content") or "")
    if asked.swapped:
        value = turned_back(value) if isinstance(value, int) else value
        return Verdict(asked.judge, asked.repeat, value, reason, "swapped")
    return Verdict(asked.judge, asked.repeat, value, reason)


def combined(first: Verdict, swapped: Verdict) -> Verdict:
    """Both orders as one. One that could not be read leaves none: half a comparison would show the position's pull."""
    if not (isinstance(first.value, int) and isinstance(swapped.value, int)):
        return Verdict(first.judge, first.repeat, None, first.reason or swapped.reason, "both")
    value = combine_orders(first.value, swapped.value)
    flip = is_flip(first.value, swapped.value)
    return Verdict(first.judge, first.repeat, value, order="both", flip=flip)


def counted(asked: tuple[AskedJudge, ...], verdicts: tuple[Verdict, ...]) -> list[Verdict]:
    """The verdicts that a score is made of: of what was asked in both orders only what both come to."""
    in_both = {(one.judge, one.repeat) for one in asked if one.swapped}
    return [one for one in verdicts if one.order == "both" or (one.judge, one.repeat) not in in_both]


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
        return outcome_of_script(last_script)
    offered = counted(asked, verdicts)
    read = [verdict.value for verdict in offered if verdict.value is not None]
    if read:
        return outcome_of_value(read[0] if len(read) == 1 else mean_of(read))
    if offered:
        return Outcome.unparsed(offered[-1].reason)
    return _failed(next((one.failure for one in reversed(asked) if one.failure), Failure("no_judge")))


def with_changes(item: Item, changed: dict[str, dict[str, Any]]) -> Item:
    """The item with the fields that preprocess added or changed, for this response only."""
    if not changed:
        return item
    return Item({**item.data, **changed.get("data", {})}, {**item.response, **changed.get("response", {})})
