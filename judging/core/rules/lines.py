"""A program's text as lines, and the words on a line with their places."""

from __future__ import annotations

import re
from dataclasses import dataclass

from judging.core.rules.program import Place, Word

_COLON = re.compile("[:：]")
_TAG = re.compile(r"<(/?)([^<>/]+)>")


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its newline (the `\\r` of `\\r\\n` is still there); `number` counts from 1."""

    number: int
    text: str

    @property
    def stripped(self) -> str:
        return self.text.strip()

    @property
    def start(self) -> Place:
        """Where its first character that is no white space stands."""
        return Place(self.number, len(self.text) - len(self.text.lstrip()) + 1)

    def parts(self) -> list[Word]:
        """The line cut at its first two colons, at most three words, blanks around them left out."""
        return [self._word(start, end) for start, end in _between_colons(self.text)]

    def _word(self, start: int, end: int) -> Word:
        part = self.text[start:end]
        indent = len(part) - len(part.lstrip()) if part.strip() else 0
        return Word(part.strip(), Place(self.number, start + indent + 1))


@dataclass(frozen=True, slots=True)
class Tag:
    """`<label>` or `</label>` alone on a line."""

    label: Word
    closes: bool


def lines_of(text: str) -> list[Line]:
    """Every line of a program, a byte order mark at its start left out."""
    return [Line(number, line) for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1)]


def tag_on(line: Line) -> Tag | None:
    """The tag that the line is, or None."""
    found = _TAG.fullmatch(line.stripped) if "<" in line.text else None
    if found is None or not found[2].strip():
        return None
    return Tag(Word(found[2].strip(), line.start), bool(found[1]))


def crowded_tag(line: Line, prefixes: tuple[str, ...]) -> str:
    """The label of a block's tag that shares its line with other text, or ''; a label begins with a prefix."""
    if "<" not in line.text or tag_on(line) is not None:
        return ""
    text = line.stripped
    found = (tag for tag in _TAG.finditer(text) if tag.start() == 0 or tag.end() == len(text))
    labels = (tag[2].strip() for tag in found)
    return next((label for label in labels if label.startswith(prefixes)), "")


def _between_colons(text: str) -> list[tuple[int, int]]:
    colons = [colon.start() for colon, _ in zip(_COLON.finditer(text), range(2), strict=False)]
    starts = [0, *(colon + 1 for colon in colons)]
    return list(zip(starts, [*colons, len(text)], strict=True))
