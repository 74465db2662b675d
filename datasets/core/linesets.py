"""At which lines something was found, all of them: 8 KB at most for 65,536 lines, however many those are."""

from array import array
from collections.abc import Iterator

import numpy as np

BLOCK = 1 << 16
_BITMAP = BLOCK // 8  # bytes; a block with fewer lines than would fill as many is a list of two-byte numbers


class Lines:
    """A set of line numbers, made for numbers that come roughly in order."""

    def __init__(self) -> None:
        self._lists: dict[int, array[int]] = {}
        self._bitmaps: dict[int, bytearray] = {}

    def add(self, line: int) -> None:
        number, offset = divmod(line, BLOCK)
        bitmap = self._bitmaps.get(number)
        if bitmap is not None:
            bitmap[offset >> 3] |= 128 >> (offset & 7)
            return
        listed = self._lists.setdefault(number, array("H"))
        if not listed or listed[-1] != offset:
            listed.append(offset)
        if 2 * len(listed) >= _BITMAP:
            self._bitmaps[number] = _bitmap(self._lists.pop(number))

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """(number of the block, its lines packed), in order."""
        for number in sorted({*self._lists, *self._bitmaps}):
            listed = self._lists.get(number)
            yield number, bytes(self._bitmaps[number] if listed is None else listed.tobytes())


def lines_in(number: int, packed: bytes) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """The lines of one packed block, ascending, each once."""
    if len(packed) == _BITMAP:
        offsets = np.flatnonzero(np.unpackbits(np.frombuffer(packed, np.uint8)))
    else:
        offsets = np.unique(np.frombuffer(packed, np.uint16))
    return offsets.astype(np.int64) + number * BLOCK


def _bitmap(listed: "array[int]") -> bytearray:
    bits = np.zeros(BLOCK, np.bool_)
    bits[np.frombuffer(listed, np.uint16)] = True
    return bytearray(np.packbits(bits).tobytes())
