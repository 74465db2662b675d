"""A hand-written JSON parser that reports exactly what is invalid or unusable in a text.

It is slow compared with a library's decoder, so it is used only for rows with something to report.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from datasets.core.findings import Finding, finding
from datasets.core.json_nodes import Node, Steps, scanstring
from datasets.core.json_tokens import MAX_DEPTH, QUOTED, Nesting, token_at

FULL_WIDTH = dict(zip("“”„‟＂「」‘’＇，、：｛｝［］", 10 * '"' + ",,:{}[]", strict=True))

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORD = re.compile(r"[-+.\w]+")
CONSTANT = re.compile(r"[-+]?(?:NaN|nan|Infinity|infinity|Inf|inf)")
"""NaN and Infinity, which JSON does not have."""
_LITERALS = frozenset(("true", "false", "null"))
_OTHER_LITERALS = {
    **dict.fromkeys(("True", "TRUE"), "true"),
    **dict.fromkeys(("False", "FALSE"), "false"),
    **dict.fromkeys(("None", "Null", "NULL", "nil", "undefined"), "null"),
}
"""Spellings of other languages."""
# Items of long lists that can be skipped together: not the last before a bracket, no numbers near the limits.
_RUN = re.compile(
    r"""(?:[ \t\r\n]*+
        (?:-?(?:0|[1-9][0-9]{0,15}+)(?:\.[0-9]{1,20}+)?|true|false|null|"[^"\\\x00-\x1f]*+"|\{\}|\[\])
        [ \t\r\n]*+,(?![ \t\r\n]*+\])
    )*+""",
    re.VERBOSE,
)
_IN_QUOTES = re.compile(QUOTED, re.DOTALL)
_LONE = re.compile(r"[\ud800-\udfff]")


class JsonProblem(ValueError):
    """The first syntax error: reason, position (from 0), what was found there and what was expected."""

    def __init__(self, reason: str, position: int, met: str = "", wanted: str = "") -> None:
        super().__init__(reason)
        self.reason, self.position, self.met, self.wanted = reason, position, met[:40], wanted


def parse(text: str) -> Node:
    """Parse a complete JSON text and return its root; raises JsonProblem at the first error."""
    start, end = _value(text)
    kind, rest, after = token_at(text, end)
    if kind == "comma" and token_at(text, after)[0] in ("end", "comment"):
        raise JsonProblem("trailing_comma", rest, ",", "end")
    if kind != "end":
        raise _problem(text, kind, rest, "end")
    return Node(text, start, end)


def trusted(text: str) -> Node:
    """The root of a text that is known to be valid JSON."""
    return Node(text, token_at(text, 0)[1], len(text.rstrip(" \t\r\n")))


def is_too_deep(text: str) -> bool:
    """Whether the brackets of a JSON text are nested too deeply."""
    codes = np.frombuffer(_IN_QUOTES.sub("", text).encode(), np.uint8)
    steps = ((codes | 0x20) == ord("{")).view(np.int8) - ((codes | 0x20) == ord("}")).view(np.int8)
    return int(np.cumsum(steps[steps != 0], dtype=np.int16).max(initial=0)) > MAX_DEPTH


def nests_deeper(value: Any, most: int = MAX_DEPTH) -> bool:
    """Whether lists and objects of a decoded value nest deeper than `most` levels."""
    level = [value] if isinstance(value, dict | list) else []
    while level and most:
        held = (one.values() if isinstance(one, dict) else one for one in level)
        level = [child for children in held for child in children if isinstance(child, dict | list)]
        most -= 1
    return bool(level)


def child_path(parent: str, key: str) -> str:
    """`parent.key`, or `parent["…"]` for a key that is not an identifier."""
    if key.isidentifier():
        return f"{parent}.{key}" if parent else key
    quoted = json.dumps(key, ensure_ascii=bool(_LONE.search(key)))
    return f"{parent}[{quoted}]"


def flaws(text: str, node: Node, trail: Steps = ()) -> Iterator[Finding]:
    """Findings for valid but unusable JSON: duplicate keys, lone surrogates and NULs. `trail` leads to `node`."""
    if node.type == "string":
        yield from _text_flaws(text, node, trail)
    elif node.type == "array":
        for index, item in enumerate(node.items()):
            yield from flaws(text, item, (*trail, index))
    elif node.type == "object":
        seen: set[str] = set()
        for key, _ in node.members():
            name = key.plain()
            if name in seen:
                path = path_of((*trail, name))
                yield finding("json.duplicate_key", column=key.column, path=path, name=name)
            seen.add(name)
        for key, value in node.members():
            below = (*trail, key.plain())
            yield from _text_flaws(text, key, below)
            yield from flaws(text, value, below)


def path_of(trail: Steps) -> str:
    """Format the steps as a path like `messages[2].role`."""
    path = ""
    for step in trail:
        path = f"{path}[{step}]" if isinstance(step, int) else child_path(path, step)
    return path


def _text_flaws(text: str, node: Node, trail: Steps) -> Iterator[Finding]:
    value = node.plain()
    lone = _LONE.search(value)
    if lone:
        column = _escape_column(text, node, lone.start())
        name = f"\\u{ord(lone.group()):04x}"
        yield finding("json.lone_surrogate", column=column, path=path_of(trail), name=name)
    if "\0" in value:
        column = _escape_column(text, node, value.index("\0"))
        yield finding("json.nul", column=column, path=path_of(trail))


_UNIT = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL
)


def _escape_column(text: str, node: Node, index: int) -> int:
    """The source column of character `index` of a string's value."""
    for count, unit in enumerate(_UNIT.finditer(text, node.start + 1, node.end - 1)):
        if count == index:
            return unit.start() + 1
    return node.column


def _value(text: str) -> tuple[int, int]:
    """Start and end of the value at the beginning of a text; raises JsonProblem."""
    nesting, first, at = Nesting(), -1, 0
    before, before_at = "", 0
    while first < 0 or nesting.open:
        kind, start, at = token_at(text, at)
        sign = text[start : start + 1]
        if not nesting.take("string" if sign == '"' else kind, sign):
            raise _problem(text, kind, start, nesting.expected)
        if kind == "close" and before == "comma":
            raise JsonProblem("trailing_comma", before_at, ",", sign)
        if len(nesting.open) > MAX_DEPTH:
            raise JsonProblem("too_deep", start, str(MAX_DEPTH))
        if kind == "word":
            _check_word(text, start, at)
        elif sign == '"' and kind != "string":
            raise _string_problem(text, start)
        elif kind in ("open", "comma") and nesting.open[-1] == "[":
            run = _RUN.match(text, at)
            at = run.end() if run else at
        before, before_at = kind, start
        first = start if first < 0 else first
    return first, at


def _string_problem(text: str, start: int) -> JsonProblem:
    """The error in a string that JSON does not have."""
    try:
        scanstring(text, start + 1, True)
    except json.JSONDecodeError as error:
        if error.msg.startswith("Invalid control"):
            return JsonProblem("control_character", error.pos, character_name(text[error.pos]))
        if not error.msg.startswith("Unterminated"):
            at = text.rfind("\\", start, error.pos + 1)
            return JsonProblem("bad_escape", at, text[at : at + 2])
    return JsonProblem("unterminated_string", start, '"', '"')


def _check_word(text: str, start: int, end: int) -> None:
    """Raise JsonProblem for a word that is no value of JSON."""
    word = text[start:end]
    if word in _LITERALS:
        return
    if CONSTANT.fullmatch(word):
        raise JsonProblem("constant", start, word)
    if _NUMBER.fullmatch(word):
        if math.isinf(float(word)):
            raise JsonProblem("number_range", start, word)
    elif (word[0].isdigit() or word[0] in "+-.") and word.strip("+-."):
        raise JsonProblem("bad_number", start, word)
    elif word in _OTHER_LITERALS:
        raise JsonProblem("literal", start, word, _OTHER_LITERALS[word])
    else:
        raise _problem(text, "word", start, "value")


def _problem(text: str, kind: str, at: int, expected: str) -> JsonProblem:
    """The error for a token that stands where `expected` should."""
    character = text[at : at + 1]
    if kind == "end":
        return JsonProblem("end", at, "", expected)
    if kind == "comment":
        return JsonProblem("comment", at, "#" if character == "#" else text[at : at + 2], expected)
    if character == "'":
        return JsonProblem("single_quote", at, "'", '"')
    if plain := FULL_WIDTH.get(character):
        return JsonProblem(_FULL_WIDTH_REASONS.get(plain, "full_width"), at, character, plain)
    return JsonProblem("unexpected", at, word_at(text, at), expected)


_FULL_WIDTH_REASONS = {'"': "full_width_quote", ",": "full_width_comma"}


def word_at(text: str, position: int) -> str:
    """The word or character at a position, for use in a message; '' at the end."""
    word = _WORD.match(text, position)
    character = text[position : position + 1]
    return word.group()[:40] if word else character and character_name(character)


def character_name(character: str) -> str:
    """The character itself, or a code point like `U+0009` if it is not visible."""
    return character if character.isprintable() and character != " " else f"U+{ord(character):04X}"
