"""At which lines findings stand, all of them; the findings themselves are kept up to a number of each code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from datasets.core.linesets import BLOCK, lines_in
from datasets.models import FindingLines, Version


def blocks(version: Version, line: int, code: str = "", forwards: bool = True) -> Iterator[list[int]]:
    """Lines with a finding of one code, or with any, block by block from the one that holds `line`.

    Going back, blocks and their lines come in descending order.
    """
    found = FindingLines.objects.filter(version=version, **({"code": code} if code else {}))
    if forwards:
        found = found.filter(block__gte=max(line, 0) // BLOCK).order_by("block")
    else:
        found = found.filter(block__lte=line // BLOCK).order_by("-block")
    stored = found.values_list("block", "packed").iterator(chunk_size=50)
    for number, group in groupby(stored, key=lambda pair: pair[0]):
        lines = np.unique(np.concatenate([lines_in(number, bytes(packed)) for _, packed in group]))
        yield (lines if forwards else lines[::-1]).tolist()


def codes_at(version: Version, lines: Sequence[int]) -> dict[int, set[str]]:
    """{line: the codes of everything found there}, of those lines that have findings."""
    found: dict[int, set[str]] = {}
    wanted = FindingLines.objects.filter(version=version, block__in={line // BLOCK for line in lines})
    for number, code, packed in wanted.values_list("block", "code", "packed"):
        for line in np.intersect1d(lines, lines_in(number, bytes(packed))).tolist():
            found.setdefault(line, set()).add(code)
    return found
