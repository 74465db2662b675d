"""Splits JSON that is spread over several lines: one array, or indented objects.

Lines are read token by token, tolerating what the repairs remove: comments and trailing commas. Brackets and separators
are checked, but not the inside of scalars. After an invalid object it continues
at the next one that starts at the same indentation.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import StringIO

from datasets.core.decode import Unreadable
from datasets.core.findings import too_large
from datasets.core.json_errors import word_at
from datasets.core.json_tokens import CLOSING, MAX_DEPTH, PLAIN, Nesting, tokens
from datasets.core.limits import Limits

_CLOSING_SHOWN = 20
_INDENT = re.compile(r"[ \t]*+(?=\S)")
_BEGINS = re.compile(r"[ \t]*+(?:[}\],][ \t]*+)*+(?=\{)")
"""Matches a line on which an object starts, possibly after the end of the previous one."""


@dataclass(frozen=True, slots=True)
class PrintedValue:
    """One value of the stream, printed on one line, with its position and number of lines in the source."""

    line: int
    column: int
    lines: int
    end_column: int
    text: str


class NotSpread(ValueError):
    """The text is not JSON here, even when read leniently; `column` counts from 1."""

    def __init__(self, column: int) -> None:
        super().__init__(column)
        self.column = column


class Splitter(Nesting):
    """Takes lines and returns complete values; elements of a top-level array are returned one by one.

    Without `keep`, values have no text, so that nothing is buffered for long ones. From line `unended_comment` on,
    comments cannot span lines, as the one that starts there never ends.
    """

    def __init__(self, keep: bool = True, unended_comment: int | None = None) -> None:
        super().__init__()
        self.keep = keep
        self.unended_comment = unended_comment
        self.comment_line = 0
        self.first_line = 0
        self.arrays = 0
        self.spans_lines = False
        self.in_comment = False
        self._values = 0
        self.start = (0, 0)
        self.size = 0
        self._comma = ""
        self._written = StringIO()

    @classmethod
    def within(cls, array: bool, unended_comment: int | None) -> "Splitter":
        """A splitter positioned before a value, inside or outside a top-level array."""
        splitter = cls(unended_comment=unended_comment)
        splitter.open = ["["] if array else []
        splitter._values = 1
        return splitter

    @property
    def closing(self) -> str:
        """The brackets that would close the open value, truncated if there are very many."""
        marks = [CLOSING[mark] for mark in reversed(self.open[1 if self.open[0] == "[" else 0 :])]
        return "".join(marks[:_CLOSING_SHOWN]) + ("…" if len(marks) > _CLOSING_SHOWN else "")

    @property
    def text(self) -> str:
        """The text of the incomplete value so far."""
        return self._written.getvalue() + self._comma

    def feed(self, number: int, line: str, at: int = 0) -> Iterator[PrintedValue]:
        """Yield the values that end on this line, from `at`. Raises NotSpread."""
        for kind, start, end in tokens(line, at or self._comment_end(line)):
            text = line[start:end]
            if kind == "unended":
                self._open_comment(number, start + 1)
                break
            if kind in PLAIN or kind == "loose":
                is_whole = self._add("string" if kind == "loose" else kind, text, number, start + 1)
                if is_whole:
                    yield self._piece(number, end)
            elif kind != "comment":
                raise NotSpread(start + 1)

    def _open_comment(self, number: int, column: int) -> None:
        if self.unended_comment is not None and number >= self.unended_comment:
            raise NotSpread(column)
        self.in_comment, self.comment_line = True, number

    def _comment_end(self, line: str) -> int:
        """The position after a comment that was open before this line."""
        if not self.in_comment:
            return 0
        end = line.find("*/") + 2
        self.in_comment = end < 2
        return len(line) if end < 2 else end

    def _add(self, kind: str, text: str, number: int, column: int) -> bool:
        """Add a token; return whether it ends a value of the top level."""
        if not self.open:
            self.first_line = number
        self.spans_lines = self.spans_lines or number != self.first_line
        if kind == "comma" and not self.open and self._values:
            return False  # objects separated by commas, as if cut out of an array
        is_between = self._level() == 0
        is_too_deep = kind == "open" and len(self.open) > MAX_DEPTH
        if is_too_deep or not self.take(kind, text):
            raise NotSpread(column)
        if is_between and kind == "open" and self.open == ["["]:
            self.arrays += 1
            return False
        if is_between and kind in ("close", "comma"):
            return False
        if is_between:
            self.start = (number, column)
            self._forget()
        self._write(kind, text)
        return (is_between and kind != "open") or (kind == "close" and self._level() == 0)

    def _piece(self, number: int, end: int) -> PrintedValue:
        line, column = self.start
        piece = PrintedValue(line, column, number - line + 1, end, self.text)
        self._values += 1
        self._forget()
        return piece

    def _level(self) -> int:
        """The nesting depth inside a piece; a top-level array does not count."""
        return len(self.open) - (1 if self.open and self.open[0] == "[" else 0)

    def _write(self, kind: str, text: str) -> None:
        """Add to the text of the value; a comma is written with what follows, unless that is a closing bracket."""
        comma = "" if kind == "close" else self._comma
        self._comma = ", " if kind == "comma" else ""
        if kind != "comma":
            text = f"{comma}: " if kind == "colon" else comma + text
            self.size += len(text)
            if self.keep:
                self._written.write(text)

    def _forget(self) -> None:
        self._written, self._comma, self.size = StringIO(), "", 0


@dataclass(frozen=True, slots=True)
class Broken:
    """A syntax error: its position, what was met and expected, and the text of the object so far.

    `unended`: the line of an object that should have been closed here by `expected`.
    """

    line: int
    column: int
    met: str
    expected: str
    text: str
    unended: int | None = None


@dataclass(frozen=True, slots=True)
class Passed:
    """Text of one line that was skipped after a broken object; `ended`: the next object starts after it."""

    text: str
    ended: bool


class UnendedComment(Exception):
    """A multi-line comment never ends."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def with_unended_comment(attempt: Callable[[int | None], None]) -> None:
    """Read a file; if a comment in it never ends, repeat without multi-line comments from that line on."""
    try:
        attempt(None)
    except UnendedComment as comment:
        attempt(comment.line)


def objects_in(
    lines: Iterable[tuple[int, str]], limits: Limits, unended_comment: int | None
) -> Iterator[tuple[str, "PrintedValue | Broken | Passed"]]:
    """Yield (line text, piece) for all that ends, breaks or is skipped. Raises Unreadable and UnendedComment."""
    objects = Objects(unended_comment)
    last = (0, "")  # last non-blank line
    for number, line in lines:
        last = (number, line) if line.strip() else last
        for piece in objects.feed(number, line):
            yield line, piece
        if objects.splitter.size > limits.row_bytes:  # text buffered for an incomplete value
            raise Unreadable(too_large(objects.start, limits))
    for broken in objects.end(*last):
        yield last[1], broken


class Objects:
    """Takes lines and returns complete and broken values. Every method may raise UnendedComment.

    After an error, and with indented lines even in the middle of an object, the next object is the one that starts on a
    line at the same indentation, unless objects contain lines like it.
    """

    def __init__(self, unended_comment: int | None = None) -> None:
        self.splitter = Splitter(unended_comment=unended_comment)
        self._indent: str | None = None  # indentation of the line on which the last object started
        # Start of the last object whose lines are indented further than that.
        self._indented: int | None = None
        self._ended = False  # at least one object has ended
        self._nested = False  # complete objects contain lines that look like the start of the next one
        self._holds = False  # the open object contains a line like it
        self._lost = False

    @property
    def start(self) -> int:
        """The line at which the last object started."""
        return self.splitter.start[0]

    def feed(self, number: int, line: str) -> Iterator[PrintedValue | Broken | Passed]:
        """Yield what ends or breaks on this line, and what is skipped until the next object."""
        begins = self._next_object(line)
        is_open = self.splitter.size > 0 and not self.splitter.in_comment
        if (
            begins is not None
            and self._begins_at_indent
            and (self._lost or (is_open and self._indented == self.start))
        ):
            yield from self._end_before(number, line[:begins])
            yield from self._read(number, line, begins)
        elif self._lost:
            yield Passed(line, ended=False)
        else:
            yield from self._read(number, line, 0, begins if is_open else None)

    def end(self, number: int, line: str) -> Iterator[Broken]:
        """Yield what is still open after the last line."""
        if self._lost:
            return
        if self.splitter.in_comment:
            raise UnendedComment(self.splitter.comment_line)
        if self.splitter.open:
            yield self._broken(number, len(line) + 1, "", unended=self.splitter.size > 0)

    @property
    def _begins_at_indent(self) -> bool:
        """Whether a line at the indentation of objects starts a new object."""
        return not self._nested and (self._indented is not None or self._ended or self._indent is None)

    def _next_object(self, line: str) -> int | None:
        """Where an object starts on this line, if it is at the indentation of the previous one."""
        indent, begins = _INDENT.match(line), _BEGINS.match(line)
        if indent and self._indent is not None and self.splitter.size and len(indent[0]) > len(self._indent):
            self._indented = self.start
        at_indent = indent is not None and self._indent in (None, indent[0])
        return begins.end() if begins and at_indent else None

    def _end_before(self, number: int, rest: str) -> Iterator[PrintedValue | Broken | Passed]:
        """End the open object with the rest of it on the line on which the next one starts."""
        if not self._lost:
            yield from self._read(number, rest, 0)
            if self.splitter.size and not self._lost:
                yield self._broken(number, len(rest) + 1, "{", unended=True)
                self._lost, rest = True, ""
        if self._lost:
            yield Passed(rest, ended=True)
            self._begin_again()

    def _read(
        self, number: int, line: str, at: int, begins: int | None = None
    ) -> Iterator[PrintedValue | Broken | Passed]:
        """Read a line; `begins` is where the next object seems to start while one is open."""
        pieces: list[PrintedValue] = []
        try:
            for piece in self.splitter.feed(number, line, at):
                pieces.append(piece)
                yield piece
        except NotSpread as broken:
            at = broken.column - 1
            is_next = begins is not None and not pieces and at >= begins and self._begins_at_indent
            if begins is not None and is_next:
                at = begins
                yield self._broken(number, at + 1, "{", unended=True)
                yield Passed(line[:at], ended=True)
            else:
                yield self._broken(number, broken.column, _token_at(line, at))
            if is_next or (line.startswith("{", at) and not self.splitter.size):  # only a comma is missing
                self._begin_again()
                yield from self._read(number, line, at)
                return
            yield Passed(line[at:], ended=False)
            self._lost = True
        holds = begins is not None and (not pieces or pieces[0].end_column > begins)
        self._holds = self._holds or holds
        if pieces:
            self._ended, self._nested, self._holds = True, self._nested or self._holds, False
        if self.start == number:
            indent = _INDENT.match(line)
            self._indent = indent[0] if indent else ""

    def _broken(self, number: int, column: int, met: str, unended: bool = False) -> Broken:
        splitter = self.splitter
        if unended:
            return Broken(number, column, met, splitter.closing, splitter.text, splitter.start[0])
        return Broken(number, column, met, splitter.expected, splitter.text)

    def _begin_again(self) -> None:
        array = self.splitter.open[:1] == ["["]
        self.splitter = Splitter.within(array, self.splitter.unended_comment)
        self._lost = self._holds = False


def _token_at(line: str, at: int) -> str:
    return "/*" if line.startswith("/*", at) else word_at(line, at)
