"""Rows with the same keys of the same types, decoded in one go.

Most files have one shape, or a few. A shape is learned from a row that was looked at key by key; the next
rows of that shape need one call of the decoder, which then vouches for keys and types.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from datasets.core.formats.names import Message, Text
from datasets.core.jsontext import JsonType


class Response(Struct, gc=False):
    """Of an answer what must be right; further keys are passed over."""

    content: Text
    reasoning_content: str | UnsetType | None = UNSET


class Output(Struct, gc=False):
    model_name: str
    responses: list[Response]


class Turn(Struct, gc=False):
    prompt: Text
    response: Text


class AnyRow(Struct, gc=False):
    """A row of any shape: of its keys only those that the quick look reads."""

    messages: tuple[Message, ...] = ()
    model_outputs: list[Output] = []
    conversation: list[Turn] = []
    system: Any = ""
    id: Any = None
    others: Any = ()


KNOWN: dict[str, Any] = {
    "messages": tuple[Message, ...],
    "model_outputs": list[Output],
    "conversation": list[Turn],
}
# float for numbers: it refuses those beyond a double, and drops nothing, as the text is kept.
_TYPES: dict[JsonType, Any] = {
    "string": str,
    "number": float,
    "boolean": bool,
    "null": None,
    "array": list[Any],
    "object": dict[str, Any],
}


@dataclass(slots=True)
class Shape:
    """A decoder for one set of keys and types, and how many rows it has counted since the last flush.

    `keys` are those at the top, `nested` the attributes of a decoded row in which there may be further ones.
    """

    types: dict[str, JsonType]
    decode: Callable[[bytes], Any]
    nested: tuple[str, ...]
    keys: int
    rows: int = 0


def _refuse(line: bytes) -> Any:
    raise msgspec.ValidationError


NO_SHAPE = Shape({}, _refuse, (), 0)
"""Of no row at all."""


def shape_of(types: dict[str, JsonType]) -> Shape | None:
    """The shape of rows with just these keys; None for a key that no structure can have."""
    kept = AnyRow.__struct_fields__
    names = {name: name if name in kept else f"field_{index}" for index, name in enumerate(types)}
    fields = [(names[name], KNOWN.get(name) or _type_of(name, kind)) for name, kind in types.items()]
    # What is absent is an attribute of the class and no field, so that the decoder refuses a row that has it.
    absent = {name: value for name, value in (("id", None), ("system", "")) if name not in types}
    try:
        row = msgspec.defstruct(
            "Row",
            fields,
            rename={inner: name for name, inner in names.items()},
            namespace=absent,
            forbid_unknown_fields=True,
            gc=False,
        )
    except ValueError:
        return None
    nested = (name for name, kind in types.items() if kind in ("array", "object") and name not in KNOWN)
    return Shape(types, msgspec.json.Decoder(row).decode, tuple(names[name] for name in nested), len(types))


def _type_of(name: str, kind: JsonType) -> Any:
    return int | float if name == "id" and kind == "number" else _TYPES[kind]


def json_type(value: Any) -> JsonType:
    """The JSON type of a decoded value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"
