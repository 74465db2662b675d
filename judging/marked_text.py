"""Marks words of a text where it is shown: as written, or rendered from Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

Place = tuple[int, int]
"""Start and end in a text, in characters."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text."""

    text: str
    marked: bool


def pieces(text: str, places: Iterable[Place]) -> list[Piece]:
    """The text in parts, the words at `places` marked. Places outside of it are left out."""
    parts: list[Piece] = []
    at = 0
    for start, end in sorted(places):
        if at <= start < end <= len(text):
            parts += [Piece(text[at:start], False), Piece(text[start:end], True)]
            at = end
    return [part for part in (*parts, Piece(text[at:], False)) if part.text]


_TOKEN = re.compile(r"<[^>]*>|&#?\w{1,31};|[^<]", re.DOTALL)


def marked_html(rendered: str, source: str, places: Sequence[Place]) -> str:
    """Sanitised HTML of a Markdown text, the words at these places of its source in `<mark>`.

    Rendering drops characters of the source and adds none but in entities, so the shown characters are found in it one
    after the other. A place whose letters and digits are not all found is not marked, nor is one in a formula.
    """
    if not places:
        return rendered
    tokens = [match[0] for match in _TOKEN.finditer(rendered)]
    sources = _places_in_source(tokens, source)
    shown = [place for place in places if _is_shown(place, tokens, sources, source)]
    return "".join(_with_marks(tokens, sources, shown)) if shown else rendered


def _places_in_source(tokens: Sequence[str], source: str) -> list[int]:
    """Where each token's character stands in the source; -1 for tags, blanks, formulas and what is not found."""
    sources, at, formulas = [], 0, 0
    for token in tokens:
        place = -1
        if token[0] == "<":
            formulas += token.startswith("<math")
            formulas -= token.startswith("</math")
        else:
            character = html.unescape(token)
            place = source.find(character, at)
            if character.isspace():
                place = at if source[at : at + 1].isspace() else -1
            at = place + 1 if place >= 0 else at
        sources.append(-1 if formulas else place)
    return sources


def _is_shown(place: Place, tokens: Sequence[str], sources: Sequence[int], source: str) -> bool:
    start, end = place
    shown = [html.unescape(token) for token, at in zip(tokens, sources, strict=True) if start <= at < end]
    wanted = list(filter(str.isalnum, source[start:end]))
    return bool(shown) and list(filter(str.isalnum, "".join(shown))) == wanted


def _with_marks(tokens: Sequence[str], sources: Sequence[int], places: Sequence[Place]) -> Iterator[str]:
    opened = False
    for token, at in zip(tokens, sources, strict=True):
        marked = any(start <= at < end for start, end in places)
        if marked and not opened:
            yield "<mark>"
        elif opened and not marked:
            yield "</mark>"
        opened = marked
        yield token
    if opened:
        yield "</mark>"
