"""How many keys each line of a block seems to hold: the cheap half of finding keys that are there twice.

A decoder drops the first of two equal keys without a word, so what it returns holds fewer keys than the line. Counting
`":` in the bytes never finds fewer than there are (quotes inside texts are escaped; a text that begins with a
colon counts too many), so an equal count proves that no key is there twice. Any other count proves
nothing, and the line is looked at again.
"""

import numpy as np
from numpy.typing import NDArray

UNCOUNTABLE = -1
SUSPECT = -2
KEY_END = b'":'

_QUOTE, _COLON, _BACKSLASH, _SPACE, _ZERO = b'":\\ 0'
_LOW, _NUL, _ESCAPED_COLON = b"u00", b"00", b"3a"
_SMALL = 0x20
STRIDE = 100
_MARGIN = b"\n\n\n\n\n"


def key_counts(text: bytes, lines: list[bytes]) -> list[int]:
    """For each line of a block at least the number of its keys, or UNCOUNTABLE.

    SUSPECT where the escape of a NUL may stand: a decoder takes it for a character like others. UNCOUNTABLE too where
    an integer may be beyond a double or the escape of a colon may stand: what is decoded, written anew, counts that.
    Only the few places with a colon or a backslash are looked at, all at once.
    """
    codes = np.frombuffer(_MARGIN + text + _MARGIN, np.uint8)
    colons = np.flatnonzero(codes == _COLON)
    before, second, third = (codes[colons - back] for back in (1, 2, 3))
    quoted = before == _QUOTE
    escaped = second == _BACKSLASH
    ends = np.cumsum(np.fromiter(map(len, lines), np.int64, len(lines)) + 1) + len(_MARGIN)
    counts = np.searchsorted(colons[quoted & ~escaped], ends)
    counts[1:] -= counts[:-1].copy()
    doubtful = quoted & escaped & (third == _BACKSLASH)
    # White space between a key's quote and its colon: a control character or blank, and before it a quote or more.
    doubtful |= (before <= _SPACE) & ((second == _QUOTE) | (second <= _SPACE))
    _mark(counts, ends, colons[doubtful], UNCOUNTABLE)
    _mark(counts, ends, _long_numbers(codes), UNCOUNTABLE)
    if b"\\" in text:
        escapes = _before(_LOW, codes, np.flatnonzero(codes == _BACKSLASH) + 1)
        _mark(counts, ends, _before(_ESCAPED_COLON, codes, escapes), UNCOUNTABLE)
        _mark(counts, ends, _before(_NUL, codes, escapes), SUSPECT)
    return counts.tolist()  # type: ignore[no-any-return]


def keys_in(part: bytes) -> int:
    """The keys in a part of a line that is not UNCOUNTABLE."""
    escaped = part.count(b'\\":') if b"\\" in part else 0
    return part.count(KEY_END) - escaped


def _before(wanted: bytes, codes: NDArray[np.uint8], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those of the places from which on the wanted letters and digits stand, large or small, moved behind these."""
    for code in wanted:
        places = places[codes[places] | _SMALL == code] + 1
    return places


def _long_numbers(codes: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Places within what may be three hundred digits and more: so many cover three samples in a row."""
    digits = (codes[::STRIDE] - _ZERO) < 10
    return np.flatnonzero(digits[:-2] & digits[1:-1] & digits[2:]) * STRIDE + STRIDE


def _mark(counts: NDArray[np.int64], ends: NDArray[np.int64], places: NDArray[np.int64], value: int) -> None:
    """Sets the count of the lines in which `places` are."""
    if places.size:
        rows = np.searchsorted(ends, places, side="right")
        counts[rows[rows < counts.size]] = value
