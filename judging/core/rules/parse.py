"""Parses a program's text into a `Sheet`; errors are collected, and parsing continues after each."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass

from judging.core.rules import keywords
from judging.core.rules.program import CodeBlock, HeaderLine, Problem, Sheet, SourcePlace, Word

_ENTRY = re.compile(r"([^:：]*)[:：]([^:：]*)(?:[:：](.*))?", re.DOTALL)  # name : function [: argument]
_TAG = re.compile(r"<(/?)([^<>/]+)>")

_LABELS = (*keywords.RULE_LABEL.both(), *keywords.CODE_LABEL.both())
_NEED_NO_FUNCTION = (keywords.FORMAT, keywords.AGGREGATE)  # their own errors say what is missing


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One line without its newline (but with the `\\r` of `\\r\\n`); `number` counts from 1."""

    number: int
    text: str

    @property
    def stripped(self) -> str:
        return self.text.strip()

    @property
    def start(self) -> SourcePlace:
        """The position of the first character that is not white space."""
        return SourcePlace(self.number, len(self.text) - len(self.text.lstrip()) + 1)

    @property
    def end(self) -> SourcePlace:
        """The position after the last character that is not white space."""
        return SourcePlace(self.number, len(self.text.rstrip()) + 1)

    def word(self, start: int, end: int) -> Word:
        """This part of the line, stripped."""
        part = self.text[start:end]
        indent = len(part) - len(part.lstrip()) if part.strip() else 0
        return Word(part.strip(), SourcePlace(self.number, start + indent + 1))


@dataclass(frozen=True, slots=True)
class Tag:
    """`<label>` or `</label>` alone on a line."""

    label: Word
    closes: bool


def lines_of(text: str) -> list[SourceLine]:
    """All lines of a program, without a leading byte order mark."""
    return [
        SourceLine(number, line) for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1)
    ]


def tag_on(line: SourceLine) -> Tag | None:
    """The tag that makes up the whole line, or None."""
    match = _TAG.fullmatch(line.stripped) if "<" in line.text else None
    if match is None or not match[2].strip():
        return None
    return Tag(Word(match[2].strip(), line.start), bool(match[1]))


def parse(text: str) -> Sheet:
    """Parse any text into a sheet; never raises."""
    return _Parser(lines_of(text)).sheet()


class _Parser:
    def __init__(self, lines: list[SourceLine]) -> None:
        self.lines = lines
        self.closings = _closings(lines)
        self.at = 0
        self.entries: list[HeaderLine] = []
        self.misplaced: list[HeaderLine] = []
        self.blocks: list[CodeBlock] = []
        self.format: HeaderLine | None = None
        self.problems: list[Problem] = []
        self.header_end = SourcePlace(1, 1)

    def sheet(self) -> Sheet:
        self._read_first_line()
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self.at += 1
            if line.stripped:
                self._read_line(line)
        if self.format is not None:
            for block in self.blocks:
                if block.label.place < self.format.name.place:
                    self._report("block_before_format", block.label.place, label=block.label.text)
        return Sheet(
            tuple(self.entries),
            self.format,
            tuple(self.misplaced),
            tuple(self.blocks),
            self.header_end,
            tuple(self.problems),
        )

    def _report(self, code: str, place: SourcePlace, **params: str) -> None:
        self.problems.append(Problem(code, place, {name: value[:100] for name, value in params.items()}))

    def _read_first_line(self) -> None:
        first = next((line for line in self.lines if line.stripped), SourceLine(1, ""))
        if first.stripped == keywords.HEADER:
            self.at = first.number
            self.header_end = first.end
            return
        self._report("missing_header", first.start, met=first.stripped)
        # Skip a first line that was meant as the header, so that it is reported only once.
        if first.stripped.startswith(("#", "＃")) or first.stripped.upper() == "DSL":
            self.at = first.number

    def _read_line(self, line: SourceLine) -> None:
        tag = tag_on(line)
        if tag is not None:
            self._read_tag(tag)
        elif self.format is None:
            self._read_header_line(line)
        else:
            self._read_late_line(line)

    def _read_header_line(self, line: SourceLine) -> None:
        entry = None if _crowded(line) else _entry(line)
        if entry is None:
            self._note_bad_line(line)
            return
        self.entries.append(entry)
        self.header_end = line.end
        if entry.name.text in keywords.FORMAT:
            self.format = entry

    def _read_late_line(self, line: SourceLine) -> None:
        entry = _entry(line)
        if entry is not None and self.format is not None and entry.name.text in keywords.FORMAT:
            first = str(self.format.name.place.line)
            self._report("duplicate_format", line.start, name=entry.name.text, first=first)
        elif ":" in line.text or "：" in line.text:
            self.misplaced += [entry] if entry else []
            self._report("header_after_format", line.start, met=line.stripped, **_crowded(line))
        else:
            self._note_bad_line(line)

    def _note_bad_line(self, line: SourceLine) -> None:
        self._report("bad_line", line.start, met=line.stripped, **_crowded(line))

    def _read_tag(self, tag: Tag) -> None:
        if tag.closes:
            self._report("block_unopened", tag.label.place, label=tag.label.text)
            return
        closing = self._closing(tag.label.text)
        end = self._where_something_begins() if closing is None else closing
        text = "\n".join(line.text for line in self.lines[self.at : end]).removesuffix("\r")
        self.blocks.append(CodeBlock(tag.label, text, tag.label.place.line + 1))
        if closing is None:
            is_crowded = any(f"</{tag.label.text}>" in line.text for line in self.lines[self.at : end])
            kind = {"kind": "crowded"} if is_crowded else {}
            self._report("block_unclosed", tag.label.place, label=tag.label.text, **kind)
        self.at = end if closing is None else closing + 1

    def _closing(self, label: str) -> int | None:
        """The index of the next line that closes a block with this label."""
        closing = self.closings.get(label, [])
        position = bisect.bisect_left(closing, self.at)
        return closing[position] if position < len(closing) else None

    def _where_something_begins(self) -> int:
        """The index of the next line that cannot belong to an unclosed block."""
        rest = range(self.at, len(self.lines))
        return next((index for index in rest if self._begins_something(self.lines[index])), len(self.lines))

    def _begins_something(self, line: SourceLine) -> bool:
        tag = tag_on(line)
        if tag is not None:
            return tag.label.text.startswith(_LABELS)
        entry = _entry(line) if self.format is None else None
        return entry is not None and entry.name.text in keywords.FORMAT


def _crowded(line: SourceLine) -> dict[str, str]:
    """Error parameters for a line that holds a block's tag and other text; empty for any other line."""
    if "<" not in line.text or tag_on(line) is not None:
        return {}
    text = line.stripped
    tags = (tag for tag in _TAG.finditer(text) if tag.start() == 0 or tag.end() == len(text))
    labels = (tag[2].strip() for tag in tags)
    return next(({"kind": "crowded", "label": label} for label in labels if label.startswith(_LABELS)), {})


def _closings(lines: list[SourceLine]) -> dict[str, list[int]]:
    """Indices of the closing lines by label."""
    by_label: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        tag = tag_on(line)
        if tag is not None and tag.closes:
            by_label.setdefault(tag.label.text, []).append(index)
    return by_label


def _entry(line: SourceLine) -> HeaderLine | None:
    """Parse `name : function [: argument]`; None for a line of any other form."""
    match = _ENTRY.fullmatch(line.text)
    if match is None:
        return None
    name, function, argument = (line.word(*match.span(group)) for group in (1, 2, 3))
    if not name.text or not (function.text or any(name.text in pair for pair in _NEED_NO_FUNCTION)):
        return None
    return HeaderLine(name, function, argument if argument.text else None)
