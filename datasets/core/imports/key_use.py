"""Finds the keys of a tool's records that its source never reads, so that none is dropped without being listed.

The objects inside a record count like the record itself, as `testCase.vars` or `choices[].index`, but only once one of
their keys is read: an object that is passed on as it is, is imported whole.
"""

from collections.abc import Container, ItemsView, Iterable, Iterator, Mapping, ValuesView
from dataclasses import dataclass
from typing import Any, TypeVar

from datasets.core.imports.model import Place

UNREAD = "key_unread"
"""The code of a key that is listed as left out."""
MOST_KEYS = 1_000
"""Further keys are counted together as REST."""
REST = "…"
Kind = TypeVar("Kind", list[Any], dict[str, Any])
_NOTHING: tuple[Any, ...] = (None, "", [], {})


@dataclass(slots=True)
class _Key:
    place: Place
    records: int = 0
    last: int = 0
    is_read: bool = False


class KeyUse:
    """The keys under which the records of one file hold something; those in `always_read` always count as read."""

    def __init__(self, always_read: Container[str] = ()) -> None:
        self._always_read = always_read
        self._keys: dict[str, _Key] = {}
        self._records = 0
        self.notes = False
        """Whether any object notes which of its keys are read."""

    def record(self, place: Place, value: dict[str, Any]) -> "ReadRecord":
        """Count the keys of a record; return the record, which notes those that are read."""
        self._records += 1
        self.notes = True
        noting = ReadRecord(value, _Inside(self, place, self._records))
        noting.count()
        return noting

    def part(self, place: Place, name: str, value: Any) -> Any:
        """The value of a column or a key `name` of a record, which notes the keys inside it that are read."""
        self._records += 1
        self.notes = True
        return _noting(value, _Inside(self, place, self._records, name))

    def count(self, place: Place, names: Iterable[str]) -> None:
        """Count the keys of one more record."""
        self._records += 1
        self.count_in(self._records, place, names)

    def count_in(self, record: int, place: Place, names: Iterable[str]) -> None:
        """Count keys, each of them once for a record (numbers from 1)."""
        for name in names:
            if name in self._always_read:
                continue
            if name not in self._keys and len(self._keys) >= MOST_KEYS:
                name = REST
            key = self._keys.setdefault(name, _Key(place))
            key.records += key.last != record or name == REST
            key.last = record

    def read(self, name: str) -> None:
        if name in self._keys:
            self._keys[name].is_read = True

    def unread(self) -> Iterator[tuple[Place, str, int]]:
        """(first record, key, number of records that hold it) for each key that was not read in any record."""
        for name, key in self._keys.items():
            if not key.is_read:
                yield key.place, name, key.records


@dataclass(frozen=True, slots=True)
class _Inside:
    """Where an object is: its record's place and number, and its path in it."""

    use: KeyUse
    place: Place
    record: int
    path: str = ""

    def key(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def at(self, name: str) -> "_Inside":
        return _Inside(self.use, self.place, self.record, self.key(name))

    def items(self) -> "_Inside":
        return _Inside(self.use, self.place, self.record, f"{self.path}[]")


def _noting(value: Any, inside: _Inside) -> Any:
    """The value, whose objects note the keys that are read."""
    if isinstance(value, dict):
        return value if isinstance(value, ReadRecord) else ReadRecord(value, inside)
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        of_items = inside.items()
        return [_noting(item, of_items) for item in value]
    return value


class ReadRecord(dict[str, Any]):
    """An object that notes whose values are read; iterating over its keys alone does not count.

    A copy (`{**record}`) notes nothing.
    """

    __slots__ = ("_counted", "_inside")

    def __init__(self, record: Mapping[str, Any], inside: _Inside) -> None:
        super().__init__(record)
        self._inside = inside
        self._counted = False

    def count(self) -> None:
        """Count its keys that hold something, once."""
        if not self._counted:
            self._counted = True
            held = [self._inside.key(name) for name, value in super().items() if value not in _NOTHING]
            self._inside.use.count_in(self._inside.record, self._inside.place, held)

    def whole(self) -> None:
        """Count everything in it as read."""
        if self._counted:
            for name in self:
                self._inside.use.read(self._inside.key(name))
        for value in super().values():
            whole(value)

    def _read(self, name: str) -> None:
        self.count()
        self._inside.use.read(self._inside.key(name))
        value = super().get(name)
        if isinstance(value, dict | list):
            super().__setitem__(name, _noting(value, self._inside.at(name)))

    def _read_all(self) -> None:
        self._counted = True
        for name in self:
            self._read(name)

    def __getitem__(self, name: str) -> Any:
        self._read(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._read(name)
        return super().get(name, default)

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        self._read_all()
        return super().items()

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        self._read_all()
        return super().values()

    def __or__(self, other: dict[str, Any]) -> "ReadRecord":  # type: ignore[override]
        return ReadRecord({**self, **other}, self._inside)


def held_as(kind: type[Kind], record: dict[str, Any]) -> Iterator[tuple[str, Kind]]:
    """The keys of an object whose values are of a type, with these; the others are not read."""
    for name in record:
        if isinstance(dict.get(record, name), kind):
            yield name, record[name]


def count_unread(value: Any) -> None:
    """Count the keys of the objects in a value that is not imported."""
    if isinstance(value, ReadRecord):
        value.count()
    elif isinstance(value, list):
        for part in value:
            count_unread(part)


def whole(value: Any) -> None:
    """Count everything in a value as read, as it is stored as it is."""
    if isinstance(value, ReadRecord):
        value.whole()
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            whole(part)
