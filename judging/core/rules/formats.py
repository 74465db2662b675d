"""Safe parsing of the three formats: JSON objects, XML elements and plain text.

JSON uses the standard library's scanner with exact numbers; duplicate keys and NaN are rejected. XML uses expat inside
a wrapper element, so that no document type, and hence no custom entity, can be declared. Nesting depth is limited.
"""

from __future__ import annotations

import json
import re
from enum import Enum
from io import StringIO
from json.scanner import make_scanner
from typing import Any, Final, Literal, NoReturn
from xml.parsers import expat

from datasets.core.json_errors import JsonProblem, nests_deeper, parse
from datasets.core.json_repairs import without_comments, without_trailing_commas
from datasets.core.texts import Text, gettext_noop
from judging.core.rules.program import Format
from judging.core.rules.values import Markup, Number, Value

MOST_DEPTH = 100
Fields = dict[str, Value]

_AROUND = "fields"
_DECLARATION = re.compile(r"<\?xml\s[^<>]*\?>")


REASONS: dict[str, Text] = {
    "not_json": gettext_noop("Not JSON: line %(line)s, column %(column)s."),
    "not_object": gettext_noop("JSON, but not an object in braces."),
    "duplicate_key": gettext_noop("Duplicate key “%(name)s” in one object."),
    "not_a_number": gettext_noop("Not JSON: “%(name)s” is not a number."),
    "not_xml": gettext_noop("Not XML: line %(line)s, column %(column)s."),
    "doctype": gettext_noop("A document type (DOCTYPE) is not allowed."),
    "no_element": gettext_noop("No XML element found."),
    "text_between": gettext_noop("There is text between the XML elements; only white space is allowed."),
    "other_root": gettext_noop("Expected one root element “%(wanted)s”, found “%(met)s”."),
    "too_deep": gettext_noop("Nested deeper than 100 levels."),
}
"""Why a text does not have its format, by code."""


class NotInFormat(Exception):
    """The text does not have the format: a reason of REASONS, and its parameters."""

    def __init__(self, reason: str, **params: str) -> None:
        super().__init__(reason)
        self.reason, self.params = reason, params


def read_fields(form: Format, text: str) -> Fields:
    """The text's fields by name, in order (none for plain text). Raises NotInFormat."""
    if form.kind == "json":
        return read_json(text)
    if form.kind == "xml":
        return read_xml(text, form.root)
    return {}


def read_reference(form: Format, text: str) -> tuple[Fields, str]:
    """A reference's fields, and the text they were read from: without trailing commas and comments in JSON.

    Raises NotInFormat, with the places of the text as it was written.
    """
    try:
        return read_fields(form, text), text
    except NotInFormat:
        plain = _plain_json(text) if form.kind == "json" else text
        try:
            return read_fields(form, plain), plain
        except NotInFormat:
            pass
        raise


def _plain_json(text: str) -> str:
    """The text without comments and without commas before closing brackets."""
    lines = StringIO(text, newline="\n")
    return "".join(without_trailing_commas(without_comments(lines)))


def root_around(fields: Fields, name: str) -> str:
    """The only element of an XML text if `name` is one of its children, else ''."""
    for root, value in fields.items() if len(fields) == 1 else ():
        if isinstance(value, Markup) and any(
            isinstance(part, tuple) and part[0] == name for part in value.parts
        ):
            return root
    return ""


def _lead(text: str) -> int:
    """The number of leading white space characters."""
    return len(text) - len(text.lstrip())


def _place(text: str, position: int) -> dict[str, str]:
    line, column = text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)
    return {"line": str(line), "column": str(column)}


# --- JSON ------------------------------------------------------------------------------------------------------


def read_json(text: str) -> Fields:
    """Parse a JSON object, with optional white space around it. Raises NotInFormat."""
    bare = text.strip()
    try:
        value, end = _scan(bare, 0)
        if end != len(bare):
            _decode(bare)  # raises with the position of the rest
    except StopIteration as error:
        raise _not_json(text, error.value) from None
    except json.JSONDecodeError as error:
        raise _not_json(text, error.pos) from None
    except RecursionError:
        raise NotInFormat("too_deep") from None
    if not isinstance(value, dict):
        raise NotInFormat("not_object")
    # Fewer brackets than this cannot nest too deeply, so skip the walk.
    if text.count("[") + text.count("{") > MOST_DEPTH:
        check_depth(value)
    return value


def _not_json(text: str, position: int) -> NotInFormat:
    """Why the text is not JSON, as for a line of a data set; `position` does not count leading white space."""
    named: dict[str, str] = {}
    try:
        parse(text.strip())
    except JsonProblem as problem:
        position = problem.position
        named = {"problem": problem.reason, "json_met": problem.met, "json_wanted": problem.wanted}
    return NotInFormat("not_json", **_place(text, position + _lead(text)), **named)


def check_depth(value: Any) -> None:
    """Raises NotInFormat if lists and objects nest deeper than MOST_DEPTH."""
    if nests_deeper(value, MOST_DEPTH):
        raise NotInFormat("too_deep")


def _once_each(pairs: list[tuple[str, Value]]) -> Fields:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise NotInFormat("duplicate_key", name=twice[:100])
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise NotInFormat("not_a_number", name=name)


_decoder = json.JSONDecoder(
    object_pairs_hook=_once_each, parse_int=Number, parse_float=Number, parse_constant=_refuse_constant
)
# The scanner itself, because the library's wrapper takes as long as scanning a small answer.
_decode, _scan = _decoder.decode, make_scanner(_decoder)  # type: ignore[arg-type]


# --- XML -------------------------------------------------------------------------------------------------------


def read_xml(text: str, root: str = "") -> Fields:
    """The texts of sibling elements, or of the children of the single element `root`. Repeated ones form a list.

    They may be preceded by a declaration (`<?xml …?>`) and separated by white space only. Raises NotInFormat.
    """
    reader = _XmlReader(root)
    try:
        reader.read(text.strip())
    except expat.ExpatError as error:
        if "<!DOCTYPE" in text:
            raise NotInFormat("doctype") from None
        line = error.lineno - 1 + text.count("\n", 0, _lead(text))
        raise NotInFormat("not_xml", line=str(max(1, line)), column=str(error.offset + 1)) from None
    except UnicodeEncodeError:  # a lone surrogate
        raise NotInFormat("not_xml", line="1", column="1") from None
    if not reader.elements:
        raise NotInFormat("no_element")
    return {name: texts[0] if len(texts) == 1 else list(texts) for name, texts in reader.elements.items()}


class _XmlReader:
    """Collects the elements at one depth: 1 is the wrapper, 2 the siblings (or the root), 3 the root's children."""

    def __init__(self, root: str) -> None:
        self.elements: dict[str, list[str]] = {}
        self._root = root
        self._fields_at = 3 if root else 2
        self._depth = 0
        self._roots = 0
        self._text: list[str] = []
        self._since_tag: list[str] = []
        self._open: list[list[Any]] = []  # the parts so far of the field's element and its open descendants
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.CommentHandler = parser.StartCdataSectionHandler = self._anything_else
        parser.ProcessingInstructionHandler = self._anything_else

    def read(self, text: str) -> None:
        declaration = _DECLARATION.match(text)
        if declaration:
            self._parser.Parse(declaration[0])
        self._parser.Parse(f"<{_AROUND}>\n")
        self._parser.Parse(text[declaration.end() if declaration else 0 :])
        self._parser.Parse(f"</{_AROUND}>", True)

    def _start(self, name: str, _attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MOST_DEPTH + 1:
            raise NotInFormat("too_deep")
        if self._root and self._depth == 2:
            self._roots += 1
            if name != self._root or self._roots > 1:
                raise NotInFormat("other_root", met=name[:100], wanted=self._root)
        elif self._depth >= self._fields_at:
            self._add_text()
            self._open.append([])

    def _end(self, name: str) -> None:
        if self._depth >= self._fields_at:
            self._add_text()
            parts = tuple(self._open.pop())
            if self._open:
                self._open[-1].append((name, parts))
            else:
                self.elements.setdefault(name, []).append(self._value(parts))
        self._depth -= 1

    def _add_text(self) -> None:
        text = "".join(self._since_tag).strip()
        if text:
            self._open[-1].append(text)
        self._since_tag = []

    def _value(self, parts: tuple[Any, ...]) -> str:
        text, self._text = "".join(self._text).strip(), []
        return Markup.of(text, parts) if any(isinstance(part, tuple) for part in parts) else text

    def _characters(self, text: str) -> None:
        if self._depth >= self._fields_at:
            self._text.append(text)
            self._since_tag.append(text)
        elif not _is_xml_blank(text):
            raise NotInFormat("text_between", met=text.strip()[:40])

    def _anything_else(self, *_met: str) -> None:
        if self._depth < self._fields_at:
            raise NotInFormat("text_between", met="")


def _is_xml_blank(text: str) -> bool:
    return not text.strip(" \t\r\n")


# --- finding a field by name ------------------------------------------------------------------------------------

_STEP = re.compile(r"([^.\[\]]+)((?:\[[0-9]{1,9}\])*)")

Path = tuple[str | int, ...]


class _Missing(Enum):
    MISSING = "missing"


MISSING: Final = _Missing.MISSING
FieldValue = Value | Literal[_Missing.MISSING]


def path_of(name: str) -> Path:
    """Parse `a.b[0]` into ("a", "b", 0); () for a name without dots and indices, or with malformed ones."""
    if "." not in name and "[" not in name:
        return ()
    path: list[str | int] = []
    for part in name.split("."):
        step = _STEP.fullmatch(part)
        if step is None:
            return ()
        path += [step[1], *(int(index) for index in re.findall(r"[0-9]+", step[2]))]
    return tuple(path)


def look_up(fields: Fields, name: str, path: Path = ()) -> FieldValue:
    """The field with exactly this name, otherwise the value at its path, otherwise MISSING."""
    if name in fields or not path:
        return fields.get(name, MISSING)
    value: Value = fields
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[str(step)]
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return MISSING
    return value
