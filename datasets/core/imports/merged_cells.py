"""Finds cells of a sheet that have no value because they are merged with one that has.

A sheet lists its merged areas after its rows, so they are collected before the rows are read.
"""

import re
import zipfile
from collections.abc import Iterator
from typing import Any

from datasets.core.imports.tables import MERGED
from datasets.core.imports.workbook import column_number
from datasets.core.limits import MEBIBYTE

MOST_AREAS = 500_000
MOST_WIDTH = 20_000_000
"""The width of all areas together. Limits what a hostile list costs; areas beyond them are not reported."""
_AREA = re.compile(
    rb"""<(?:\w+:)?mergeCell\s[^<>]*?ref=["']([A-Z]{1,3})([0-9]{1,7}):([A-Z]{1,3})([0-9]{1,7})["']"""
)
_LONGEST_TAG = 1_000


Area = tuple[int, int, int, int]
"""First row, first column from 0, last row, and the column behind the last."""


class MergedCells:
    """The merged areas of a sheet; `mark` is called for its rows in order."""

    def __init__(self, archive: zipfile.ZipFile, member: str, columns: int) -> None:
        self._areas = _areas(archive, member, columns)
        self._next = 0
        self._until = [0] * columns
        """The last row through which each column is merged."""

    def mark(self, number: int, cells: list[Any]) -> None:
        """Put MERGED into the empty cells of this row that are merged with another."""
        if not self._areas:
            return
        firsts = set()
        while self._next < len(self._areas) and self._areas[self._next][0] <= number:
            first, left, last, right = self._areas[self._next]
            self._next += 1
            for column in range(left, right):
                self._until[column] = max(self._until[column], last)
            if first == number:
                firsts.add(left)
        for column, last in enumerate(self._until):
            if last >= number and column not in firsts:
                _mark_cell(cells, column)


def _mark_cell(cells: list[Any], column: int) -> None:
    if column >= len(cells):
        cells += [None] * (column + 1 - len(cells))
    if cells[column] is None or cells[column] == "":
        cells[column] = MERGED


def _areas(archive: zipfile.ZipFile, member: str, columns: int) -> list[Area]:
    """The areas that reach into the first `columns` columns, by first row."""
    areas: list[Area] = []
    width = 0
    for left_letters, first, right_letters, last in _references(archive, member):
        left = column_number(left_letters.decode()) - 1
        right = min(column_number(right_letters.decode()), columns)
        if left >= right:
            continue
        width += right - left
        if len(areas) == MOST_AREAS or width > MOST_WIDTH:
            break
        areas.append((int(first), left, int(last), right))
    return sorted(areas)


def _references(archive: zipfile.ZipFile, member: str) -> Iterator[tuple[bytes, ...]]:
    """The corners of each merged area: letters and number of its first and last cell."""
    with archive.open(member) as stream:
        rest = b""
        while chunk := stream.read(MEBIBYTE):
            text = rest + chunk
            end = 0
            for area in _AREA.finditer(text):
                end = area.end()
                yield area.groups()
            rest = text[max(end, len(text) - _LONGEST_TAG) :]
