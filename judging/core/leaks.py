"""Whether the texts of a metric hold a text of a test row: a judge that has seen the test looks better than it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from judging.core.metric_definition import MetricDefinition

LONG = 60
"""Characters of a stretch that counts; a shorter text counts where all of it stands there."""
SHORT = 20
_PIECE = 30  # a stretch of LONG characters holds a whole piece that begins at a multiple of its length


def places_of_texts(definition: MetricDefinition) -> Iterator[tuple[str, int, str]]:
    """(kind of place, its number from 1, text): of template, system_prompt, script and rules."""
    for number, judge in enumerate(definition.judges, start=1):
        yield "template", number, judge.template
        yield "system_prompt", number, judge.system_prompt or ""
    for number, script in enumerate(definition.scripts, start=1):
        yield "script", number, script.source
    yield "rules", 1, definition.rules or ""


def folded(text: str) -> str:
    """Without case, and with single blanks."""
    return " ".join(text.casefold().split())


def first_leak(text: str, rows: Iterable[str]) -> str:
    """The first text of `rows` of which a stretch of 60 characters stands in `text`, or all of it if it is 20 to 60
    long, as that stretch; '' if none does. Both are compared folded."""
    prompt = folded(text)
    pieces = {prompt[start : start + _PIECE] for start in range(len(prompt) - _PIECE + 1)}
    for row in rows:
        if stretch := _shared(prompt, pieces, folded(row)):
            return stretch
    return ""


def _shared(prompt: str, pieces: set[str], row: str) -> str:
    if len(row) <= LONG:
        return row if len(row) >= SHORT and row in prompt else ""
    for start in range(0, len(row) - _PIECE + 1, _PIECE):
        if row[start : start + _PIECE] not in pieces:
            continue
        for first in range(max(0, start + _PIECE - LONG), min(start, len(row) - LONG) + 1):
            if row[first : first + LONG] in prompt:
                return row[first : first + LONG]
    return ""
