"""Streams the records of a list in a YAML file; memory holds one record and the anchored values.

Scalars follow JSON's types, all others stay strings. An alias counts as much as the value it refers to, so that a few
aliases cannot expand to millions of values.
"""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from datasets.core.decode import text_encoding, utf8_chunks
from datasets.core.imports.model import BrokenRecord, NotUsable, SourceFile
from datasets.core.json_tokens import MAX_DEPTH
from datasets.core.limits import MEBIBYTE, Limits

YAML_BYTES = 128 * MEBIBYTE
"""Larger files are not read, as anchored values are held in memory."""
_PLAIN: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]{1,300}")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_STARTS, _ENDS = (MappingStartEvent, SequenceStartEvent), (MappingEndEvent, SequenceEndEvent)


_DEEPEST = 1_000
"""Maximum number of open lists and mappings: the time that libyaml takes grows with its square."""


class _TooMuch(Exception):
    """A value is larger or nested more deeply than a row may be."""


class _TooDeep(Exception):
    """A value is nested so deeply that the rest of the file is not read."""


def yaml_records(
    file: SourceFile, limits: Limits, key: str, beside: Callable[[str], None] = lambda _path: None
) -> Iterator[Any]:
    """Yield each element of the list at `key`, or at `key` within the mapping at `key`.

    `beside` is called with the path of each other key that holds something, such as `results.version`.
    Values that are too large, and the rest of a file that stops being valid YAML, are yielded as BrokenRecord. Raises
    NotUsable if the file cannot be decoded or is too large as a whole.
    """
    with file.upload(limits) as upload:
        text = _Text(utf8_chunks(upload, text_encoding(upload)), file)
        reader = _Reader(
            yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)), limits, beside
        )
        try:
            yield from reader.elements(key)
        except yaml.YAMLError:
            yield BrokenRecord("yaml_broken")
        except _TooDeep:
            yield BrokenRecord("too_deep")


class _Text:
    """File-like object that PyYAML reads from."""

    def __init__(self, chunks: Iterator[bytes], file: SourceFile) -> None:
        self._chunks, self._file, self._room = chunks, file, YAML_BYTES

    def read(self, _size: int = -1) -> bytes:
        chunk = next(self._chunks, b"")
        self._room -= len(chunk)
        if self._room < 0:
            raise NotUsable("too_large", file=self._file.name)
        return chunk


class _Reader:
    """Builds values from YAML events. `_anchors`: {name: (value, number of values in it, number of characters)}."""

    def __init__(self, events: Iterator[Event], limits: Limits, beside: Callable[[str], None]) -> None:
        self._events, self._limits, self._beside = events, limits, beside
        self._anchors: dict[str, tuple[Any, int, int]] = {}
        self._values = self._size = self._level = 0

    def elements(self, key: str) -> Iterator[Any]:
        event: Event | None = next((event for event in self._events if isinstance(event, _STARTS)), None)
        inside: list[str] = []
        while isinstance(event, MappingStartEvent) and len(inside) < 2:
            inside.append("".join(f"{key}." for _outer in inside))
            event = self._at(key, inside[-1])
        if isinstance(event, SequenceStartEvent):
            while not isinstance(event := next(self._events), SequenceEndEvent):
                yield self._bounded(event)
            for before in reversed(inside):
                self._at(None, before)

    def _at(self, key: str | None, inside: str) -> Event | None:
        """The first event of the mapping's value at `key`; earlier values are read for their anchors."""
        while not isinstance(event := next(self._events), MappingEndEvent | DocumentEndEvent):
            name = self._bounded(event)
            event = next(self._events)
            if name == key:
                return event
            if self._bounded(event) not in (None, "", [], {}):
                self._beside(f"{inside}{name}")
        return None

    def _bounded(self, event: Event) -> Any:
        self._values = self._size = self._level = 0
        try:
            return self._value(event)
        except _TooMuch:
            self._skip()
            return BrokenRecord("too_large")

    def _skip(self) -> None:
        """Skip the rest of a value with open lists and mappings."""
        while self._level:
            if self._level > _DEEPEST:
                raise _TooDeep
            event = next(self._events)
            self._level += isinstance(event, _STARTS) - isinstance(event, _ENDS)

    def _value(self, event: Event) -> Any:
        before = self._values, self._size
        if isinstance(event, AliasEvent):
            value, values, size = self._anchors.get(event.anchor or "", (None, 1, 0))
            self._count(values, size)
            return value
        if isinstance(event, ScalarEvent):
            self._count(1, len(event.value))
            value = _scalar(event)
        else:
            self._level += 1
            self._count(1, 0)
            if self._level > MAX_DEPTH:
                raise _TooMuch
            value = self._mapping() if isinstance(event, MappingStartEvent) else self._list()
            self._level -= 1
        if anchor := getattr(event, "anchor", None):
            self._anchors[anchor] = (value, self._values - before[0], self._size - before[1])
        return value

    def _mapping(self) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        while not isinstance(event := next(self._events), MappingEndEvent):
            name = str(self._value(event))
            mapping[name] = self._value(next(self._events))
        return mapping

    def _list(self) -> list[Any]:
        values: list[Any] = []
        while not isinstance(event := next(self._events), SequenceEndEvent):
            values.append(self._value(event))
        return values

    def _count(self, values: int, size: int) -> None:
        self._values += values
        self._size += size
        if self._values > self._limits.row_values or self._size > self._limits.row_bytes:
            raise _TooMuch


def _scalar(event: ScalarEvent) -> Any:
    text: str = event.value
    if not event.implicit[0] or event.style:
        return text
    if text in _PLAIN:
        return _PLAIN[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text
