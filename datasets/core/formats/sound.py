"""Whether a line that a decoder accepts is also free of what the decoder does not see.

It drops the first of two equal keys without a word, takes integers beyond a double's range, and nests very deep.
"""

import json
import math
from typing import Any

import msgspec

from datasets.core.formats.keycount import SUSPECT, UNCOUNTABLE, keys_in
from datasets.core.jsontext import MAX_DEPTH

UNDECODED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
decode_any = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
MODERATE = 100_000
"""Bytes of a row up to which it may be held decoded beside its text, whatever it is."""
SHALLOW = MAX_DEPTH // 2
"""Brackets in a value that can nest too deep nowhere in a row."""
SPARSE = 32
"""Bytes of a row for each key from which on walking through its values is faster than writing them anew."""
_BEYOND_DOUBLE = 2**1024 - 2**970


class NotQuick(Exception):
    """This row needs the careful look."""


def bounded(value: Any) -> Any:
    """`value`, if it is no number beyond a double."""
    if type(value) is int and not -_BEYOND_DOUBLE < value < _BEYOND_DOUBLE:
        raise NotQuick
    return value


def count_keys(value: Any) -> int:
    """All keys of all objects in a decoded JSON value; raises NotQuick at too deep a nesting or too big a number."""
    keys = 0
    level = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            kind = type(item)  # a decoder makes no other types, and this is asked of every value
            if kind is dict:
                keys += len(item)
                below += item.values()
            elif kind is list:
                below += item
            elif kind is int and not -_BEYOND_DOUBLE < item < _BEYOND_DOUBLE:
                raise NotQuick
        if not below:
            return keys
        level = below
    raise NotQuick


def keys_of(value: Any) -> int:
    """The same of a value in a line that is not UNCOUNTABLE, but that a text that begins with a colon counts too.

    So it does in the line. Counting in the value written anew is many times as fast as walking through it.
    """
    return keys_of_json(_encode(value))


def keys_of_json(text: bytes) -> int:
    """The same, where the value is written anew already."""
    shallow = text.count(b"[") + text.count(b"{") <= SHALLOW
    return keys_in(text) if shallow else count_keys(decode_any(text))


def is_sound(line: bytes, value: Any, keys: int) -> bool:
    """Whether no object of the line has a key twice; `value` is the line decoded, `keys` key_counts' figure for it.

    Raises NotQuick at too deep a nesting or too big a number.
    """
    if keys == SUSPECT:
        return False
    sparse = keys * SPARSE < len(line)
    if keys != UNCOUNTABLE and ((sparse and count_keys(value) == keys) or _has_keys(line, value, keys)):
        return True
    return count_keys(value) == keys or _distinct_keys(line)


def _has_keys(line: bytes, value: Any, keys: int) -> bool:
    """See keys_of."""
    return line.count(b"[") + line.count(b"{") <= MAX_DEPTH and keys_in(_encode(value)) == keys


def _distinct_keys(line: bytes) -> bool:
    try:
        json.loads(line, object_pairs_hook=_distinct, parse_float=_double)
    except (ValueError, RecursionError):
        return False
    return True


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key twice")


def _double(source: str) -> float:
    number = float(source)
    if math.isinf(number):
        raise ValueError("beyond a double")
    return number
