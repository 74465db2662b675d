"""Converts a line that is a Python literal (single quotes, True, None) to JSON."""

import json
import re
import unicodedata

from datasets.core.json_errors import JsonProblem, parse

LONGEST = 1_000_000
"""In characters; longer lines stay unchanged, since parsing them takes many times their memory."""

_HINT = re.compile(r"'|\b(?:True|False|None)\b")
_TOKEN = re.compile(
    r"""(?P<string>[uU]?(?:'(?:[^'\\\n]|\\.)*+'|"(?:[^"\\\n]|\\.)*+"))
    | (?P<word>\b(?:True|False|None)\b)
    | (?P<comment>\#.*)
    | (?P<open>[(\[{])
    | (?P<close>\s*(?:,\s*)?[)\]}])
    | (?P<comma>,)""",
    re.VERBOSE,
)
_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|N\{([^}]*)\}|(.))", re.DOTALL
)
_WORDS = {"True": "true", "False": "false", "None": "null"}
_SIGNS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


def as_json(text: str) -> str | None:
    """Convert the Python literal of an object to JSON; None if it is not one, or already JSON.

    Number spelling and key order are preserved.
    """
    body = text.strip()
    if not body.startswith("{") or len(body) > LONGEST or not _HINT.search(body):
        return None
    try:
        written = _written(body)
        is_object = parse(written).type == "object"
    except (JsonProblem, ValueError, IndexError, KeyError):
        return None
    return written if is_object and written != body else None


def _written(text: str) -> str:
    """Convert strings, constants, tuples and trailing commas to JSON."""
    parts: list[str] = []
    opened: list[int] = []
    commas: list[bool] = []
    at = 0
    for token in _TOKEN.finditer(text):
        parts.append(text[at : token.start()])
        at = token.end()
        kind, piece = token.lastgroup, token.group()
        if kind == "string":
            piece = _string(piece)
        elif kind == "word":
            piece = _WORDS[piece]
        elif kind == "comment":
            piece = ""
        elif kind == "open":
            opened.append(len(parts))
            commas.append(False)
        elif kind == "comma":
            commas[-1] = True
        elif kind == "close":
            piece = _close(piece, parts, opened.pop(), commas.pop())
        parts.append(piece)
    return "".join((*parts, text[at:])).strip()


def _close(piece: str, parts: list[str], opening: int, has_comma: bool) -> str:
    """The closing bracket without a preceding comma; a tuple becomes a list."""
    bracket = piece[-1]
    if bracket == ")":
        is_tuple = has_comma or "," in piece or not "".join(parts[opening + 1 :]).strip()
        parts[opening], bracket = ("[", "]") if is_tuple else ("", "")
    return piece[:-1].replace(",", "") + bracket


def _string(literal: str) -> str:
    """Convert a Python string literal to JSON; one that is valid in both stays unchanged."""
    literal = literal.lstrip("uU")
    inner = literal[1:-1]
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
