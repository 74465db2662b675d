"""Rows with the same keys of the same types, decoded in one go.

Most files have one shape, or a few. A shape is learned from a row that was looked at key by key; the next
rows of that shape need one call of the decoder, which then vouches for keys and types.
"""

from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from datasets.core.formats.names import Message
from datasets.core.jsontext import JsonType


class Response(Struct):
    """Of an answer what must be right; further keys are passed over."""

    content: str
    reasoning_content: str | UnsetType | None = UNSET


class Output(Struct):
    model_name: str
    responses: list[Response]


class Turn(Struct):
    prompt: str
    response: str


_KNOWN: dict[str, Any] = {
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
_KEPT = ("messages", "model_outputs", "conversation", "system", "id")


class Shape:
    """A decoder for one set of keys and types, and how many rows it has counted since the last flush."""

    def __init__(self, types: dict[str, JsonType]) -> None:
        self.types = types
        self.rows = 0
        self.keys = len(types)
        names = {name: name if name in _KEPT else f"field_{index}" for index, name in enumerate(types)}
        fields = [(names[name], _KNOWN.get(name) or self._type(name, kind)) for name, kind in types.items()]
        row = msgspec.defstruct(
            "Row", fields, rename={inner: name for name, inner in names.items()}, forbid_unknown_fields=True
        )
        self.decode = msgspec.json.Decoder(row).decode
        nested = [name for name, kind in types.items() if kind in ("array", "object") and name not in _KNOWN]
        self.nested = tuple(names[name] for name in nested)
        self.has_id = types.get("id", "null") != "null"
        self.has_system = "system" in types

    @staticmethod
    def _type(name: str, kind: JsonType) -> Any:
        return int | float if name == "id" and kind == "number" else _TYPES[kind]
