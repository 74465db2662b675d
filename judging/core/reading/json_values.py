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
_QUOTES = {'"': '"', "'": "'", "“": "”"}
_STRING_END = {quote: re.compile(rf"{end}(?=\s{{0,40}}(?:[,:}}\]]|\Z))") for quote, end in _QUOTES.items()}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\n"}


@dataclass(frozen=True, slots=True)
class Text:
    """A value in quotation marks, or as written without them: a number, true, null, or bare words."""

    text: str
    quoted: bool


@dataclass(frozen=True, slots=True)
class Member:
    """Key and value of an object, from `start` to `end` in the text. A list is None."""

    key: str
    value: Text | JsonObject | None
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
        self._unended = dict.fromkeys(_QUOTES, len(text) + 1)

    def scan(self, start: int) -> JsonObject | int:
        """The object that begins at `start`, which may lack its end, or where reading failed."""
        try:
            return self._collection(start, DEPTH)
        except _Failed as failure:
            return failure.position

    def _skip(self, position: int) -> int:
        if not self.text[position : position + 1].isspace():
            return position
        blanks = _BLANKS.match(self.text, position)
        assert blanks is not None
        return blanks.end()

    def _collection(self, start: int, depth: int) -> JsonObject:
        """The object or list, whose members have no keys, closed or not: what breaks off between members ends it."""
        if not depth:
            raise _Failed(start)
        closing = "}" if self.text[start] == "{" else "]"
        scanned = JsonObject(start)
        position = self._skip(start + 1)
        while self.text[position : position + 1] != closing:
            try:
                member = self._member(position, depth, has_key=closing == "}")
            except _Failed:
                if not scanned.members:
                    raise
                return scanned
            scanned.members.append(member)
            scanned.end = member.end
            if isinstance(member.value, JsonObject) and not member.value.closed:
                return scanned
            position = self._skip(member.end)
            if self.text[position : position + 1] == ",":
                position = self._skip(position + 1)
            elif self.text[position : position + 1] != closing:
                return scanned
        scanned.end, scanned.closed = position + 1, True
        return scanned

    def _member(self, start: int, depth: int, has_key: bool) -> Member:
        if not has_key:
            value, end = self._value(start, depth)
            return Member("", value, start, end)
        if self.text[start : start + 1] in _QUOTES:
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

    def _value(self, start: int, depth: int) -> tuple[Text | JsonObject | None, int]:
        first = self.text[start : start + 1]
        if first in ("{", "["):
            inner = self._collection(start, depth - 1)
            if first == "[" and not inner.closed:
                raise _Failed(inner.end)
            return inner if first == "{" else None, inner.end
        if first in _QUOTES:
            text, end = self._string(start)
            return Text(text, True), end
        plain = _PLAIN_VALUE.match(self.text, start)
        if plain is None or not plain[0].strip():
            raise _Failed(start)
        written = plain[0].rstrip()
        return Text(written, False), start + len(written)

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
