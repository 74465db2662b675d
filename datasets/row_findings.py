"""Everything that was found in some rows: what the table keeps, and beyond that what another look at them finds."""

from __future__ import annotations

from collections.abc import Callable

from datasets import finding_lines
from datasets.core.findings import CODES
from datasets.core.findings import Finding as Found
from datasets.core.formats.checks import check_json_row
from datasets.core.formats.csvrows import CsvTable
from datasets.core.formats.csvtext import Record, records
from datasets.core.formats.names import FORMATS
from datasets.core.limits import Limits
from datasets.core.reading import KEPT_PER_CODE
from datasets.findings_shown import found_of
from datasets.messages import UNKEPT
from datasets.models import Finding, Row, Version

NOT_AS_MET = frozenset({"file.encoding", "row.too_large", "json.nul"})
"""Of a row with these the table holds no exact copy, so that another look would find something else."""

Check = Callable[[Row], list[Found]]


def found_on(version: Version, rows: list[Row], table: CsvTable | None = None) -> dict[int, list[Found]]:
    """{line: findings, errors first} of some rows in ascending lines; `table` is the header of a CSV.

    Codes are complete. Of a valid row beyond what is kept no place is known, only the code.
    """
    if not rows:
        return {}
    codes = finding_lines.codes_at(version, [row.line for row in rows])
    kept = _kept(version, rows[0].line, rows[-1].line)
    cut = {code for code, count in version.counts.items() if count > KEPT_PER_CODE}
    check = _check_of(version, table)
    found = {}
    for row in rows:
        there = codes.get(row.line, set())
        again = check(row) if there & cut and not row.valid and not there & NOT_AS_MET else []
        known = kept.get(row.line, [])
        found[row.line] = [
            one for code in there for one in _of_code(row.line, code, code in cut, again, known)
        ]
    return {line: sorted(ones, key=_errors_first) for line, ones in found.items() if ones}


def _of_code(line: int, code: str, cut: bool, again: list[Found], kept: list[Found]) -> list[Found]:
    """The findings of one code at a line: all that are kept, else those of another look, else that there is one."""
    of_kept = [one for one in kept if one.code == code]
    of_again = [one for one in again if one.code == code] if cut else []
    kind = CODES[code]
    return of_again or of_kept or [Found(line, None, None, code, kind.severity, None, dict(UNKEPT))]


def _errors_first(found: Found) -> tuple[str, int, str]:
    return found.severity, found.column or 0, found.code


def _kept(version: Version, first: int, last: int) -> dict[int, list[Found]]:
    by_line: dict[int, list[Found]] = {}
    for finding in Finding.objects.filter(version=version, line__range=(first, last)).order_by("pk"):
        by_line.setdefault(finding.line or 0, []).append(found_of(finding))
    return by_line


def _check_of(version: Version, table: CsvTable | None) -> Check:
    if table is not None:
        return lambda row: table.check(_record(row)).found
    fmt = next((name for name in FORMATS if name == version.format), None)
    if fmt == "legacy_csv":
        return lambda row: []
    return lambda row: check_json_row(row.line, row.raw, fmt).found


def _record(row: Row) -> Record:
    lines = (
        (number, part + b"\n", False) for number, part in enumerate(row.raw.encode().split(b"\n"), row.line)
    )
    return next(records(lines, Limits().row_bytes))
