"""A prompt as one sample row makes it, rendered in the jail within limits fit for typing."""

from __future__ import annotations

import atexit
import threading
from dataclasses import dataclass

from judging.core.jail.job import Failure
from judging.core.jail.keeper import JailBroken
from judging.core.jail.pool import Jail, JailRefused
from judging.core.metric_definition import MetricDefinition
from judging.core.pipeline import with_changes
from judging.core.prompts import Piece, Preview, names_used, preview
from judging.core.results import Context, Item
from judging.core.scripts import ScriptKind, ScriptOutcome, load_failure, run_preprocess
from judging.core.template_context import render_item
from judging.core.tokens import estimated_tokens
from judging.jails import make_jail

SECONDS = 2.0  # of processor time: somebody waits
MAX_SHOWN = 100_000  # characters of a prompt that the page shows

_starting = threading.Lock()
_jail: Jail | None = None


def shared_jail() -> Jail:
    """This process's jail for previews, shared by its threads; started at first use."""
    global _jail
    with _starting:
        if _jail is None:
            _jail = make_jail(seconds=SECONDS)
            atexit.register(_jail.close)
        return _jail


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered prompt, taken apart, and what preprocess did before; `pieces` may be cut."""

    shown: Preview
    pieces: tuple[Piece, ...]
    preprocess: ScriptOutcome | None
    item: Item
    was_cut: bool = False

    @property
    def text(self) -> str:
        return self.shown.text

    @property
    def tokens(self) -> int:
        return estimated_tokens(self.text)

    @property
    def failed(self) -> bool:
        return self.shown.error is not None


def preview_prompt(definition: MetricDefinition, judge: int, item: Item) -> Prompt:
    """The prompt of one judge model for an item. Whatever goes wrong is in the result."""
    try:
        return _prompt(definition, judge, item)
    except (JailRefused, JailBroken) as error:
        return Prompt(Preview((), error=Failure("refused", str(error))), (), None, item)


def _prompt(definition: MetricDefinition, judge: int, item: Item) -> Prompt:
    jail, before = shared_jail(), None
    context = Context(item)
    if definition.preprocess.strip():
        (before,) = run_preprocess(jail, definition.preprocess, [(item.data, item.response)])
        if before.failure is not None:
            return Prompt(Preview(()), (), before, item)
        context = Context(with_changes(item, before.changed), before.result)
    shown = preview(jail, definition.judges[judge].template, render_item(context, definition))
    pieces, was_cut = _cut(shown.pieces)
    return Prompt(shown, pieces, before, context.item, was_cut)


def _cut(pieces: tuple[Piece, ...]) -> tuple[tuple[Piece, ...], bool]:
    kept: list[Piece] = []
    left = MAX_SHOWN
    for piece in pieces:
        if left <= 0:
            return tuple(kept), True
        kept.append(Piece(piece.kind, piece.text[:left], piece.name, piece.line))
        left -= len(piece.text)
    return tuple(kept), left < 0


def template_failure(source: str) -> Failure | None:
    """The template's syntax error, found in the jail, since compiling is a hostile program's work too."""
    try:
        return names_used(shared_jail(), source)[1]
    except (JailRefused, JailBroken) as error:
        return Failure("refused", str(error))


def script_failure(kind: ScriptKind, source: str) -> Failure | None:
    """Why a script cannot be loaded; what it does with items is not looked at."""
    try:
        return load_failure(shared_jail(), kind, source)
    except (JailRefused, JailBroken) as error:
        return Failure("refused", str(error))
