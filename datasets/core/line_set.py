"""A complete set of line numbers in at most 8 KB per 65,536 lines."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 16
_BITMAP = BLOCK // 8  # bytes; a block whose two-byte offsets would take less space is stored as a list
MOST_RECENT = 1_000  # lines buffered per code before they are merged

Offsets = NDArray[np.uint16]
_NONE: Offsets = np.empty(0, np.uint16)


class Lines:
    """A set of line numbers, optimised for numbers that arrive roughly in order."""

    def __init__(self) -> None:
        self._recent: list[int] = []
        self._lists: dict[int, Offsets] = {}
        self._bitmaps: dict[int, bytearray] = {}

    def add(self, line: int) -> None:
        self._recent.append(line)
        if len(self._recent) >= MOST_RECENT:
            self._settle()

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """(block number, its packed lines), in order."""
        self._settle()
        for number in sorted({*self._lists, *self._bitmaps}):
            listed = self._lists.get(number)
            yield number, bytes(self._bitmaps[number] if listed is None else listed.tobytes())

    def _settle(self) -> None:
        """Merge the buffered lines; adding them one by one would cost several times as much."""
        lines = np.unique(np.array(self._recent, np.int64))
        self._recent.clear()
        numbers = lines // BLOCK
        for number in np.unique(numbers).tolist():
            self._add(number, (lines[numbers == number] % BLOCK).astype(np.uint16))

    def _add(self, number: int, offsets: Offsets) -> None:
        if number not in self._bitmaps:
            listed = self._lists.pop(number, _NONE)
            offsets = np.union1d(listed, offsets)
            if offsets.nbytes < _BITMAP:
                self._lists[number] = offsets
                return
            self._bitmaps[number] = bytearray(_BITMAP)
        bits = np.zeros(BLOCK, np.bool_)
        bits[offsets] = True
        packed = np.frombuffer(self._bitmaps[number], np.uint8)
        packed |= np.packbits(bits)


def lines_in(number: int, packed: bytes) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """The distinct lines of one packed block, in ascending order."""
    if len(packed) == _BITMAP:
        offsets = np.flatnonzero(np.unpackbits(np.frombuffer(packed, np.uint8)))
    else:
        offsets = np.unique(np.frombuffer(packed, np.uint16))
    return offsets.astype(np.int64) + number * BLOCK
