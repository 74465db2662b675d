"""Reading one JSON text by hand: whether it is JSON, what exactly is wrong with it if not, and what is unusable.

Slow beside a library's decoder, so only rows with something to report come here.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from datasets.core.json_nodes import BLANK, Node, Steps, scanstring

MAX_DEPTH = 200

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
"""As other languages write them."""
# Members of long lists that need no look one by one: not the last before a bracket, and no number near the limits.
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
    """The first thing in a text that is not JSON: a reason's name, its place (from 0), what was met and wanted."""

    def __init__(self, reason: str, position: int, met: str = "", wanted: str = "") -> None:
        super().__init__(reason)
        self.reason, self.position, self.met, self.wanted = reason, position, met[:40], wanted


@dataclass(frozen=True, slots=True)
class Flaw:
    """JSON, but not usable: a key twice, a half character, a NUL."""

    code: str
    column: int
    path: str
    name: str = ""


def parse(text: str) -> Node:
    """The root of one whole JSON text; raises JsonProblem at the first thing that is not JSON."""
    return _JsonParser(text).whole()


def trusted(text: str) -> Node:
    """The root of a text that is known to be JSON."""
    return Node(text, _blank_end(text, 0), len(text.rstrip(" \t\r\n")))


def is_too_deep(text: str) -> bool:
    """Whether the brackets of a JSON text are nested too deep."""
    codes = np.frombuffer(_IN_QUOTES.sub("", text).encode(), np.uint8)
    steps = ((codes | 0x20) == ord("{")).view(np.int8) - ((codes | 0x20) == ord("}")).view(np.int8)
    return int(np.cumsum(steps[steps != 0], dtype=np.int16).max(initial=0)) > MAX_DEPTH


def child_path(parent: str, key: str) -> str:
    """`parent.key`, or `parent["…"]` for a key that is no name."""
    if key.isidentifier():
        return f"{parent}.{key}" if parent else key
    quoted = json.dumps(key, ensure_ascii=bool(_LONE.search(key)))
    return f"{parent}[{quoted}]"


def flaws(text: str, node: Node, trail: Steps = ()) -> Iterator[Flaw]:
    """Every duplicate key, lone surrogate and NUL in a value of a parsed text, to which `trail` leads."""
    if node.type == "string":
        yield from _text_flaws(text, node, trail)
    elif node.type == "array":
        for index, item in enumerate(node.items()):
            yield from flaws(text, item, (*trail, index))
    elif node.type == "object":
        seen: set[str] = set()
        for key, _ in node.members():
            name = key.value
            if name in seen:
                yield Flaw("json.duplicate_key", key.column, path_of((*trail, name)), name)
            seen.add(name)
        for key, value in node.members():
            below = (*trail, key.value)
            yield from _text_flaws(text, key, below)
            yield from flaws(text, value, below)


def path_of(trail: Steps) -> str:
    """The steps as a reader sees them, like `messages[2].role`."""
    path = ""
    for step in trail:
        path = f"{path}[{step}]" if isinstance(step, int) else child_path(path, step)
    return path


def _text_flaws(text: str, node: Node, trail: Steps) -> Iterator[Flaw]:
    value = node.value
    lone = _LONE.search(value)
    if lone:
        column = _escape_column(text, node, lone.start())
        yield Flaw("json.lone_surrogate", column, path_of(trail), f"\\u{ord(lone.group()):04x}")
    if "\0" in value:
        yield Flaw("json.nul", _escape_column(text, node, value.index("\0")), path_of(trail))


_UNIT = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL
)


def _escape_column(text: str, node: Node, index: int) -> int:
    """The column in the source of character `index` of a string's value."""
    for count, unit in enumerate(_UNIT.finditer(text, node.start + 1, node.end - 1)):
        if count == index:
            return unit.start() + 1
    return node.column


def _blank_end(text: str, position: int) -> int:
    blank = BLANK.match(text, position)
    return blank.end() if blank else position


class _JsonParser:
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
        after = self.skip(position + 1)
        if self.text[position] == "," and (after == len(self.text) or _COMMENT.match(self.text, after)):
            return JsonProblem("trailing_comma", position, ",", "end")
        return self.problem(position, "end")

    def skip(self, position: int) -> int:
        return _blank_end(self.text, position)

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
            end = scanstring(self.text, position + 1, True)[1]
        except json.JSONDecodeError as error:
            raise self.bad_string(error, position) from None
        return Node(self.text, position, end)

    def bad_string(self, error: json.JSONDecodeError, start: int) -> JsonProblem:
        if error.msg.startswith("Unterminated"):
            return JsonProblem("unterminated_string", start, '"', '"')
        if error.msg.startswith("Invalid control"):
            return JsonProblem("control_character", error.pos, character_name(self.text[error.pos]))
        at = self.text.rfind("\\", start, error.pos + 1)
        return JsonProblem("bad_escape", at, self.text[at : at + 2])

    def object(self, position: int) -> Node:
        at = self.skip(position + 1)
        more = self.text[at : at + 1] != "}"
        while more:
            if self.text[at : at + 1] != '"':
                raise self.problem(at, "key")
            at = self.skip(self.string(at).end)
            if self.text[at : at + 1] != ":":
                raise self.problem(at, "colon")
            member = self.value(self.skip(at + 1), "value")
            at, more = self.separator(member.end, "}")
        return Node(self.text, position, at + 1)

    def array(self, position: int) -> Node:
        at = self.skip(position + 1)
        more = self.text[at : at + 1] != "]"
        while more:
            run = _RUN.match(self.text, at)
            at = self.skip(run.end()) if run else at
            item = self.value(at, "value")
            at, more = self.separator(item.end, "]")
        return Node(self.text, position, at + 1)

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
            return Node(self.text, position, position + len(token))
        if _CONSTANTS.match(token):
            raise JsonProblem("constant", position, token)
        if token and _NUMBER.fullmatch(token):
            return self.number(position, token)
        if token and (token[0].isdigit() or token[0] in "+-.") and token.strip("+-."):
            raise JsonProblem("bad_number", position, token)
        if wanted == "value" and token in _OTHER_LITERALS:
            raise JsonProblem("literal", position, token, _OTHER_LITERALS[token])
        raise self.problem(position, wanted)

    def number(self, position: int, token: str) -> Node:
        if math.isinf(float(token)):
            raise JsonProblem("number_range", position, token)
        return Node(self.text, position, position + len(token))

    def problem(self, position: int, wanted: str) -> JsonProblem:
        """Names what stands at `position` where `wanted` should."""
        met = self.text[position : position + 1]
        if not met:
            return JsonProblem("end", position, "", wanted)
        comment = _COMMENT.match(self.text, position)
        if comment:
            return JsonProblem("comment", position, comment.group(), wanted)
        if met == "'":
            return JsonProblem("single_quote", position, "'", '"')
        if met in FULL_WIDTH:
            return JsonProblem(
                _FULL_WIDTH_REASONS.get(FULL_WIDTH[met], "full_width"), position, met, FULL_WIDTH[met]
            )
        return JsonProblem("unexpected", position, word_at(self.text, position), wanted)


_FULL_WIDTH_REASONS = {'"': "full_width_quote", ",": "full_width_comma"}


def word_at(text: str, position: int) -> str:
    """The word or the sign at a place, as a sentence may name it; '' at the end."""
    word = _WORD.match(text, position)
    met = text[position : position + 1]
    return word.group()[:40] if word else met and character_name(met)


def character_name(character: str) -> str:
    """The character itself, or `U+0009` where one would not see it."""
    return character if character.isprintable() and character != " " else f"U+{ord(character):04X}"
