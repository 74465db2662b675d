"""Rows decoded in one go, once it is known which keys of which types a file's rows have.

That is learned from rows that were looked at key by key; the next rows with no other keys and types need one
call of the decoder, which then vouches for both.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import reduce
from operator import attrgetter, or_
from types import GenericAlias
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from datasets.core.formats.extras import Extras
from datasets.core.formats.names import Message
from datasets.core.jsontext import JsonType


class Turn(Struct, gc=False):
    prompt: str
    response: str


KNOWN: dict[str, Any] = {
    "messages": tuple[Message, ...],  # see wide.py
    "model_outputs": list[Any],  # see _Answers
    "conversation": list[Turn],
}
_READ = (*KNOWN, "id", "system")
# float for numbers: it refuses those beyond a double, and drops nothing, as the text is kept.
_TYPES: dict[JsonType, Any] = {
    "string": str,
    "number": float,
    "boolean": bool,
    "null": None,
    "array": list[Any],
    "object": dict[str, Any],
}


_JSON_TYPES: dict[type, JsonType] = {
    str: "string",
    float: "number",
    int: "number",
    bool: "boolean",
    type(None): "null",
    list: "array",
    dict: "object",
}


class _Answers:
    """The type of `model_outputs`, with all that answers were found to hold beside their text.

    Of an answer what must be right is asked of the decoder, but for its text; keys that are not known are passed over.
    """

    def __init__(self) -> None:
        self.extras = Extras("content", "reasoning_content")
        self.further = False
        self.type: Any = self._made()

    def learn(self, answers: Iterator[dict[str, Any]]) -> bool:
        """From now on the further keys of these answers are known; False if they were already."""
        if not self.extras.learn(answers) or not self.extras.can_be_known:
            return False
        self.further = True
        self.type = self._made()
        return True

    def _made(self) -> Any:
        known = {
            "content": ("content", Any, UNSET),
            "reasoning_content": ("reasoning_content", str | UnsetType | None, UNSET),
        }
        response = self.extras.structure(known, forbid_unknown_fields=False)
        output: Any = msgspec.defstruct(
            "Output", [("model_name", str), ("responses", GenericAlias(list, (response,)))], gc=False
        )
        return GenericAlias(list, (output,))


_SCALAR = str | float | bool | None
_FLAT_TYPES: dict[JsonType, Any] = {"object": dict[str, _SCALAR | list[_SCALAR]], "array": list[_SCALAR]}


MOST_MIXED = 500_000
"""Types in all mixes that are told apart before they are counted together: some megabytes."""


class Mix:
    """One choice of the keys and types that vary: how many keys that makes at the top, and how many rows have it."""

    __slots__ = ("keys", "rows")

    def __init__(self, keys: int) -> None:
        self.keys = keys
        self.rows = 0


class Shape:
    """The decoder for all keys and types learned so far, and what it has counted since it was last asked.

    `nested` are the attributes of a decoded row in which there may be further keys, at any depth; `flat` those whose
    values hold no objects: the decoder vouches for that.
    """

    def __init__(self) -> None:
        self._types: dict[str, set[JsonType]] = {}
        self._attributes: dict[str, str] = {}
        self._optional: set[str] = set()
        self._varying: list[str] = []
        self._values: Callable[[Any], tuple[Any, ...]] = tuple
        self.same: Mix | None = None
        self._mixes: dict[tuple[type, ...], Mix] = {}
        self._counted: Counter[tuple[str, JsonType]] = Counter()
        self.decode: Callable[[bytes], Any] = _refuse
        self.nested: tuple[str, ...] = ()
        self.flat: tuple[str, ...] = ()
        self._deep: set[str] = set()
        self._messages: Any = KNOWN["messages"]
        self.answers = _Answers()

    def mix(self, row: Any) -> Mix:
        """Of a decoded row; only needed where not all rows are the `same`."""
        types = tuple(map(type, self._values(row)))
        return self._mixes.get(types) or self._new_mix(types)

    def _new_mix(self, types: tuple[type, ...]) -> Mix:
        if len(self._mixes) * len(types) >= MOST_MIXED:
            self._gather()
            self._mixes.clear()
        absent = types.count(UnsetType)
        mix = self._mixes[types] = Mix(len(self._types) - absent)
        return mix

    def counted(self) -> Iterator[tuple[str, JsonType, int]]:
        """(key, its type, in how many rows) of all rows since the last call or lesson."""
        self._gather()
        for (name, kind), rows in self._counted.items():
            yield name, kind, rows
        self._counted.clear()

    def _gather(self) -> None:
        """Counts the rows of each mix; the row in hand may still be added to its own."""
        mixes = [self.same] if self.same else list(self._mixes.values())
        rows = sum(mix.rows for mix in mixes)
        for name, types in self._types.items():
            if name not in self._varying:
                self._counted[name, next(iter(types))] += rows
        for met, mix in self._mixes.items():
            for name, kind in zip(self._varying, met[1:], strict=True):
                if kind is not UnsetType:
                    self._counted[name, _JSON_TYPES[kind]] += mix.rows
        for mix in mixes:
            mix.rows = 0

    def learn_answers(self, answers: Iterator[dict[str, Any]]) -> None:
        """From now on the further keys of these answers are decoded too."""
        if self.answers.learn(answers) and self._types:
            self._make_decoder()

    def learn_messages(self, kind: Any) -> None:
        """From now on messages are decoded as this."""
        self._messages = kind
        if self._types:
            self._make_decoder()

    def learn(self, types: dict[str, JsonType], deep: set[str]) -> None:
        """From now on rows with these keys and types are decoded too; `counted` was asked before.

        The values of `deep` are not flat.
        """
        self._deep |= deep | {"id"}  # what is compared is decoded exactly, not as any number
        if self._types:
            self._optional |= self._types.keys() ^ types.keys()
        for name, kind in types.items():
            self._types.setdefault(name, set()).add(kind)
            self._attributes.setdefault(name, name if name in _READ else f"field_{len(self._attributes)}")
        self._settle()

    def keys_with(self, types: dict[str, JsonType]) -> int:
        """How many keys would be known if these were."""
        return len(self._types.keys() | types.keys())

    def may_lack(self, name: str) -> None:
        """From now on rows without this key are decoded too; `counted` was asked before."""
        if self._types:
            self._optional.add(name)
            self._settle()

    def lacks(self, name: str) -> bool:
        """Whether rows without this key are decoded, or would be if any were."""
        return not self._types or name in self._optional

    def _settle(self) -> None:
        self._varying = [n for n, found in self._types.items() if n in self._optional or len(found) > 1]
        self.same = None if self._varying else Mix(len(self._types))
        self._mixes.clear()
        anchor = "conversation" if "conversation" in self._types else "messages"
        varying = [self._attributes[name] for name in self._varying]
        if varying:
            self._values = attrgetter(anchor, *varying)
        below = [n for n, found in self._types.items() if found & {"array", "object"} and n not in KNOWN]
        self.nested = tuple(self._attributes[name] for name in below if name in self._deep)
        self.flat = tuple(self._attributes[name] for name in below if name not in self._deep)
        self._make_decoder()

    def _make_decoder(self) -> None:
        absent = {name: UNSET for name in _READ if name not in self._types}
        fields = [
            (self._attributes[name], self._field_type(name), UNSET)
            if name in self._optional
            else (self._attributes[name], self._field_type(name))
            for name in sorted(self._types, key=self._optional.__contains__)
        ]
        # What is absent is an attribute of the class and no field, so that the decoder refuses a row that has it.
        row = msgspec.defstruct(
            "Row",
            fields,
            rename={inner: name for name, inner in self._attributes.items()},
            namespace=absent,
            forbid_unknown_fields=True,
            gc=False,
        )
        self.decode = msgspec.json.Decoder(row).decode

    def _field_type(self, name: str) -> Any:
        if name == "model_outputs":
            return self.answers.type
        if name == "messages":
            return self._messages
        if name in KNOWN:
            return KNOWN[name]
        kinds = [_type_of(name, kind, name in self._deep) for kind in sorted(self._types[name])]
        return reduce(or_, kinds + [UnsetType] * (name in self._optional))


def _refuse(line: bytes) -> Any:
    raise msgspec.ValidationError


def is_flat(value: Any) -> bool:
    """Whether there is no object within an object or array, and no array within two."""
    if isinstance(value, dict):
        return all(_is_scalar(item) or (isinstance(item, list) and is_flat(item)) for item in value.values())
    return all(map(_is_scalar, value)) if isinstance(value, list) else True


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, dict | list)


def _type_of(name: str, kind: JsonType, deep: bool) -> Any:
    if name == "id" and kind == "number":
        return int | float
    return _TYPES[kind] if deep else _FLAT_TYPES.get(kind, _TYPES[kind])


def json_type(value: Any) -> JsonType:
    """The JSON type of a decoded value."""
    return _JSON_TYPES[type(value)]
