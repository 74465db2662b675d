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
from datasets.core.json_nodes import BLANK, Node, Steps, scanstring

MAX_DEPTH = 200
CLOSING = {"{": "}", "[": "]"}

FULL_WIDTH = dict(zip("“”„‟＂「」‘’＇，、：｛｝［］", 10 * '"' + ",,:{}[]", strict=True))

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_COMMENT = re.compile(r"#|//|/\*(?=.*?\*/)", re.DOTALL)
_WORD = re.compile(r"[-+.\w]+")
_CONSTANTS = re.compile(r"[-+]?(?:NaN|nan|Infinity|infinity|Inf|inf)\Z")
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
_IN_QUOTES = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_LONE = re.compile(r"[\ud800-\udfff]")


class JsonProblem(ValueError):
    """The first syntax error: reason, position (from 0), what was found there and what was expected."""

    def __init__(self, reason: str, position: int, met: str = "", wanted: str = "") -> None:
        super().__init__(reason)
        self.reason, self.position, self.met, self.wanted = reason, position, met[:40], wanted


def parse(text: str) -> Node:
    """Parse a complete JSON text and return its root; raises JsonProblem at the first error."""
    start = _blank_end(text, 0)
    end = _end_of_value(text, start)
    rest = _blank_end(text, end)
    if rest == len(text):
        return Node(text, start, end)
    after = _blank_end(text, rest + 1)
    if text[rest] == "," and (after == len(text) or _COMMENT.match(text, after)):
        raise JsonProblem("trailing_comma", rest, ",", "end")
    raise _problem(text, rest, "end")


def trusted(text: str) -> Node:
    """The root of a text that is known to be valid JSON."""
    return Node(text, _blank_end(text, 0), len(text.rstrip(" \t\r\n")))


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


def _blank_end(text: str, position: int) -> int:
    blank = BLANK.match(text, position)
    return blank.end() if blank else position


class Nesting:
    """The open brackets of a JSON text and what is expected next."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.expects = "value"

    @property
    def expected(self) -> str:
        """What is expected next, as named in a JsonProblem."""
        if self.expects == "separator":
            return "comma_or_brace" if self.open[-1] == "{" else "comma_or_bracket"
        return self.expects.removesuffix("_or_end")

    def opened(self, sign: str) -> None:
        self.open.append(sign)
        self.expects = "key_or_end" if sign == "{" else "value_or_end"

    def closes(self, sign: str) -> bool:
        """Whether the bracket closes the innermost open one."""
        fits = bool(self.open) and sign == CLOSING[self.open[-1]]
        return fits and self.expects in ("separator", "key_or_end", "value_or_end")

    def ended(self) -> None:
        """Update what is expected after a value has ended."""
        self.expects = "separator" if self.open else "value"


def _end_of_value(text: str, at: int) -> int:
    """The end position of the value that starts at `at`; raises JsonProblem."""
    nesting = Nesting()
    while True:
        sign = text[at : at + 1]
        if nesting.closes(sign):
            nesting.open.pop()
            nesting.ended()
            at += 1
        elif nesting.expects == "separator" and sign == ",":
            at = _after_comma(text, at, nesting)
            continue
        elif nesting.expects == "colon" and sign == ":":
            nesting.expects = "value"
            at += 1
        elif nesting.expects in ("key", "key_or_end") and sign == '"':
            at, nesting.expects = _end_of_string(text, at), "colon"
        elif nesting.expects not in ("value", "value_or_end"):
            raise _problem(text, at, nesting.expected)
        elif sign and sign in "{[":
            if len(nesting.open) == MAX_DEPTH:
                raise JsonProblem("too_deep", at, str(MAX_DEPTH))
            nesting.opened(sign)
            at = _after_run(text, at + 1) if sign == "[" else at + 1
        else:
            at = _end_of_string(text, at) if sign == '"' else _end_of_scalar(text, at)
            nesting.ended()
        if not nesting.open:
            return at
        at = _blank_end(text, at)


def _after_comma(text: str, at: int, nesting: Nesting) -> int:
    following, is_object = _blank_end(text, at + 1), nesting.open[-1] == "{"
    closing = CLOSING[nesting.open[-1]]
    if text[following : following + 1] == closing:
        raise JsonProblem("trailing_comma", at, ",", closing)
    nesting.expects = "key" if is_object else "value"
    return following if is_object else _blank_end(text, _after_run(text, following))


def _after_run(text: str, at: int) -> int:
    run = _RUN.match(text, at)
    return run.end() if run else at


def _end_of_string(text: str, start: int) -> int:
    try:
        return scanstring(text, start + 1, True)[1]
    except json.JSONDecodeError as error:
        if error.msg.startswith("Unterminated"):
            raise JsonProblem("unterminated_string", start, '"', '"') from None
        if error.msg.startswith("Invalid control"):
            raise JsonProblem("control_character", error.pos, character_name(text[error.pos])) from None
        at = text.rfind("\\", start, error.pos + 1)
        raise JsonProblem("bad_escape", at, text[at : at + 2]) from None


def _end_of_scalar(text: str, at: int) -> int:
    word = _WORD.match(text, at)
    token = word.group() if word else ""
    if token in _LITERALS:
        return at + len(token)
    if _CONSTANTS.match(token):
        raise JsonProblem("constant", at, token)
    if token and _NUMBER.fullmatch(token):
        if math.isinf(float(token)):
            raise JsonProblem("number_range", at, token)
        return at + len(token)
    if token and (token[0].isdigit() or token[0] in "+-.") and token.strip("+-."):
        raise JsonProblem("bad_number", at, token)
    if token in _OTHER_LITERALS:
        raise JsonProblem("literal", at, token, _OTHER_LITERALS[token])
    raise _problem(text, at, "value")


def _problem(text: str, at: int, expected: str) -> JsonProblem:
    """The error for what stands where `expected` should."""
    character = text[at : at + 1]
    if not character:
        return JsonProblem("end", at, "", expected)
    if comment := _COMMENT.match(text, at):
        return JsonProblem("comment", at, comment.group(), expected)
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
