"""Values of fields, exact: a number keeps the digits it was written with, and `true` is no number.

A value is text, Number, bool, None, a list or a dict of values. Depth is bounded by whoever read it.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from json.scanner import make_scanner
from typing import Any

import msgspec

_quoted = json.encoder.encode_basestring
_MOST_EXPONENT_DIGITS = 1000  # beyond, Python would refuse to count; a longer number equals only itself


class Number(msgspec.Struct, frozen=True, gc=False):
    """A JSON number as it is written."""

    source: str


class Markup(str):
    """The text of an XML element that has child elements. `parts`: its texts and children, (tag, parts), in order."""

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
    """A valid JSON text with its numbers as they are written: a Value, if it is not nested too deeply."""
    return _scan(text.lstrip(), 0)[0]


def from_python(value: Any) -> Value:
    """A decoded JSON value as a Value; an int or a float is written as Python would."""
    if type(value) in _AS_IT_IS:
        return value  # type: ignore[no-any-return]
    if isinstance(value, dict):
        return {key: one if type(one) in _AS_IT_IS else from_python(one) for key, one in value.items()}
    if isinstance(value, list):
        return [from_python(element) for element in value]
    if isinstance(value, str):  # a text of another class is a text
        return str(value)
    return Number(repr(value) if isinstance(value, float) else str(value))


def json_text(value: Value) -> str:
    """JSON text: characters as they are, `, ` and `: ` between, numbers as in the source."""
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
    """A field's text: a text itself, the JSON text of anything else."""
    return value if isinstance(value, str) else json_text(value)


def same(one: Value, other: Value) -> bool:
    """Equal by value: texts by characters, numbers exactly (1 = 1.0 ≠ "1"), objects and lists deep, XML elements with
    children by tags, order and texts."""
    if isinstance(one, Markup) or isinstance(other, Markup):
        return identity(one) == identity(other)
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return identity(one) == identity(other)


def identity(value: Value) -> Hashable:
    """Something that can be put into a set and is equal exactly where the values are."""
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
    """The number as whole digits without zeros at the ends, with its sign, times a power of ten."""
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
