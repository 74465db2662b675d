"""Reading one JSON text by hand: where each value stands, and what exactly is wrong with a broken one.

Slow beside a library's decoder, so only rows with something to report come here.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

JsonType = Literal["object", "array", "string", "number", "boolean", "null"]
MAX_DEPTH = 200

FULL_WIDTH = {
    "“": '"',
    "”": '"',
    "„": '"',
    "‟": '"',
    "＂": '"',
    "「": '"',
    "」": '"',
    "‘": '"',
    "’": '"',
    "＇": '"',
    "，": ",",
    "、": ",",
    "：": ":",
    "｛": "{",
    "｝": "}",
    "［": "[",
    "］": "]",
}

scanstring: Callable[[str, int, bool], tuple[str, int]] = json.decoder.scanstring  # type: ignore[attr-defined]

_BLANK = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORD = re.compile(r"[-+.\w]+")
_CONSTANTS = re.compile(r"[-+]?(?:NaN|nan|Infinity|infinity|Inf|inf)\Z")
_LITERALS: dict[str, tuple[JsonType, bool | None]] = {
    "true": ("boolean", True),
    "false": ("boolean", False),
    "null": ("null", None),
}
_LONE = re.compile(r"[\ud800-\udfff]")


class JsonProblem(ValueError):
    """The first thing in a text that is not JSON: a reason's name, its place (from 0), what was met and wanted."""

    def __init__(self, reason: str, position: int, met: str = "", wanted: str = "") -> None:
        super().__init__(reason)
        self.reason, self.position, self.met, self.wanted = reason, position, met[:40], wanted


@dataclass(slots=True)
class Node:
    """A value with its place: `text[start:end]`. Objects hold (key, value) nodes, arrays nodes, others scalars."""

    type: JsonType
    value: Any
    start: int
    end: int

    @property
    def column(self) -> int:
        return self.start + 1

    def member(self, name: str) -> "Node | None":
        """The value under `name`, the last one if it is there twice; None if this is no object or has none."""
        if self.type != "object":
            return None
        found = [value for key, value in self.value if key.value == name]
        return found[-1] if found else None

    def plain(self) -> Any:
        """The value as Python's json would give it."""
        if self.type == "object":
            return {key.value: value.plain() for key, value in self.value}
        if self.type == "array":
            return [item.plain() for item in self.value]
        return self.value


@dataclass(frozen=True, slots=True)
class Flaw:
    """JSON, but not usable: a key twice, a half character, a NUL."""

    code: str
    column: int
    path: str
    name: str = ""


def parse(text: str) -> Node:
    """The tree of one whole JSON text; raises JsonProblem at the first thing that is not JSON."""
    return _Parser(text).whole()


def child_path(parent: str, key: str) -> str:
    """`parent.key`, or `parent["…"]` for a key that is no name."""
    if key.isidentifier():
        return f"{parent}.{key}" if parent else key
    quoted = json.dumps(key, ensure_ascii=bool(_LONE.search(key)))
    return f"{parent}[{quoted}]"


def flaws(text: str, root: Node) -> Iterator[Flaw]:
    """Every duplicate key, lone surrogate and NUL of a parsed text, in the order of the text."""
    waiting: list[tuple[Node, str]] = [(root, "")]
    while waiting:
        node, path = waiting.pop()
        if node.type == "string":
            yield from _text_flaws(text, node, path)
        elif node.type == "array":
            waiting += [(item, f"{path}[{index}]") for index, item in reversed(list(enumerate(node.value)))]
        elif node.type == "object":
            yield from _key_flaws(text, node, path)
            waiting += [(value, child_path(path, key.value)) for key, value in reversed(node.value)]


def _key_flaws(text: str, node: Node, path: str) -> Iterator[Flaw]:
    seen: set[str] = set()
    for key, _ in node.value:
        here = child_path(path, key.value)
        if key.value in seen:
            yield Flaw("json.duplicate_key", key.column, here, key.value)
        seen.add(key.value)
        yield from _text_flaws(text, key, here)


def _text_flaws(text: str, node: Node, path: str) -> Iterator[Flaw]:
    lone = _LONE.search(node.value)
    if lone:
        column = _escape_column(text, node, lone.start())
        yield Flaw("json.lone_surrogate", column, path, f"\\u{ord(lone.group()):04x}")
    if "\0" in node.value:
        yield Flaw("json.nul", _escape_column(text, node, node.value.index("\0")), path)


_UNIT = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL
)


def _escape_column(text: str, node: Node, index: int) -> int:
    """The column in the source of character `index` of a string's value."""
    for count, unit in enumerate(_UNIT.finditer(text, node.start + 1, node.end - 1)):
        if count == index:
            return unit.start() + 1
    return node.column


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.depth = 0

    def whole(self) -> Node:
        node = self.value(self.skip(0), "value")
        end = self.skip(node.end)
        if end < len(self.text):
            raise self.trailing(end)
        return node

    def trailing(self, position: int) -> JsonProblem:
        if self.text[position] == "," and self.skip(position + 1) == len(self.text):
            return JsonProblem("trailing_comma", position, ",", "end")
        return self.problem(position, "end")

    def skip(self, position: int) -> int:
        blank = _BLANK.match(self.text, position)
        return blank.end() if blank else position

    def value(self, position: int, wanted: str) -> Node:
        first = self.text[position : position + 1]
        if first == '"':
            return self.string(position)
        if first == "{":
            return self.nested(position, self.object)
        if first == "[":
            return self.nested(position, self.array)
        return self.scalar(position, wanted)

    def nested(self, position: int, read: Callable[[int], Node]) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise JsonProblem("too_deep", position, str(MAX_DEPTH))
        node = read(position)
        self.depth -= 1
        return node

    def string(self, position: int) -> Node:
        try:
            value, end = scanstring(self.text, position + 1, True)
        except json.JSONDecodeError as error:
            raise self.bad_string(error, position) from None
        return Node("string", value, position, end)

    def bad_string(self, error: json.JSONDecodeError, start: int) -> JsonProblem:
        if error.msg.startswith("Unterminated"):
            return JsonProblem("unterminated_string", start, '"', '"')
        if error.msg.startswith("Invalid control"):
            return JsonProblem("control_character", error.pos, character_name(self.text[error.pos]))
        at = self.text.rfind("\\", start, error.pos + 1)
        return JsonProblem("bad_escape", at, self.text[at : at + 2])

    def object(self, position: int) -> Node:
        members: list[tuple[Node, Node]] = []
        at = self.skip(position + 1)
        while not (at < len(self.text) and self.text[at] == "}" and not members):
            if self.text[at : at + 1] != '"':
                raise self.problem(at, "key")
            key = self.string(at)
            at = self.skip(key.end)
            if self.text[at : at + 1] != ":":
                raise self.problem(at, "colon")
            member = self.value(self.skip(at + 1), "value")
            members.append((key, member))
            at, more = self.separator(member.end, "}")
            if not more:
                break
        return Node("object", members, position, at + 1)

    def array(self, position: int) -> Node:
        items: list[Node] = []
        at = self.skip(position + 1)
        while not (at < len(self.text) and self.text[at] == "]" and not items):
            items.append(self.value(at, "value"))
            at, more = self.separator(items[-1].end, "]")
            if not more:
                break
        return Node("array", items, position, at + 1)

    def separator(self, position: int, closing: str) -> tuple[int, bool]:
        """After a member: the place of the next one and True, or of the closing bracket and False."""
        at = self.skip(position)
        met = self.text[at : at + 1]
        if met == closing:
            return at, False
        if met != ",":
            raise self.problem(at, "comma_or_brace" if closing == "}" else "comma_or_bracket")
        following = self.skip(at + 1)
        if self.text[following : following + 1] == closing:
            raise JsonProblem("trailing_comma", at, ",", closing)
        return following, True

    def scalar(self, position: int, wanted: str) -> Node:
        word = _WORD.match(self.text, position)
        token = word.group() if word else ""
        if token in _LITERALS:
            kind, value = _LITERALS[token]
            return Node(kind, value, position, position + len(token))
        if _CONSTANTS.match(token):
            raise JsonProblem("constant", position, token)
        if token and _NUMBER.fullmatch(token):
            return self.number(position, token)
        if token and (token[0].isdigit() or token[0] in "+-."):
            raise JsonProblem("bad_number", position, token)
        raise self.problem(position, wanted)

    def number(self, position: int, token: str) -> Node:
        if math.isinf(float(token)):
            raise JsonProblem("number_range", position, token)
        value = float(token) if any(mark in token for mark in ".eE") else int(token)
        return Node("number", value, position, position + len(token))

    def problem(self, position: int, wanted: str) -> JsonProblem:
        """Names what stands at `position` where `wanted` should."""
        met = self.text[position : position + 1]
        if not met:
            return JsonProblem("end", position, "", wanted)
        if met == "#" or self.text.startswith("//", position):
            return JsonProblem("comment", position, "#" if met == "#" else "//", wanted)
        if met == "'":
            return JsonProblem("single_quote", position, "'", '"')
        if met in FULL_WIDTH:
            return JsonProblem(
                _FULL_WIDTH_REASONS.get(FULL_WIDTH[met], "full_width"), position, met, FULL_WIDTH[met]
            )
        word = _WORD.match(self.text, position)
        return JsonProblem("unexpected", position, word.group() if word else character_name(met), wanted)


_FULL_WIDTH_REASONS = {'"': "full_width_quote", ",": "full_width_comma"}


def character_name(character: str) -> str:
    """The character itself, or `U+0009` where one would not see it."""
    return character if character.isprintable() and character != " " else f"U+{ord(character):04X}"
