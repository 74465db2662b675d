"""Printed objects one after the other, also behind one that breaks off: where it breaks, and where the next begins.

An object that is never closed takes the next ones in, and no sign of JSON is wrong until the file ends. What looks like
the next row is only noted, as it may be a row's own value; where it proves to be none, the file is read once more
(`Swallowed`), and from that object on whatever looks like the next row is one. So it is with a comment that is never
closed: from there on none goes on over several lines.
"""

import re
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace

from datasets.core.formats.spread import NotSpread, Piece, Splitter
from datasets.core.jsontext import MAX_DEPTH

_INDENT = re.compile(r"([ \t]*+)(\S)?")
_BEGINS = re.compile(r"[ \t]*+(?:[}\],][ \t]*+)*+(?=\{)")
"""A line on which an object begins, perhaps behind the end of the one before."""

_FIRST_KEY = re.compile(r'\{?[ \t\r\n]*+("(?:[^"\\]|\\.)*+")')
"""The first key of an object, its brace perhaps on the line before."""

_BRACE_ALONE = re.compile(r"\{[ \t\r\n]*+\Z")
_ROW_KEYS = ('"messages"', '"conversation"')

_SIGN = re.compile(
    r"""[\s,]*+(?:
      (?P<string>"(?:[^"\\]|\\.)*+"?)
    | (?P<comment>//.*|\#.*|/\*.*?(?:\*/|\Z))
    | (?P<open>[{\[])
    | (?P<close>[}\]])
    | (?P<other>[^\s"{}\[\],\#/]++|/)
    )""",
    re.VERBOSE | re.DOTALL,
)
_CLOSING = {"{": "}", "[": "]"}
_OPENING = {closing: opening for opening, closing in _CLOSING.items()}


@dataclass(frozen=True, slots=True)
class Broken:
    """Where the text is no JSON, what is wanted there, and what was read of the object until then.

    `unended`: the line at which the object begins that is not closed here, though it should be; `wanted` closes it.
    """

    line: int
    column: int
    wanted: str
    begun: str
    unended: int | None = None


@dataclass(frozen=True, slots=True)
class Unended:
    """Lines at which begins what is never closed: an object, a comment."""

    object: int | None = None
    comment: int | None = None


class Swallowed(Exception):
    """Something was never closed, and objects seem to have been taken in by it: all that is known of that by now."""

    def __init__(self, unended: Unended) -> None:
        super().__init__(unended)
        self.unended = unended


def until_all_ends(attempt: Callable[[Unended], None]) -> None:
    """Tries until nothing is swallowed any more: thrice, or in the worst case four times."""
    unended = Unended()
    while True:
        try:
            return attempt(unended)
        except Swallowed as known:
            unended = known.unended


@dataclass(frozen=True, slots=True)
class Passed:
    """Text that was passed over behind a fault, of one line; `ended`: the next object begins behind it."""

    text: str
    ended: bool


def with_next(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """(number, line, the line after it) of all lines; '' comes after the last."""
    held: tuple[int, str] | None = None
    for number, line in lines:
        if held:
            yield *held, line
        held = (number, line)
    if held:
        yield *held, ""


class Objects:
    """Lines in, whole values and broken ones out, each line looked at once or twice.

    `unended` is what a Swallowed told of. Every method may raise Swallowed, of an object and of a comment once each.
    """

    def __init__(self, unended: Unended) -> None:
        self.splitter = Splitter(unended_comment=unended.comment)
        self._unended = unended
        self._indent: str | None = None  # of the line on which the last object began
        self._printed = False  # other lines of an object stand further in: by that objects are told apart
        self._here, self._further_in, self._begins = "", False, -1
        self._key = ""  # the first of the object that begins on this line
        self._usual_key = ""  # the first of the first object
        self._noted = 0  # the first line on which the next row seems to begin within the open object
        self._rows_in_rows = False  # so it seemed in an object that was whole: rows of this file hold others
        self._lost: _Lost | None = None

    @property
    def start(self) -> int:
        """The line at which the last object began."""
        return self.splitter.start[0]

    def exceeds(self, limit: int) -> bool:
        """Is more remembered of a value that has not ended than the limit allows?"""
        if self.splitter.size > limit and self._noted:
            raise self._swallowed()
        return self.splitter.size > limit

    def feed(self, number: int, line: str, following: str = "") -> Iterator[Piece | Broken | Passed]:
        """What ends or breaks off on this line, and what is passed over until the next object."""
        at: int | None = 0
        self._look_at(line, following)
        if self._lost:
            self._printed = self._printed or self._further_in
            at = self._begin_again(self._lost, line, 0)
            yield Passed(line[:at], at is not None)
        elif self._is_next_row() and self.splitter.size and not self.splitter.in_comment:
            if self._unended.object is not None and self.start >= self._unended.object:
                at = yield from self._end_before(number, line)
            else:
                self._noted = self._noted or number
        while at is not None:
            at = yield from self._go_on(number, line, at)

    def end(self, number: int, line: str) -> Iterator[Broken]:
        """What is still open behind the last line."""
        if self.splitter.in_comment:
            again = self._unended.comment is not None  # what came before it was read another way
            raise Swallowed(replace(self._unended, comment=0 if again else self.splitter.comment_line))
        if self.splitter.open and not self._lost:
            if self._noted:
                raise self._swallowed()
            yield self._broken(number, len(line) + 1, unended=self.splitter.size > 0)

    def _go_on(self, number: int, line: str, at: int) -> Generator[Piece | Broken | Passed, None, int | None]:
        """Reads on from `at`; where the next object begins if one breaks off."""
        pieces: list[Piece] = []
        try:
            self.splitter.feed(number, line, pieces, at)
        except NotSpread as broken:
            self._note(number, pieces)
            yield from pieces
            begins = broken.column - 1
            unended = begins == self._begins and self._is_next_row() and self.splitter.size > 0
            if self._noted and not (unended and self._noted == number):
                raise self._swallowed() from None
            self._noted = 0
            yield self._broken(number, broken.column, unended=unended)
            onward = self._begin_again(_Lost(self.splitter), line, begins)
            yield Passed(line[begins:onward], onward is not None)
            return onward
        self._note(number, pieces)
        yield from pieces
        return None

    def _end_before(self, number: int, line: str) -> Generator[Piece | Broken | Passed, None, int | None]:
        """The object that is open ends, or should, before the one that begins on this line."""
        begins = self._begins
        yield from self._go_on(number, line[:begins], 0)
        if self._lost:
            self._begin_again(self._lost, line, begins)
            yield Passed("", ended=True)
        elif self.splitter.size:
            yield self._broken(number, begins + 1, unended=True)
            self._begin_again(_Lost(self.splitter), line, begins)
            yield Passed("", ended=True)
        return begins

    def _swallowed(self) -> Swallowed:
        return Swallowed(replace(self._unended, object=self.start))

    def _broken(self, number: int, column: int, *, unended: bool) -> Broken:
        splitter = self.splitter
        if unended:
            return Broken(number, column, splitter.closing, splitter.begun, splitter.start[0])
        return Broken(number, column, splitter.wanted, splitter.begun)

    def _look_at(self, line: str, following: str) -> None:
        """What a line's beginning tells; once a line, which may break off at a million places."""
        indent = _INDENT.match(line)
        self._here = indent.group(1) if indent else ""
        begins = _BEGINS.match(line)
        self._begins = begins.end() if begins else -1
        self._key = _first_key(line, self._begins, following) if begins else ""
        self._further_in = (
            self._indent is not None
            and len(self._here) > len(self._indent)
            and self._here.startswith(self._indent)
            and bool(indent and indent.group(2))
        )

    def _is_next_row(self) -> bool:
        """Does the next object seem to begin on this line, by its place or by its first key?"""
        if self._begins < 0:
            return False
        if self._printed and self._here == self._indent:
            return True
        return (
            (self._key in _ROW_KEYS or self._is_like_the_first())
            and not self._rows_in_rows
            and not self._is_deeper
        )

    @property
    def _is_deeper(self) -> bool:
        """Is this line, by its place, within an object?"""
        return self._printed and self._further_in

    def _is_like_the_first(self) -> bool:
        """Does an object begin on this line as the first of the file did?"""
        return self._begins >= 0 and bool(self._key) and self._key == self._usual_key and not self._is_deeper

    def _note(self, number: int, pieces: list[Piece]) -> None:
        if not self._usual_key and (pieces or self.splitter.size):
            self._usual_key = _first_key(pieces[0].text if pieces else self.splitter.begun, 0, "")
        if pieces:
            self._rows_in_rows = self._rows_in_rows or self._noted > 0
            self._noted = 0
        if self.splitter.start[0] == number:
            self._indent = self._here
        elif self.splitter.size and self._further_in:
            self._printed = True

    def _begin_again(self, lost: "_Lost", line: str, at: int) -> int | None:
        """Where on this line, from `at` on, the next object begins; from there a new splitter reads on."""
        self._lost = lost
        if at == self._begins and lost.wants_a_key:
            found: int | None = at
        elif self._begins >= at and (self._is_next_row() or self._is_like_the_first()):
            found = self._begins
        else:
            found = lost.passes(line, at, self._begins)
            if self._is_deeper:
                found = None  # an element of what broke off, though the brackets are closed by their number
        if found is not None:
            self._lost = None
            self.splitter = Splitter.within(lost.array, self._unended.comment)
        return found


def _first_key(line: str, at: int, following: str) -> str:
    alone = _BRACE_ALONE.match(line, at)
    found = _FIRST_KEY.match(following) if alone else _FIRST_KEY.match(line, at)
    return found.group(1) if found else ""


class _Lost:
    """Behind a fault: counts brackets, generously, until those of the broken object are closed."""

    def __init__(self, splitter: Splitter) -> None:
        self.array = splitter.open[:1] == ["["]
        self._open = splitter.open[1 if self.array else 0 :]
        # A brace on a line of its own is no member of the object: it begins the next one.
        self.wants_a_key = self._open == ["{"] and splitter.wanted in ("key", "comma_or_brace")
        self._number = {mark: self._open.count(mark) for mark in _CLOSING}
        self._beyond = 0
        self._certain = True

    def passes(self, line: str, at: int, begins: int) -> int | None:
        """Where the next object begins; behind anything that belongs to none only at `begins`, the line's beginning."""
        for sign in _SIGN.finditer(line, at):
            kind = str(sign.lastgroup)
            if self._open:
                self._count(kind, sign.group(kind))
            elif kind == "open" and sign.group(kind) == "{" and (self._certain or sign.start(kind) == begins):
                return sign.start(kind)
            elif kind == "open":
                self._count(kind, sign.group(kind))
            elif kind not in ("close", "comment"):
                self._certain = False
        return None

    def _count(self, kind: str, mark: str) -> None:
        if kind == "open" and len(self._open) > MAX_DEPTH:
            self._beyond += 1
        elif kind == "open":
            self._open.append(mark)
            self._number[mark] += 1
        elif kind == "close" and self._beyond:
            self._beyond -= 1
        elif kind == "close":
            self._close(mark)

    def _close(self, mark: str) -> None:
        """Ends what this bracket ends, and what stands open within; one that ends nothing is one too many."""
        ended = not self._number[_OPENING[mark]]
        while not ended:
            last = self._open.pop()
            self._number[last] -= 1
            ended = _CLOSING[last] == mark
