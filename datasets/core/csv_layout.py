"""Where the header of a CSV file stands, and what separates its fields."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from datasets.core.csv_text import header_of

FIRST_LINES = 200
"""The lines at the start of a file among which a header is sought."""
MOST_ABOVE = 20
"""At most this many lines may stand above the header."""
LEGACY_DELIMITERS = (",", ";", "\t")
LEGACY_NEEDED = frozenset(("prompt", "response"))
_SEP = re.compile(r'"?sep=(.)"?', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CsvLayout:
    """How a CSV file is written: its delimiter, the line of its header, and the texts above that by line.

    The delimiter is '' in a file of one column, whose records may contain any sign.
    """

    delimiter: str = ","
    header: int = 1
    above: tuple[tuple[int, str], ...] = ()


COMMON_LAYOUT = CsvLayout()
Names = Sequence[str]


def layout_of(
    lines: Sequence[str], delimiters: Iterable[str], is_header: Callable[[Names], int], first: int = 1
) -> CsvLayout | None:
    """The layout of a file with these lines from the number `first` on; None if none of the first is a header.

    `is_header` says how well the names of columns fit: 0 not at all. Excel's line `sep=;` names the delimiter.
    """
    sep = next((line for line in lines if line.strip()), "")
    named = _SEP.fullmatch(sep.strip())
    start = lines.index(sep) + 1 if named else 0
    candidates = (named[1],) if named else tuple(delimiters)
    above: list[tuple[int, str]] = []
    for number, line in enumerate(lines[start:], start + first):
        if not line.strip():
            continue
        fits = {delimiter: is_header(header_of(line, delimiter)) for delimiter in candidates}
        best = max(fits, key=lambda delimiter: fits[delimiter])
        if fits[best]:
            return CsvLayout(best, number, tuple(above))
        above.append((number, line.strip()))
        if len(above) > MOST_ABOVE:
            break
    return None


def legacy_layout(lines: Sequence[str], first: int = 1) -> CsvLayout | None:
    """The layout of a legacy CSV; a first line with one of its columns is its header, though the other is missing."""
    whole = layout_of(lines, LEGACY_DELIMITERS, lambda names: _folded(names) >= LEGACY_NEEDED, first)
    if whole and not whole.above:
        return whole
    top = next((number for number, line in enumerate(lines) if line.strip()), 0)
    half = layout_of(
        lines[: top + 1], LEGACY_DELIMITERS, lambda names: len(LEGACY_NEEDED & _folded(names)), first
    )
    return half or whole


def _folded(names: Names) -> set[str]:
    return {name.strip().lower() for name in names}
