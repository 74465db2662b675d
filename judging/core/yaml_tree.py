"""YAML as a tree in which every value knows its line, read field by field while collecting all problems.

Scalars follow YAML 1.2's core schema (`1e-3` is a number, `no` and `2024-01-01` are texts), so generation parameters
are the same as in JSON. Every use of an alias counts towards the bounded number of nodes.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from datasets.core.texts import Text, gettext_noop

MAX_CHARACTERS = 4 * 2**20
MAX_NODES = 50_000  # counting every use of an alias
MAX_DEPTH = 60

_TAG = "tag:yaml.org,2002:"
_NULL, _BOOL, _INT, _FLOAT, _MERGE = (_TAG + name for name in ("null", "bool", "int", "float", "merge"))
_KINDS = {"map", "seq", "null", "bool", "int", "float", "str", "merge"}
_TRUE, _FALSE = {"true", "yes", "on"}, {"false", "no", "off"}

Option = TypeVar("Option", bound=str)


class _Loader(yaml.SafeLoader):
    """PyYAML's composer with the scalars of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, Any] = {}


for _tag, _pattern, _first in (
    (_NULL, r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    (_BOOL, r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    (_INT, r"[-+]?[0-9]{1,300}", list("-+0123456789")),
    (_FLOAT, r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", list("-+0123456789.")),
    (_FLOAT, r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", list("-+.")),
    (_MERGE, r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(_tag, re.compile(rf"(?:{_pattern})\Z"), _first)


YAML_PROBLEMS: dict[str, Text] = {
    "too_long": gettext_noop("The file is longer than %(most)s characters."),
    "yaml_syntax": gettext_noop("Invalid YAML: %(problem)s."),
    "too_deep": gettext_noop("Values are nested deeper than %(most)s levels."),
    "too_many_values": gettext_noop("There are more than %(most)s values (every use of an alias counts)."),
    "unknown_tag": gettext_noop("The YAML tag %(tag)s is not supported. Use plain values."),
    "empty_file": gettext_noop("The file is empty. Expected a list of {data_name, metrics}."),
    "key_is_no_text": gettext_noop("Keys must be plain text."),
    "duplicate_key": gettext_noop("Duplicate key “%(key)s”; first used in line %(first)s."),
    "unknown_key": gettext_noop("Unknown key “%(key)s”. Supported keys: %(known)s."),
    "missing_key": gettext_noop("“%(key)s” is missing."),
    "blank": gettext_noop("“%(key)s” is empty."),
    "not_a_text": gettext_noop("“%(key)s” must be text."),
    "text_too_long": gettext_noop("“%(key)s” is longer than %(most)s characters."),
    "not_a_number": gettext_noop("“%(key)s” must be a number."),
    "not_a_whole_number": gettext_noop("“%(key)s” must be an integer from %(low)s to %(high)s."),
    "not_true_or_false": gettext_noop("“%(key)s” must be true or false."),
    "not_an_option": gettext_noop("“%(key)s” is “%(value)s”, but must be one of: %(options)s."),
    "not_a_mapping": gettext_noop("“%(key)s” must be a mapping (key: value)."),
    "not_a_list": gettext_noop("“%(key)s” must be a list with at least one entry."),
    "no_json_value": gettext_noop("%(value)s can't be encoded as JSON."),
}
"""What is wrong with a text that is not the YAML expected, by code."""


@dataclass(frozen=True, slots=True)
class YamlProblem:
    """A problem at a line (from 1); `params` are the parameters of its translated message."""

    line: int
    code: str
    params: dict[str, str] = field(default_factory=dict)


class Problems:
    """The problems found so far. An invalid value is reported here and read as its default."""

    def __init__(self) -> None:
        self._found: list[YamlProblem] = []

    def add(self, at: Node | int, code: str, /, **params: object) -> None:
        line = at if isinstance(at, int) else at.start_mark.line + 1
        self._found.append(YamlProblem(line, code, {name: str(value) for name, value in params.items()}))

    def in_order(self) -> tuple[YamlProblem, ...]:
        """Problems by line, without duplicates: what an alias repeats is wrong in one place only."""
        unique: list[YamlProblem] = []
        for problem in sorted(self._found, key=lambda problem: problem.line):
            if problem not in unique:
                unique.append(problem)
        return tuple(unique)


def compose(text: str, problems: Problems) -> Node | None:
    """Compose a text that is one YAML document within the limits; None if it is not, with the reasons in `problems`."""
    if len(text) > MAX_CHARACTERS:
        problems.add(1, "too_long", most=MAX_CHARACTERS)
        return None
    try:
        root: Node | None = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problems.add(
            mark.line + 1 if mark else 1, "yaml_syntax", problem=error.problem or error.context or ""
        )
        return None
    except yaml.reader.ReaderError as error:
        problems.add(text[: error.position].count("\n") + 1, "yaml_syntax", problem=error.reason)
        return None
    except RecursionError:
        problems.add(1, "too_deep", most=MAX_DEPTH)
        return None
    if root is None:
        problems.add(1, "empty_file")
        return None
    return root if _is_bounded(root, problems) else None


def _is_bounded(root: Node, problems: Problems) -> bool:
    """Walk the tree as if all aliases were expanded, stopping at the limits."""
    waiting, count = [(root, 1)], 0
    while waiting:
        node, depth = waiting.pop()
        count += 1
        if depth > MAX_DEPTH or count > MAX_NODES:
            code = "too_deep" if depth > MAX_DEPTH else "too_many_values"
            problems.add(node, code, most=MAX_DEPTH if depth > MAX_DEPTH else MAX_NODES)
            return False
        if node.tag.removeprefix(_TAG) not in _KINDS:
            problems.add(node, "unknown_tag", tag=node.tag.removeprefix(_TAG)[:80])
            return False
        waiting += [(child, depth + 1) for child in _children(node)]
    return True


def _children(node: Node) -> Iterator[Node]:
    if isinstance(node, SequenceNode):
        yield from node.value
    elif isinstance(node, MappingNode):
        yield from chain.from_iterable(node.value)


def plain(node: Node, problems: Problems) -> Any:
    """The node as JSON data: null, bool, int, finite float, str, list or dict."""
    if isinstance(node, SequenceNode):
        return [plain(item, problems) for item in node.value]
    if isinstance(node, MappingNode):
        return {name: plain(value, problems) for name, _, value in _pairs(node, problems)}
    assert isinstance(node, ScalarNode)
    return _scalar(node, problems)


def _scalar(node: ScalarNode, problems: Problems) -> Any:
    text: str = node.value
    if node.tag == _NULL:
        return None
    if node.tag == _BOOL:
        return text.lower() in _TRUE
    try:
        number = (
            int(text)
            if node.tag == _INT
            else float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        )
    except ValueError:
        return text
    if node.tag == _FLOAT and not math.isfinite(number):
        problems.add(node, "no_json_value", value=text)
        return None
    return number if node.tag in (_INT, _FLOAT) else text


def _pairs(node: MappingNode, problems: Problems) -> Iterator[tuple[str, Node, Node]]:
    """Name, key and value of each member; the mapping's own members override merged (`<<`) ones."""
    own: dict[str, tuple[Node, Node]] = {}
    merged: dict[str, tuple[Node, Node]] = {}
    for key, value in node.value:
        if key.tag == _MERGE:
            sources = value.value if isinstance(value, SequenceNode) else [value]
            for source in sources:
                _merge(source, merged, problems)
        elif not isinstance(key, ScalarNode) or key.tag == _NULL:
            problems.add(key, "key_is_no_text")
        elif key.value in own:
            problems.add(key, "duplicate_key", key=key.value, first=own[key.value][0].start_mark.line + 1)
        else:
            own[key.value] = (key, value)
    for name, (key, value) in (merged | own).items():
        yield name, key, value


def _merge(source: Node, merged: dict[str, tuple[Node, Node]], problems: Problems) -> None:
    if not isinstance(source, MappingNode):
        problems.add(source, "not_a_mapping", key="<<")
        return
    for name, key, value in _pairs(source, problems):
        merged.setdefault(name, (key, value))


class Fields:
    """A mapping, read field by field. A key that is not in `keys` is an error at its line."""

    def __init__(self, node: MappingNode, keys: Collection[str], problems: Problems) -> None:
        self.node, self.problems = node, problems
        self._values: dict[str, Node] = {}
        for name, key, value in _pairs(node, problems):
            if name in keys:
                self._values[name] = value
            else:
                near = difflib.get_close_matches(name, keys, 1)
                problems.add(key, "unknown_key", key=name[:80], known=", ".join(keys), near="".join(near))

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def node_of(self, name: str) -> Node:
        """The value's node, or the mapping's if the field is absent: the position for error messages."""
        return self._values.get(name, self.node)

    def wrong(self, name: str, code: str, /, **params: object) -> None:
        self.problems.add(self.node_of(name), code, key=name, **params)

    def text(self, name: str, default: str = "", *, required: bool = False, most: int = 0) -> str:
        """A scalar as written; `required` means present and not blank."""
        value = self._values.get(name)
        if value is None or (value.tag == _NULL and not required):
            if required:
                self.wrong(name, "missing_key")
            return default
        if not isinstance(value, ScalarNode) or value.tag == _NULL:
            self.wrong(name, "not_a_text")
            return default
        text: str = value.value
        if required and not text.strip():
            self.wrong(name, "blank")
        if most and len(text) > most:
            self.wrong(name, "text_too_long", most=most)
        return text

    def choice(self, name: str, options: Collection[Option], default: Option) -> Option:
        value = self.text(name, default)
        for option in options:
            if option == value:
                return option
        self.wrong(name, "not_an_option", value=value[:80], options=", ".join(options))
        return default

    def number(self, name: str, default: float) -> float:
        value = self.value(name, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 1e15:
            self.wrong(name, "not_a_number")
            return default
        return value

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        value = self.value(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.wrong(name, "not_a_whole_number", low=low, high=high)
            return default
        return value

    def flag(self, name: str) -> bool:
        text = self.text(name, "false").lower()
        if text not in _TRUE | _FALSE:
            self.wrong(name, "not_true_or_false")
        return text in _TRUE

    def value(self, name: str, default: Any = None) -> Any:
        """Any JSON value; `default` if the field is absent or null."""
        value = plain(self._values[name], self.problems) if name in self._values else None
        return default if value is None else value

    def json_object(self, name: str) -> dict[str, Any]:
        value = self.value(name, {})
        if not isinstance(value, dict):
            self.wrong(name, "not_a_mapping")
            return {}
        return value

    def mapping(self, name: str, keys: Collection[str]) -> Fields | None:
        """The mapping with this name; None, and an error, if it is absent or not a mapping."""
        value = self._values.get(name)
        if isinstance(value, MappingNode):
            return Fields(value, keys, self.problems)
        self.wrong(name, "not_a_mapping" if value is not None else "missing_key")
        return None

    def items(self, name: str, keys: Collection[str], *, required: bool = False) -> Iterator[Fields]:
        """The mappings in the list with this name."""
        value = self._values.get(name)
        if isinstance(value, SequenceNode) and (value.value or not required):
            yield from mappings(value, keys, self.problems)
        elif value is not None and not (value.tag == _NULL and not required):
            self.wrong(name, "not_a_list")
        elif required:
            self.wrong(name, "missing_key")


def mappings(sequence: SequenceNode, keys: Collection[str], problems: Problems) -> Iterator[Fields]:
    """The mappings in a list; other members are errors."""
    for item in sequence.value:
        if isinstance(item, MappingNode):
            yield Fields(item, keys, problems)
        else:
            problems.add(item, "not_a_mapping", key="-")


_WIDTH = 100_000  # keeps long lines whole, because templates are compared by lines
_NOT_IN_BLOCKS = "\x85\u2028\u2029\ufeff"  # line breaks to some YAML parsers but not to others


class _Dumper(yaml.SafeDumper):
    """Quotes texts that YAML 1.1 or 1.2 would read as another type."""


_Dumper.yaml_implicit_resolvers = {
    first: [*_Dumper.yaml_implicit_resolvers.get(first, []), *_Loader.yaml_implicit_resolvers.get(first, [])]
    for first in {*_Dumper.yaml_implicit_resolvers, *_Loader.yaml_implicit_resolvers}
}


def _text(dumper: yaml.SafeDumper, text: str) -> Node:
    """Multi-line text as a readable block; other text in the plainest possible style."""
    style = '"' if any(character in text for character in _NOT_IN_BLOCKS) else "|" if "\n" in text else None
    return ScalarNode("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def write_yaml(document: Any) -> str:
    """JSON data as YAML text that this module reads as the same data."""
    text: str = yaml.dump(document, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=_WIDTH)
    return text
