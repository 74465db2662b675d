"""The cells of a table's record that a mapping names, and the list of what is in no named cell."""

from collections.abc import Iterable, Sequence
from typing import Any

from datasets.core.imports.columns import Record
from datasets.core.imports.key_use import KeyUse
from datasets.core.imports.model import Place


def unused_columns(columns: Sequence[str], used: Iterable[str]) -> list[str]:
    """The columns outside `used`. Of an object of which parts (`a.b`) are used, its other parts; else only itself."""
    used = set(used)
    opened = {part for name in used for part in _around(name)}
    names = set(columns)

    def is_listed(name: str) -> bool:
        if name in used or name in opened:
            return False
        around = [part for part in _around(name) if part in names]
        return not around or (around[-1] in opened and used.isdisjoint(around))

    return [name for name in columns if is_listed(name)]


def _around(name: str) -> list[str]:
    """The objects that a column is a part of, outermost first."""
    return [name[:index] for index, sign in enumerate(name) if sign == "."]


class CellKeys:
    """Lists the columns and the keys inside cells that a table's mapping leaves out."""

    def __init__(self, use: KeyUse, columns: Sequence[str], used: Iterable[str]) -> None:
        self._use = use
        self._unused = unused_columns(columns, used)

    def count(self, place: Place, record: Record) -> None:
        """Count the columns that are left out of a record."""
        if self._unused:
            held = [name for name in self._unused if record.get(name) not in (None, "", [], {})]
            self._use.count(place, held)

    def noting(self, place: Place, column: str, value: Any) -> Any:
        """A cell whose objects note which of their keys are read."""
        return self._use.part(place, column, value) if isinstance(value, dict | list) else value
