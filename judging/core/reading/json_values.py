"""Objects in a text, read leniently in one pass: JSON as judges write it.

Allowed are trailing commas, single or no quotation marks, quotation marks within a text (which ends at one before a
comma, a colon or a closing bracket), raw line ends, bad escapes and a missing end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MOST_FAILED = 200
MOST_FAILED_CHARACTERS = 200_000
DEPTH = 64

_BLANKS = re.compile(r"\s*")
_KEY = re.compile(r"[^\W\d][^\s{}\[\]\"',:=]{0,59}")
_PLAIN_VALUE = re.compile(r"[^\n,{}\[\]\"]{1,200}")
_STRING_END = {quote: re.compile(rf"{quote}(?=\s{{0,40}}(?:[,:}}\]]|\Z))") for quote in ('"', "'")}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\n"}


@dataclass(frozen=True, slots=True)
class Text:
    """A value in quotation marks."""

    text: str


@dataclass(frozen=True, slots=True)
class Plain:
    """A value without quotation marks, as written: a number, true, null, or bare words."""

    text: str


@dataclass(frozen=True, slots=True)
class Member:
    """Key and value of an object, from `start` to `end` in the text. A list is None."""

    key: str
    value: Text | Plain | JsonObject | None
    start: int
    end: int


@dataclass(slots=True)
class JsonObject:
    start: int
    end: int = 0
    closed: bool = False
    members: list[Member] = field(default_factory=list)


class _Failed(Exception):
    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class ObjectScanner:
    """Scans one text. Strings that do not end are not searched for their end again."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._unended = {'"': len(text) + 1, "'": len(text) + 1}

    def scan(self, start: int) -> JsonObject | int:
        """The object that begins at `start`, which may lack its end, or where reading failed."""
        try:
            return self._object(start, DEPTH)
        except _Failed as failure:
            return failure.position

    def _skip(self, position: int) -> int:
        if not self.text[position : position + 1].isspace():
            return position
        blanks = _BLANKS.match(self.text, position)
        assert blanks is not None
        return blanks.end()

    def _object(self, start: int, depth: int) -> JsonObject:
        """The object, closed or not: what breaks off between members ends it."""
        if not depth:
            raise _Failed(start)
        scanned = JsonObject(start)
        position = self._skip(start + 1)
        while True:
            if self.text[position : position + 1] == "}":
                scanned.end, scanned.closed = position + 1, True
                return scanned
            try:
                member = self._member(position, depth)
            except _Failed:
                if not scanned.members:
                    raise
                scanned.end = scanned.members[-1].end
                return scanned
            scanned.members.append(member)
            if isinstance(member.value, JsonObject) and not member.value.closed:
                scanned.end = member.end
                return scanned
            position = self._skip(member.end)
            if self.text[position : position + 1] == ",":
                position = self._skip(position + 1)
            elif self.text[position : position + 1] != "}":
                scanned.end = member.end
                return scanned

    def _member(self, start: int, depth: int) -> Member:
        quote = self.text[start : start + 1]
        if quote in ('"', "'") and quote:
            key, position = self._string(start)
        else:
            plain = _KEY.match(self.text, start)
            if plain is None:
                raise _Failed(start)
            key, position = plain[0], plain.end()
        position = self._skip(position)
        if self.text[position : position + 1] != ":":
            raise _Failed(position)
        value, end = self._value(self._skip(position + 1), depth)
        return Member(key, value, start, end)

    def _value(self, start: int, depth: int) -> tuple[Text | Plain | JsonObject | None, int]:
        first = self.text[start : start + 1]
        if first == "{":
            inner = self._object(start, depth - 1)
            return inner, inner.end
        if first == "[":
            return None, self._list_end(start, depth - 1)
        if first and first in "\"'":
            text, end = self._string(start)
            return Text(text), end
        plain = _PLAIN_VALUE.match(self.text, start)
        if plain is None or not plain[0].strip():
            raise _Failed(start)
        written = plain[0].rstrip()
        return Plain(written), start + len(written)

    def _list_end(self, start: int, depth: int) -> int:
        """Where the list ends."""
        if depth <= 0:
            raise _Failed(start)
        position = self._skip(start + 1)
        while self.text[position : position + 1] != "]":
            _, end = self._value(position, depth)
            position = self._skip(end)
            if self.text[position : position + 1] == ",":
                position = self._skip(position + 1)
            elif self.text[position : position + 1] != "]":
                raise _Failed(position)
        return position + 1

    def _string(self, start: int) -> tuple[str, int]:
        quote = self.text[start]
        position = start + 1
        while position < self._unended[quote]:
            end = _STRING_END[quote].search(self.text, position)
            if end is None:
                self._unended[quote] = start
                break
            if not self._is_escaped(end.start(), start):
                return _unescaped(self.text[start + 1 : end.start()]), end.end()
            position = end.end()
        raise _Failed(start)

    def _is_escaped(self, position: int, start: int) -> bool:
        """Whether an odd number of backslashes stands before the quotation mark, which then belongs to the text."""
        backslashes = position
        while backslashes - 1 > start and self.text[backslashes - 1] == "\\":
            backslashes -= 1
        return (position - backslashes) % 2 == 1


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), text) if "\\" in text else text
