"""Judge prompts: templates rendered in the jail. What a template sees stands in the specification of prompts."""

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from judging.core.jail.job import Failure, Job
from judging.core.jail.pool import Jail

Undefined = Literal["strict", "lenient"]
PieceKind = Literal["text", "value", "undefined", "none"]


@dataclass(frozen=True, slots=True)
class RenderItem:
    """What one render sees. ``data`` and ``response`` are used as they are; absent standard fields are filled in."""

    data: dict[str, Any]
    response: dict[str, Any] | None = None
    preprocess_result: bool | int | float | str | None = None
    judge_resps: tuple[dict[str, Any], ...] = ()
    judge_reqs: tuple[dict[str, Any], ...] = ()
    min_score: float = 1
    max_score: float = 10


@dataclass(frozen=True, slots=True)
class NameAt:
    """A dotted name and the template's line where it is used (from 1; None where it can't be told)."""

    name: str
    line: int | None


@dataclass(frozen=True, slots=True)
class Rendered:
    """The text, or why there is none. ``undefined`` and ``none``: names that were used while without a value."""

    text: str | None
    undefined: tuple[NameAt, ...] = ()
    none: tuple[NameAt, ...] = ()
    error: Failure | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a rendered text. ``name``, ``line``: of the expression that it came from; of a text '' and None."""

    kind: PieceKind
    text: str
    name: str
    line: int | None


@dataclass(frozen=True, slots=True)
class Preview:
    """A render taken apart: joined, the pieces are its text (up to the error, if there is one)."""

    pieces: tuple[Piece, ...]
    undefined: tuple[NameAt, ...] = ()
    none: tuple[NameAt, ...] = ()
    error: Failure | None = None

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


class _Reply(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    text: str | None
    undefined: list[tuple[str, int | None]]
    none: list[tuple[str, int | None]]
    failure: tuple[str, str, int | None] | None
    pieces: list[tuple[PieceKind, str, str, int | None]] | None

    def failed(self) -> Failure | None:
        return Failure(*self.failure) if self.failure else None


def render(
    jail: Jail, template_source: str, items: list[RenderItem], undefined: Undefined = "strict"
) -> list[Rendered]:
    """One text per item, in order. In ``strict`` use of an undefined name is that item's error."""
    outcomes = jail.run(_job(jail, "render", template_source, undefined), [_wire(item) for item in items])
    return [_rendered(outcome.value, outcome.failure) for outcome in outcomes]


def preview(jail: Jail, template_source: str, item: RenderItem) -> Preview:
    """What ``render`` gives (lenient) for one item, its substituted parts told from the template's own text."""
    (outcome,) = jail.run(_job(jail, "preview", template_source, "lenient"), [_wire(item)])
    reply = outcome.value
    if reply is None:
        return Preview((), error=outcome.failure)
    pieces = tuple(Piece(*piece) for piece in reply.pieces or ())
    return Preview(pieces, _names(reply.undefined), _names(reply.none), reply.failed())


def names_used(jail: Jail, template_source: str) -> tuple[tuple[NameAt, ...], Failure | None]:
    """The names that a template looks up, in its order, and its syntax error if it has one."""
    job = Job("names", template_source, list[tuple[str, int | None]], {})
    (outcome,) = jail.run(job, [{}])
    return _names(outcome.value or []), outcome.failure


def _job(jail: Jail, kind: Literal["render", "preview"], source: str, undefined: Undefined) -> Job[_Reply]:
    return Job(kind, source, _Reply, {"undefined": undefined, "most": jail.limits.output_characters})


def _wire(item: RenderItem) -> dict[str, Any]:
    return {
        "data": item.data,
        "response": item.response or {},
        "preprocess_result": item.preprocess_result,
        "judge_resps": item.judge_resps,
        "judge_reqs": item.judge_reqs,
        "min_score": _as_written(item.min_score),
        "max_score": _as_written(item.max_score),
    }


def _as_written(score: float) -> float:
    """A whole number is shown without a point, however it was stored."""
    return int(score) if score == int(score) else score


def _rendered(reply: _Reply | None, failure: Failure | None) -> Rendered:
    if reply is None:
        return Rendered(None, error=failure)
    return Rendered(reply.text, _names(reply.undefined), _names(reply.none), reply.failed())


def _names(found: list[tuple[str, int | None]]) -> tuple[NameAt, ...]:
    return tuple(NameAt(name, line) for name, line in found)
