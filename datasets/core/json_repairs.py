"""Repairs of texts that are nearly JSON: comments, trailing commas, NaN, Python literals. Strings are not changed.

From a quote on that JSON does not have, a text stays as it is: what looks like a comment or a comma may be text.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator

from datasets.core.json_errors import CONSTANT, JsonProblem, parse
from datasets.core.json_tokens import PLAIN, tokens

MOST_IN_A_COMMENT = 65_536
"""In characters; longer comments over several lines are kept as text."""
LONGEST_LITERAL = 1_000_000
"""In characters; longer lines stay unchanged, since parsing them takes many times their memory."""

_ODD_QUOTES = ("quote", "single")


def without_comment(line: str) -> str | None:
    """Remove the comments from a line (no line end); None if nothing else was on it.

    A line with a comment that continues on the next line stays unchanged.
    """
    text, continues = _without_comments(line)
    return line if continues else text


def _without_comments(line: str) -> tuple[str | None, bool]:
    """The line without comments, and whether the last of them continues on the next line."""
    if not any(mark in line for mark in ("//", "#", "/*")):
        return line, False
    text, at = "", 0
    for kind, start, end in tokens(line):
        if kind in _ODD_QUOTES:
            break
        if kind == "unended":
            return (text + line[at:start]).rstrip() or None, True
        if kind == "comment":
            text += line[at:start]
            at = end
            if text[-1:].strip() and line[at : at + 1].strip():  # keep the tokens around a comment apart
                text += " "
    return ((text + line[at:]).rstrip() or None) if at else line, False


def without_comments(lines: Iterable[str]) -> Iterator[str]:
    """Remove comments, also over several lines, from lines with their ends; drops lines of nothing else.

    A comment without end, or with more than `MOST_IN_A_COMMENT` characters, is kept as text.
    """
    held: list[str] = []  # the lines of the open comment
    before, size = "", 0  # what stands before it, and its length
    for line in lines:
        body = line.rstrip("\r\n")
        end = line[len(body) :]
        if held:
            held.append(line)
            size += len(line)
            closing = body.find("*/") + 2
            if closing < 2:
                if size > MOST_IN_A_COMMENT:
                    yield from held
                    held = []
                continue
            if before:
                yield before
            held, body = [], body[closing:]
            if not body.strip():
                continue
        text, continues = _without_comments(body)
        if continues:
            held, before, size = [line], text + end if text else "", len(line)
        elif text is not None:
            yield text + end
    yield from held


def without_trailing_comma(row: str) -> str:
    """Remove the commas before closing brackets of a row, and the one after it."""
    commas = _Commas()
    text = commas.feed(row) if "," in row else row
    return text + (commas.rest if commas.depth else commas.rest[1:])


def without_trailing_commas(lines: Iterable[str]) -> Iterator[str]:
    """Remove the commas before closing brackets from lines with their ends."""
    commas = _Commas()
    for line in lines:
        yield commas.feed(line)
    yield commas.rest


class _Commas:
    """Holds back a comma, and what follows it, until the next token is known."""

    def __init__(self) -> None:
        self.depth = 0
        self._before = ""  # kind of the last token
        self._held: list[str] = []

    @property
    def rest(self) -> str:
        """The text still held back at the end."""
        return "".join(self._held)

    def feed(self, line: str) -> str:
        """The text that can be written now."""
        written: list[str] = []
        at = 0
        for kind, start, _end in tokens(line):
            if kind in ("comment", "space"):
                continue
            removable = kind == "comma" and self._before not in ("", "comma", "open")
            if self._held or removable:
                (self._held or written).append(line[at:start])
                at = start
            if self._held:
                written.append(self.rest[1:] if kind == "close" else self.rest)
                self._held.clear()
            if removable:
                self._held.append(",")
                at = start + 1
            self._before = kind
            self.depth += {"open": 1, "close": -1}.get(kind, 0)
            if kind in _ODD_QUOTES or kind == "unended":
                break
        (self._held or written).append(line[at:])
        return "".join(written)


def with_null(text: str) -> str | None:
    """The line with null for each NaN and Infinity outside strings; None if it is not JSON then, or has none."""
    parts: list[str] = []
    at = 0
    for kind, start, end in tokens(text):
        if kind not in PLAIN:
            return None
        if kind == "word" and CONSTANT.fullmatch(text, start, end):
            parts += (text[at:start], "null")
            at = end
    return _json("".join((*parts, text[at:]))) if parts else None


def _json(text: str) -> str | None:
    """The text if it is JSON."""
    try:
        parse(text)
    except JsonProblem:
        return None
    return text


# --- Python literals --------------------------------------------------------------------------------------------

_HINT = re.compile(r"'|\b(?:True|False|None)\b")
_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|N\{([^}]*)\}|(.))", re.DOTALL
)
_WORDS = {"True": "true", "False": "false", "None": "null"}
_SIGNS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


def as_json(text: str) -> str | None:
    """Convert the Python literal of an object (single quotes, True, None) to JSON; None if it is not one, or JSON.

    Number spelling and key order are preserved.
    """
    body = text.strip()
    if not body.startswith("{") or len(body) > LONGEST_LITERAL or not _HINT.search(body):
        return None
    try:
        written = _json(without_trailing_comma(_converted(body)).strip())
    except (ValueError, IndexError, KeyError):
        return None
    return written if written != body else None


def _converted(text: str) -> str:
    """Convert strings, constants and tuples to JSON, and remove comments. Raises an error if that is impossible."""
    parts: list[str] = []
    opened: list[tuple[int, bool]] = []  # for each open bracket its part, and whether it contains a comma
    at, before = 0, ""
    for kind, start, end in tokens(text):
        piece = text[start:end]
        parts.append(text[at:start])
        at = end
        if kind in ("quote", "unended") or (kind == "comment" and piece[0] != "#"):
            raise ValueError(piece)
        if kind in ("string", "loose", "control", "single"):
            piece = _string(piece)
        elif kind == "word":
            piece = "" if piece in "uU" and text[end : end + 1] in ("'", '"') else _WORDS.get(piece, piece)
        elif kind == "open" or piece == "(":
            opened.append((len(parts), False))
        elif kind == "comma":
            opened.append((opened.pop()[0], True))
        elif kind == "close":
            opened.pop()
        elif piece == ")":
            opening, has_comma = opened.pop()
            if parts[opening] != "(":
                raise ValueError(piece)
            parts[opening], piece = ("[", "]") if has_comma or before == "(" else ("", "")
        if kind == "comment":
            piece = ""
        else:
            before = text[start]
        parts.append(piece)
    return "".join((*parts, text[at:]))


def _string(literal: str) -> str:
    """Convert a Python string literal to JSON; one that is valid in both stays unchanged."""
    inner = literal[1:-1]
    if "\n" in inner:
        raise ValueError(inner)
    if literal[0] == '"' and "\\" not in inner and inner.isprintable():
        return literal
    value = _ESCAPE.sub(_unescaped, inner)
    return json.dumps(value, ensure_ascii=not value.isprintable())


def _unescaped(escape: re.Match[str]) -> str:
    octal, *codes, name, sign = escape.groups()
    if octal:
        return chr(int(octal, 8))
    if code := next(filter(None, codes), None):
        return chr(int(code, 16))
    if name is not None:
        return unicodedata.lookup(name)
    if sign in "\\'\"":
        return sign
    return _SIGNS.get(sign, f"\\{sign}")
