"""Maps lines of an imported version to their source files, stored as ranges with a constant step."""

from bisect import bisect_right
from collections.abc import Sequence

from datasets.core.imports.model import Place

MOST_RANGES = 20_000
"""After this many ranges, the places of further lines are not stored."""

LineRange = list[int]
"""[first line, index of the file name, its line or record, increment per line]"""


class Places:
    """Collects the places of lines 1, 2, … as they are written."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.ranges: list[LineRange] = []
        self._line = 0
        self._last: tuple[int, int] = (-1, 0)

    def add(self, place: Place) -> None:
        """Add the place of the next line."""
        self._line += 1
        file, at = self._file(f"{place.file} · {place.sheet}" if place.sheet else place.file), place.line or 0
        before, self._last = self._last, (file, at)
        open_one = self.ranges[-1] if self.ranges else None
        if open_one and before[0] == file:
            if self._line == open_one[0] + 1:
                open_one[3] = at - before[1]
            if at - before[1] == open_one[3]:
                return
        if len(self.ranges) < MOST_RANGES:
            self.ranges.append([self._line, file, at, 0])
        elif self.ranges[-1][1] >= 0:
            self.ranges.append([self._line, -1, 0, 0])

    def _file(self, name: str) -> int:
        if name not in self.names[-1:]:
            if name in self.names:
                return self.names.index(name)
            self.names.append(name)
        return len(self.names) - 1


def place_in(names: Sequence[str], ranges: Sequence[LineRange], line: int) -> tuple[str, int] | None:
    """(file, line in it) for a line; None if unknown."""
    index = bisect_right(ranges, line, key=lambda entry: entry[0]) - 1
    if index < 0:
        return None
    first, file, at, step = ranges[index]
    line_in_file = at + (line - first) * step
    return (names[file], line_in_file) if file >= 0 and line_in_file > 0 else None
