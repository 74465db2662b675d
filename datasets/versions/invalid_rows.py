"""Streams all invalid rows as a file, each as uploaded and with its findings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.utils import translation

from datasets.core.csv_reader import CsvRecord, CsvTable, header_table
from datasets.core.csv_text import csv_record, open_quote, split_fields
from datasets.core.decode import Upload, blocks
from datasets.core.findings import Finding
from datasets.core.limits import Limits
from datasets.core.own_exports import FINDINGS_COLUMN, text_of_cell
from datasets.messages import message
from datasets.models import Row, Version
from datasets.selectors import encoding_of
from datasets.versions import row_findings
from datasets.versions.parts import PartLine, places
from datasets.versions.row_writer import free_name, loaded_object, slices, with_key
from evalsite.cells import no_formula

FINDINGS = "findings"  # the key in JSON Lines; the column in CSV is FINDINGS_COLUMN
AsLine = Callable[[Row, list[Finding], PartLine | None], str]


def any_kept(version: Version) -> bool:
    """Whether there are invalid rows; a file that could not be split into rows has none."""
    return _bad(version).exists()


def as_jsonl(version: Version, language: str) -> Iterator[bytes]:
    """Yield each invalid row with findings in `language`; non-objects as {"findings", "line", "raw"}.

    If the version was joined from several files, each finding also has `file` and `line_in_file`.
    """
    return _streamed(version, None, language, _json_line)


def as_csv(version: Version, language: str) -> Iterator[bytes]:
    """The header and each invalid record as uploaded, preceded by a column with findings; formulas are escaped.

    The column comes first because an invalid record may have any number of fields.
    """
    header, table = _header(version)
    sign = table.delimiter
    yield f"{free_name(FINDINGS_COLUMN, table.names)}{sign}{_harmless(header.text, table)}\r\n".encode()
    yield from _streamed(version, table, language, partial(_csv_line, of=table))


def csv_table(version: Version) -> CsvTable | None:
    """The header of a CSV version; None for other formats, or if the file is missing."""
    is_csv = version.format == "legacy_csv" and version.file_is_kept
    return _header(version)[1] if is_csv else None


def _bad(version: Version) -> QuerySet[Row]:
    return Row.objects.filter(version=version, valid=False)


def _streamed(version: Version, table: CsvTable | None, language: str, as_line: AsLine) -> Iterator[bytes]:
    place = places(version)
    for part in slices(_bad(version)):
        findings = row_findings.findings_on(version, part, table)
        with translation.override(language):  # streaming happens after the request's language was deactivated
            lines = [as_line(row, findings.get(row.line, []), place(row.line)) for row in part]
        yield "".join(lines).encode("utf-8", "replace")


def _json_line(row: Row, findings: list[Finding], place: PartLine | None) -> str:
    listed = [_as_json(finding, place) for finding in findings]
    value = None if any(finding.code == "json.invalid" for finding in findings) else loaded_object(row.raw)
    if value is None:
        return json.dumps({FINDINGS: listed, "line": row.line, "raw": row.raw}, ensure_ascii=False) + "\n"
    pair = f"{json.dumps(free_name(FINDINGS, value))}:{json.dumps(listed, ensure_ascii=False)}"
    return with_key(row.raw, pair, first=True) + "\n"


def _as_json(finding: Finding, place: PartLine | None) -> dict[str, Any]:
    where = {"line": finding.line, "column": finding.column, "path": finding.path}
    in_file = {"file": place.file, "line_in_file": place.line} if place else {}
    return {"code": finding.code, **where, **in_file, "message": message(finding)}


def _csv_line(row: Row, findings: list[Finding], place: PartLine | None, of: CsvTable) -> str:
    sentences = " | ".join(_in_words(finding, place) for finding in findings)
    return f"{csv_record([sentences], of.delimiter)}{of.delimiter}{_harmless(row.raw, of)}\r\n"


def _harmless(record: str, table: CsvTable) -> str:
    """The record unchanged, or rewritten if a field could be a formula or has an unclosed quote."""
    fields = split_fields(record, table.delimiter)
    guarded = [no_formula(text_of_cell(field) if table.is_own else field) for field in fields]
    if guarded == fields and open_quote(record, False, table.delimiter) is None:
        return record
    return csv_record(guarded, table.delimiter)


def _in_words(finding: Finding, place: PartLine | None) -> str:
    where = ":".join(str(part) for part in (finding.line, finding.column) if part is not None)
    in_file = f" ({place.file}:{place.line})" if place else ""
    return f"{where}{in_file} {finding.code}: {message(finding)}"


def _header(version: Version) -> tuple[CsvRecord, CsvTable]:
    with Upload(version.path, Limits()) as upload:
        return header_table(blocks(upload, encoding_of(version)), upload.limits)
