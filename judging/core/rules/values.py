"""Exact field values: a number keeps its digits as written, and `true` is not a number.

A value is a text, Number, bool, None, or a list or dict of values. Callers bound the nesting depth when parsing.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from json.scanner import make_scanner
from typing import Any

import msgspec

_quoted = json.encoder.encode_basestring
_MOST_EXPONENT_DIGITS = 1000  # Python refuses to parse longer exponents; such numbers equal only themselves


class Number(msgspec.Struct, frozen=True, gc=False):
    """A JSON number as written in the source."""

    source: str


class Markup(str):
    """The text of an XML element with child elements. `parts`: its texts and children, (tag, parts), in order."""

    parts: tuple[Any, ...]

    @classmethod
    def of(cls, text: str, parts: tuple[Any, ...]) -> Markup:
        markup = cls(text)
        markup.parts = parts
        return markup


Value = str | Number | bool | None | list["Value"] | dict[str, "Value"]


_AS_IT_IS = {str, bool, type(None), Number}

_scan = make_scanner(json.JSONDecoder(parse_int=Number, parse_float=Number))  # type: ignore[arg-type]


def exact_json(text: str) -> Any:
    """Parse valid JSON, keeping numbers as written; a Value, provided that it is not nested too deeply."""
    return _scan(text.lstrip(), 0)[0]


def from_python(value: Any) -> Value:
    """Convert a decoded JSON value to a Value; ints and floats are written as Python writes them."""
    if type(value) in _AS_IT_IS:
        return value  # type: ignore[no-any-return]
    if isinstance(value, dict):
        return {
            key: member if type(member) in _AS_IT_IS else from_python(member) for key, member in value.items()
        }
    if isinstance(value, list):
        return [from_python(element) for element in value]
    if isinstance(value, str):  # an instance of a str subclass becomes a plain str
        return str(value)
    return Number(repr(value) if isinstance(value, float) else str(value))


def json_text(value: Value) -> str:
    """JSON text with unescaped non-ASCII characters, `, ` and `: ` as separators, and numbers as in the source."""
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Number):
        return value.source
    if isinstance(value, list):
        return f"[{', '.join(map(json_text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_quoted(key)}: {json_text(member)}' for key, member in value.items())}}}"
    return {None: "null", True: "true", False: "false"}[value]


def text_of(value: Value) -> str:
    """A field's text: a text itself, or the JSON text of any other value."""
    return value if isinstance(value, str) else json_text(value)


def same(value: Value, other: Value) -> bool:
    """Whether two values are equal.

    Texts are compared by characters, numbers exactly (1 = 1.0 ≠ "1"), objects and lists deeply, XML elements with
    children by tags, order and texts.
    """
    if isinstance(value, Markup) or isinstance(other, Markup):
        return identity(value) == identity(other)
    if isinstance(value, str) or isinstance(other, str):
        return value == other
    return identity(value) == identity(other)


def identity(value: Value) -> Hashable:
    """A hashable key that is equal exactly if the values are."""
    if isinstance(value, Markup):
        return ("xml", value.parts)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, Number):
        return ("number", *_digits_and_exponent(value.source))
    if isinstance(value, list):
        return ("list", tuple(map(identity, value)))
    return frozenset((key, identity(member)) for key, member in value.items())


def _digits_and_exponent(source: str) -> tuple[str, int | str]:
    """A number as signed digits without leading or trailing zeros, and a power of ten."""
    mantissa, _, exponent = source.lower().partition("e")
    if len(exponent) > _MOST_EXPONENT_DIGITS:
        return source, ""
    whole, _, fraction = mantissa.removeprefix("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return "0", 0
    power = int(exponent or 0) - len(fraction) + len(digits) - len(significant)
    return ("-" if source[0] == "-" else "") + significant, power
