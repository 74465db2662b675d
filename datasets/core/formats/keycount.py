"""How many keys each line of a block seems to hold: the cheap half of finding keys that are there twice.

A decoder drops the first of two equal keys without a word, so what it returns holds fewer keys than the line. Counting
`":` in the bytes never finds fewer than there are (quotes inside texts are escaped; a text that begins with a
colon counts too many), so an equal count proves that no key is there twice. Any other count proves
nothing, and the line is looked at again.
"""

import re

import numpy as np

UNCOUNTABLE = -1
SUSPECT = -2

_NEWLINE, _QUOTE, _COLON, _BACKSLASH, _SPACE, _U = b'\n":\\ u'
_NUL = re.compile(rb"\\u0000")


def key_counts(text: bytes, lines: int) -> list[int]:
    """For each of the block's `lines` lines at least the number of its keys, or UNCOUNTABLE.

    SUSPECT where the escape of a NUL may stand: a decoder takes it for a character like others.
    """
    codes = np.frombuffer(b"\n\n\n" + text + b"\n", np.uint8)
    colon, backslash = codes == _COLON, codes == _BACKSLASH
    quoted = (codes[2:-1] == _QUOTE) & colon[3:]
    ends = np.flatnonzero(codes == _NEWLINE)[3 : 3 + lines] - 2
    keys = np.flatnonzero(quoted & ~backslash[1:-2])
    counts = np.diff(np.searchsorted(keys, ends), prepend=0)
    doubtful = np.flatnonzero(quoted & backslash[1:-2] & backslash[:-3])
    for place in (*doubtful.tolist(), *_spaced_colons(codes, colon)):
        counts[np.searchsorted(ends, place)] = UNCOUNTABLE
    if (backslash[:-1] & (codes[1:] == _U)).any():
        for nul in _NUL.finditer(text):
            counts[np.searchsorted(ends, nul.start() + 1)] = SUSPECT
    return counts.tolist()  # type: ignore[no-any-return]


def _spaced_colons(codes: "np.typing.NDArray[np.uint8]", colon: "np.typing.NDArray[np.bool_]") -> list[int]:
    """Places of colons with white space and a quote, or more white space, before: there a key may end."""
    after_space = np.flatnonzero((codes[1:-1] <= _SPACE) & colon[2:])
    before = codes[after_space]
    return after_space[(before == _QUOTE) | (before <= _SPACE)].tolist()  # type: ignore[no-any-return]
