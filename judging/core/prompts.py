"""Judge prompts: renders templates in the sandbox, and estimates how many tokens a text has.

The variables of a template are specified in the prompts spec.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import msgspec

from datasets.core.kinds import CHECKLIST
from judging.core.answer_format import answer_format, language_of
from judging.core.checklists import criterion_variables, rubric_of
from judging.core.metric_definition import JudgeModel, MetricDefinition, Undefined
from judging.core.results import Context
from judging.core.sandbox.job import Job, SandboxFailure
from judging.core.sandbox.pool import Sandbox
from judging.core.sandbox.session import ReportedFailure, failure_of
from judging.core.sandbox.wire import Path, dotted

PieceKind = Literal["text", "value", "undefined", "none"]


@dataclass(frozen=True, slots=True)
class RenderItem:
    """The variables of one render. ``data`` and ``response`` are used as given, plus absent standard fields.

    ``criteria``: the variables about the criteria of a checklist. ``other``: the second answer of a comparison of
    candidates, whose template sees ``a`` and ``b``, no ``response``.
    """

    data: dict[str, Any]
    response: dict[str, Any] | None = None
    preprocess_result: bool | int | float | str | None = None
    judge_resps: tuple[dict[str, Any], ...] = ()
    judge_reqs: tuple[dict[str, Any], ...] = ()
    min_score: float = 1
    max_score: float = 10
    criteria: dict[str, Any] = field(default_factory=dict)
    other: dict[str, Any] | None = None
    answer_format: MetricDefinition | None = None  # the metric it is made from; else a score on the scale


def render_item(context: Context, metric: MetricDefinition) -> RenderItem:
    """The template variables for a judgement in progress."""
    return RenderItem(
        data=context.item.data,
        response=context.item.response,
        preprocess_result=context.preprocess_result,
        judge_resps=tuple(context.replies),
        judge_reqs=tuple(context.requests),
        min_score=metric.min_score,
        max_score=metric.max_score,
        criteria=criterion_variables(rubric_of(context.item.data), context.criterion)
        if metric.gives == CHECKLIST
        else {},
        other=context.item.other,
        answer_format=metric,
    )


def script_arguments(judges: Sequence[JudgeModel], context: Context) -> dict[str, Any]:
    """The arguments of a script (docs/prompts.md); without those that are empty because nothing came before it."""
    item = context.item
    arguments: dict[str, Any] = {"data": item.data, "resp": item.response}
    if item.other is not None:
        arguments["other_resp"] = item.other
    if context.calls:
        arguments["judge_reqs"] = context.requests
        arguments["judge_resps"] = context.replies
        arguments["judge_models"] = [_judge_model(judges[call.judge]) for call in context.calls]
    if context.scripts:
        arguments["results"] = [script.result for script in context.scripts]
    return arguments


def _judge_model(judge: JudgeModel) -> dict[str, Any]:
    seen: dict[str, Any] = {"name": judge.name, "judge_template_content": judge.template}
    if judge.params:
        seen["generation_params"] = judge.params
    if judge.system_prompt:
        seen["system_prompt"] = judge.system_prompt
    return seen


class NameAt(NamedTuple):
    """A dotted name, and the line of the template that uses it (from 1; None if unknown)."""

    name: str
    line: int | None


@dataclass(frozen=True, slots=True)
class Rendered:
    """The text, or why there is none. ``undefined`` and ``none``: names that were used without having a value.

    ``resolved``: names that resolved to a value, each reported only with the first render in which a worker found it.
    """

    text: str | None
    undefined: tuple[NameAt, ...] = ()
    none: tuple[NameAt, ...] = ()
    error: SandboxFailure | None = None
    resolved: tuple[str, ...] = field(default=(), compare=False)


class Lookup(NamedTuple):
    """A name that a template looks up: its parts, in order of lookup, and its line."""

    path: Path
    line: int

    @property
    def name(self) -> str:
        return dotted(self.path)


class Names(NamedTuple):
    """The names that a template looks up from outside, in order.

    ``existence_tested``: those whose existence it tests; ``tested``: those whose truth value it tests;
    ``set_in_loops``: its own variables whose new values are lost at the end of each turn of a loop.
    """

    used: tuple[Lookup, ...]
    existence_tested: tuple[Path, ...]
    tested: tuple[Lookup, ...]
    set_in_loops: tuple[Lookup, ...] = ()


class Piece(NamedTuple):
    """A part of a rendered text. ``name`` and ``line``: of its expression, or '' and None for template text."""

    kind: PieceKind
    text: str
    name: str
    line: int | None


@dataclass(frozen=True, slots=True)
class TemplatePreview:
    """A render as pieces; joined, they are its text (up to the error, if there is one)."""

    pieces: tuple[Piece, ...]
    undefined: tuple[NameAt, ...] = ()
    none: tuple[NameAt, ...] = ()
    error: SandboxFailure | None = None

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


class _PromptReply(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    text: str | None
    undefined: tuple[NameAt, ...]
    none: tuple[NameAt, ...]
    failure: ReportedFailure | None
    pieces: tuple[Piece, ...] | None
    resolved: tuple[str, ...]


def render(
    sandbox: Sandbox, template_source: str, items: list[RenderItem], undefined: Undefined = "strict"
) -> list[Rendered]:
    """Render one text per item, in order. With ``strict``, using an undefined name is an error of that item."""
    job = _job(sandbox, "render", template_source, undefined)
    outcomes = sandbox.run(job, [_wire(item, template_source) for item in items])
    return [_rendered(outcome.value, outcome.failure) for outcome in outcomes]


def preview(sandbox: Sandbox, template_source: str, item: RenderItem) -> TemplatePreview:
    """Render one item (lenient), with substituted parts separate from the template's own text."""
    (outcome,) = sandbox.run(
        _job(sandbox, "preview", template_source, "lenient"), [_wire(item, template_source)]
    )
    reply = outcome.value
    if reply is None:
        return TemplatePreview((), error=outcome.failure)
    return TemplatePreview(reply.pieces or (), reply.undefined, reply.none, failure_of(reply.failure))


def names_of(sandbox: Sandbox, template_source: str) -> tuple[Names, SandboxFailure | None]:
    """The names that a template looks up, and its syntax error, if any; a template with one has no names."""
    (outcome,) = sandbox.run(Job("names", template_source, Names, {}), [{}])
    return outcome.value or Names((), (), ()), outcome.failure


def _job(
    sandbox: Sandbox, kind: Literal["render", "preview"], source: str, undefined: Undefined
) -> Job[_PromptReply]:
    return Job(kind, source, _PromptReply, {"undefined": undefined, "most": sandbox.limits.output_characters})


def _wire(item: RenderItem, template_source: str) -> dict[str, Any]:
    answer = item.response or {}
    answers = {"response": answer} if item.other is None else {"a": answer, "b": item.other}
    return {
        "data": item.data,
        **answers,
        "preprocess_result": item.preprocess_result,
        "judge_resps": item.judge_resps,
        "judge_reqs": item.judge_reqs,
        "min_score": _as_written(item.min_score),
        "max_score": _as_written(item.max_score),
        **item.criteria,
        "answer_format": _answer_format(item, template_source),
    }


def _answer_format(item: RenderItem, template_source: str) -> str:
    if "answer_format" not in template_source:
        return ""
    scores = MetricDefinition(name="", min_score=item.min_score, max_score=item.max_score)
    return answer_format(item.answer_format or scores, language_of(template_source))


def _as_written(score: float) -> float:
    """A whole number without a decimal point, whatever type it is stored as."""
    return score if type(score) is int or score != int(score) else int(score)


def _rendered(reply: _PromptReply | None, failure: SandboxFailure | None) -> Rendered:
    if reply is None:
        return Rendered(None, error=failure)
    return Rendered(reply.text, reply.undefined, reply.none, failure_of(reply.failure), reply.resolved)


# Chinese characters, kana, hangul and full-width forms: current tokenizers take 0.6 to 1 token for each.
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
_TOKENS_PER_WIDE = 0.75
_CHARACTERS_PER_TOKEN = 4.0  # of all other characters, as in English prose


def estimated_tokens(text: str) -> int:
    """A rough estimate, accurate to about 25 %; 0 only for an empty text."""
    wide = sum(1 for _ in _WIDE.finditer(text))
    return math.ceil(wide * _TOKENS_PER_WIDE + (len(text) - wide) / _CHARACTERS_PER_TOKEN)
