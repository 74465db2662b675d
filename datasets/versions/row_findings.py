"""All findings of selected rows: stored ones, and others found by validating the rows again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from datasets.core.csv_reader import CsvRecord, CsvTable, records_in
from datasets.core.decode import STUB
from datasets.core.findings import CODES, Param, broken_byte
from datasets.core.findings import Finding as Found
from datasets.core.formats import Format, format_called
from datasets.core.line_set import BLOCK, lines_in
from datasets.core.lines import bytes_at
from datasets.core.reader import KEPT_PER_CODE
from datasets.core.rows import findings_of
from datasets.messages import UNKEPT
from datasets.models import Finding, FindingLines, Row, Version
from datasets.selectors import encoding_of
from datasets.uploads import limits_of_kept
from datasets.versions.row_writer import as_json, with_answers

NOT_AS_MET = frozenset({"file.encoding", "row.too_large"})
"""Rows with these findings are not stored exactly, so validating them again would give other findings."""
_NOT_AS_MET_IN_CSV = NOT_AS_MET | {"json.nul"}

Check = Callable[[Row], list[Found]]


def found_on(version: Version, rows: list[Row], table: CsvTable | None = None) -> dict[int, list[Found]]:
    """{line: findings, errors first} of rows in ascending order of lines; `table` is the header of a CSV.

    All codes are included. Findings that are not stored are found by validating the row again; for a valid row without
    the column, as its original text is not stored.
    """
    if not rows:
        return {}
    codes = codes_at(version, [row.line for row in rows])
    kept = _kept(version, rows[0].line, rows[-1].line)
    cut = {code for code, count in version.counts.items() if count > KEPT_PER_CODE}
    check = _check_of(version, table, codes)
    found = {}
    for row in rows:
        there = codes.get(row.line, set())
        again = check(row) if there & cut else []
        known = kept.get(row.line, [])
        found[row.line] = [
            one for code in there for one in _of_code(row.line, code, code in cut, again, known)
        ]
    return {line: sorted(ones, key=_errors_first) for line, ones in found.items() if ones}


def _of_code(line: int, code: str, cut: bool, again: list[Found], kept: list[Found]) -> list[Found]:
    """The findings of one code on a line: from validating again, else the stored ones, else a placeholder."""
    of_kept = [one for one in kept if one.code == code]
    of_again = [one for one in again if one.code == code] if cut else []
    kind = CODES[code]
    return of_again or of_kept or [Found(line, None, None, code, kind.severity, None, dict(UNKEPT))]


def _errors_first(found: Found) -> tuple[str, int, str]:
    return found.severity, found.column or 0, found.code


def _kept(version: Version, first: int, last: int) -> dict[int, list[Found]]:
    by_line: dict[int, list[Found]] = {}
    for finding in Finding.objects.filter(version=version, line__range=(first, last)).order_by("pk"):
        by_line.setdefault(finding.line or 0, []).append(stored_finding(finding))
    return by_line


def found_on_one(version: Version, row: Row, table: CsvTable | None = None) -> list[Found]:
    """The same for one row; reads the file itself if the stored row does not contain the cause of a finding."""
    found = found_on(version, [row], table).get(row.line, [])
    return [_from_the_file(version, row, one) if one.params == UNKEPT else one for one in found]


def _from_the_file(version: Version, row: Row, found: Found) -> Found:
    if found.code == "row.too_large":
        return replace(found, params=_beyond(row))
    if found.code == "file.encoding" and version.format != "legacy_csv" and version.file_is_kept:
        broken = broken_byte(_line_of_file(version, row.line))
        if broken:
            return replace(found, column=broken[0], params={"met": broken[1]})
    return found


def _line_of_file(version: Version, line: int) -> bytes:
    return bytes_at(version.path, encoding_of(version), line, line + 1, limits_of_kept())


def _beyond(row: Row) -> dict[str, Param]:
    """The exceeded limit; a row that is too long is stored only in part."""
    limits = limits_of_kept()
    if len(row.raw) > STUB:
        return {"limit": limits.row_values, "of": "values"}
    return {"limit": limits.row_bytes}


def _check_of(version: Version, table: CsvTable | None, codes: dict[int, set[str]]) -> Check:
    """A function that validates a row again; it returns nothing for rows that are not stored exactly."""
    fmt = format_called(version.format)
    not_as_met = _NOT_AS_MET_IN_CSV if fmt == "legacy_csv" else NOT_AS_MET

    def check(row: Row) -> list[Found]:
        if codes.get(row.line, set()) & not_as_met:
            return []
        if row.valid:
            return [replace(one, column=None) for one in _check_valid(row, fmt)]
        if fmt == "legacy_csv":
            return table.check(records_in(row.raw, row.line)[0]) if table else []
        return findings_of(row.line, row.raw, fmt)

    return check


def _check_valid(row: Row, fmt: Format | None) -> list[Found]:
    if fmt == "legacy_csv":
        fields: dict[str, str] = json.loads(row.raw)
        table = CsvTable(tuple(fields), tuple(fields), row.line)
        return table.check(CsvRecord(row.line, "", list(fields.values())))
    (whole,) = with_answers([row])
    return findings_of(row.line, as_json(whole, fmt or ""), fmt)


def stored_finding(finding: Finding) -> Found:
    """Convert a stored finding to a core Finding."""
    return Found(
        finding.line,
        finding.column,
        finding.path or None,
        finding.code,
        CODES[finding.code].severity,
        finding.repair or None,
        finding.params,
    )


def line_blocks(version: Version, line: int, code: str = "", forwards: bool = True) -> Iterator[list[int]]:
    """Yield lines with findings of one code (or any), block by block starting with the block of `line`.

    Backwards, blocks and their lines are in descending order.
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
    """{line: codes of its findings} for those of `lines` that have findings."""
    found: dict[int, set[str]] = {}
    wanted = FindingLines.objects.filter(version=version, block__in={line // BLOCK for line in lines})
    for number, code, packed in wanted.values_list("block", "code", "packed"):
        for line in np.intersect1d(lines, lines_in(number, bytes(packed))).tolist():
            found.setdefault(line, set()).add(code)
    return found
