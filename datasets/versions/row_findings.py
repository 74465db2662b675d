"""All findings of selected rows: stored ones, and others found by validating the rows again."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from datasets.core.csv_reader import CsvRecord, CsvTable, records_in
from datasets.core.decode import STUB
from datasets.core.findings import CODES, Finding, Param, broken_byte
from datasets.core.formats import Format, format_called
from datasets.core.line_set import BLOCK, lines_in
from datasets.core.lines import bytes_at
from datasets.core.reader import KEPT_PER_CODE
from datasets.core.rows import findings_of
from datasets.messages import UNKEPT
from datasets.models import FindingLines, Row, StoredFinding, Version
from datasets.selectors import encoding_of
from datasets.uploads import limits_of_kept
from datasets.versions.row_writer import as_json, with_answers

NOT_AS_MET = frozenset({"file.encoding", "row.too_large"})
"""Rows with these findings are not stored exactly, so validating them again would give other findings."""


def findings_on(version: Version, rows: list[Row], table: CsvTable | None = None) -> dict[int, list[Finding]]:
    """{line: findings, errors first} of rows in ascending order of lines; `table` is the header of a CSV.

    All codes are included. Findings that are not stored are found by validating the row again; for a valid row without
    the column, as its original text is not stored.
    """
    if not rows:
        return {}
    codes = codes_at(version, [row.line for row in rows])
    stored = _stored(version, rows[0].line, rows[-1].line)
    cut = {code for code, count in version.counts.items() if count > KEPT_PER_CODE}
    by_line = {}
    for row in rows:
        there = codes.get(row.line, set())
        again = _validated(version, row, table, there) if there & cut else []
        of_row = [finding for finding in again if finding.code in there & cut]
        left = there - {finding.code for finding in of_row}
        of_row += [finding for finding in stored[row.line] if finding.code in left]
        left -= {finding.code for finding in of_row}
        of_row += [
            Finding(row.line, None, None, code, CODES[code].severity, None, dict(UNKEPT)) for code in left
        ]
        if of_row:
            by_line[row.line] = sorted(
                of_row, key=lambda finding: (finding.severity, finding.column or 0, finding.code)
            )
    return by_line


def _stored(version: Version, first: int, last: int) -> dict[int, list[Finding]]:
    by_line: dict[int, list[Finding]] = defaultdict(list)
    for finding in StoredFinding.objects.filter(version=version, line__range=(first, last)).order_by("pk"):
        by_line[finding.line or 0].append(as_finding(finding))
    return by_line


def findings_on_row(version: Version, row: Row, table: CsvTable | None = None) -> list[Finding]:
    """The same for one row; reads the file itself if the stored row does not contain the cause of a finding."""
    findings = findings_on(version, [row], table).get(row.line, [])
    return [
        _from_the_file(version, row, finding) if finding.params == UNKEPT else finding for finding in findings
    ]


def _from_the_file(version: Version, row: Row, finding: Finding) -> Finding:
    if finding.code == "row.too_large":
        return replace(finding, params=_beyond(row))
    if finding.code == "file.encoding" and version.format != "legacy_csv" and version.file_is_kept:
        line = bytes_at(version.path, encoding_of(version), row.line, row.line + 1, limits_of_kept())
        if broken := broken_byte(line):
            return replace(finding, column=broken[0], params={"met": broken[1]})
    return finding


def _beyond(row: Row) -> dict[str, Param]:
    """The exceeded limit; a row that is too long is stored only in part."""
    limits = limits_of_kept()
    if len(row.raw) > STUB:
        return {"limit": limits.row_values, "of": "values"}
    return {"limit": limits.row_bytes}


def _validated(version: Version, row: Row, table: CsvTable | None, codes: set[str]) -> list[Finding]:
    """Validate a row with findings of these codes again; nothing for rows that are not stored exactly."""
    fmt = format_called(version.format)
    if codes & NOT_AS_MET or (fmt == "legacy_csv" and "json.nul" in codes):
        return []
    if row.valid:
        return [replace(finding, column=None) for finding in _validated_valid(row, fmt)]
    if fmt == "legacy_csv":
        return table.check(records_in(row.raw, row.line, table.delimiter)[0]) if table else []
    return findings_of(row.line, row.raw, fmt)


def _validated_valid(row: Row, fmt: Format | None) -> list[Finding]:
    if fmt == "legacy_csv":
        fields: dict[str, str] = json.loads(row.raw)
        table = CsvTable(tuple(fields), tuple(fields), row.line)
        return table.check(CsvRecord(row.line, "", list(fields.values())))
    (whole,) = with_answers([row])
    return findings_of(row.line, as_json(whole, fmt or ""), fmt)


def as_finding(finding: StoredFinding) -> Finding:
    """Convert a stored finding to a core Finding."""
    return Finding(
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
    blocks = FindingLines.objects.filter(version=version, **({"code": code} if code else {}))
    if forwards:
        blocks = blocks.filter(block__gte=max(line, 0) // BLOCK).order_by("block")
    else:
        blocks = blocks.filter(block__lte=line // BLOCK).order_by("-block")
    stored = blocks.values_list("block", "packed").iterator(chunk_size=50)
    for number, group in groupby(stored, key=lambda pair: pair[0]):
        lines = np.unique(np.concatenate([lines_in(number, bytes(packed)) for _, packed in group]))
        yield (lines if forwards else lines[::-1]).tolist()


def codes_at(version: Version, lines: Sequence[int]) -> dict[int, set[str]]:
    """{line: codes of its findings} for those of `lines` that have findings."""
    codes_by_line: dict[int, set[str]] = {}
    wanted = FindingLines.objects.filter(version=version, block__in={line // BLOCK for line in lines})
    for number, code, packed in wanted.values_list("block", "code", "packed"):
        for line in np.intersect1d(lines, lines_in(number, bytes(packed))).tolist():
            codes_by_line.setdefault(line, set()).add(code)
    return codes_by_line
