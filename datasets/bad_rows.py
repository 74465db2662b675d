"""The bad rows as a file, each as it was uploaded and with what was found in it; all of them, streamed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from django.db.models import QuerySet
from django.utils import translation

from datasets.core.decode import Upload, blocks, utf8_chunks
from datasets.core.findings import CODES
from datasets.core.findings import Finding as Found
from datasets.core.formats.checks import check_json_row
from datasets.core.formats.csvrows import CsvTable
from datasets.core.formats.csvtext import Record, records
from datasets.core.formats.names import FORMATS
from datasets.core.limits import Limits
from datasets.findings_shown import found_of
from datasets.messages import message
from datasets.models import Finding, Row, Version
from datasets.recomposing import csv_record, slices, with_key

KEY = "findings"
AS_STORED = frozenset({"file.encoding", "row.too_large", "json.nul"})
"""Of rows with these the tables hold no exact copy; what was found when the file was read is what counts."""

Check = Callable[[Row], list[Found]]


def any_kept(version: Version) -> bool:
    """Are there bad rows? A file that could not be divided into rows has none."""
    return _bad(version).exists()


def as_jsonl(version: Version, language: str) -> Iterator[bytes]:
    """Each bad row as a line, findings told in `language`; one that is no object as {"findings", "line", "raw"}."""
    fmt = next((name for name in FORMATS if name == version.format), None)
    for part in _checked(version, lambda row: check_json_row(row.line, row.raw, fmt).found):
        with translation.override(language):  # what is streamed is made after the request's language was left
            lines = [_json_line(row, found) for row, found in part]
        yield "".join(lines).encode("utf-8", "replace")


def as_csv(version: Version, language: str) -> Iterator[bytes]:
    """The header and each bad record as uploaded, after a first column with the findings.

    First, because a bad record may have any number of fields, or a quote that never ends.
    """
    header = _header(version)
    table = CsvTable.of(header)
    yield f"{_free_name(set(table.names))},{header.text}\r\n".encode()
    for part in _checked(version, lambda row: table.check(_record(row)).found):
        with translation.override(language):
            lines = [_csv_line(row, found) for row, found in part]
        yield "".join(lines).encode("utf-8", "replace")


def _bad(version: Version) -> QuerySet[Row]:
    return Row.objects.filter(version=version, valid=False)


def _checked(version: Version, check: Check) -> Iterator[list[tuple[Row, list[Found]]]]:
    for part in slices(_bad(version)):
        kept = _kept(version, part[0].line, part[-1].line)
        yield [(row, _findings(row, kept.get(row.line, []), check)) for row in part]


def _kept(version: Version, first: int, last: int) -> dict[int, list[Found]]:
    by_line: dict[int, list[Found]] = {}
    for finding in Finding.objects.filter(version=version, line__range=(first, last)).order_by("pk"):
        by_line.setdefault(finding.line or 0, []).append(found_of(finding))
    return by_line


def _findings(row: Row, kept: list[Found], check: Check) -> list[Found]:
    """What the table keeps is cut per code, so the row is looked at again; a repeat is known to the table only."""
    if any(found.code in AS_STORED for found in kept):
        return kept
    again = check(row)
    if not any(CODES[found.code].severity == "error" for found in again):
        return kept
    codes = {found.code for found in again}
    return again + [found for found in kept if found.code not in codes]


def _json_line(row: Row, found: list[Found]) -> str:
    listed = [_as_json(one) for one in found]
    value = None if any(one.code == "json.invalid" for one in found) else _object(row.raw)
    if value is None:
        return json.dumps({KEY: listed, "line": row.line, "raw": row.raw}, ensure_ascii=False) + "\n"
    pair = f"{json.dumps(_free_name(set(value)))}:{json.dumps(listed, ensure_ascii=False)}"
    return with_key(row.raw, pair, first=True) + "\n"


def _as_json(found: Found) -> dict[str, Any]:
    place = {"line": found.line, "column": found.column, "path": found.path}
    return {"code": found.code, **place, "message": message(found)}


def _object(raw: str) -> dict[str, Any] | None:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _free_name(taken: set[str]) -> str:
    """`findings`, or the first of `findings_2`, … that the row does not use itself."""
    name, number = KEY, 1
    while name in taken:
        number += 1
        name = f"{KEY}_{number}"
    return name


def _csv_line(row: Row, found: list[Found]) -> str:
    told = " | ".join(_in_words(one) for one in found)
    return f"{csv_record([told]).removesuffix(chr(13) + chr(10))},{row.raw}\r\n"


def _in_words(found: Found) -> str:
    place = ":".join(str(part) for part in (found.line, found.column) if part is not None)
    return f"{place} {found.code}: {message(found)}"


def _header(version: Version) -> Record:
    """The first record of the upload."""
    limits = Limits()
    upload = Upload(version.path, limits)
    try:
        encoding = next((e for e in ("utf-16", "gb18030") if e == version.encoding), "utf-8")
        lines = (
            (number, line + b"\n", False)
            for block in blocks(utf8_chunks(upload, encoding), limits.row_bytes)  # type: ignore[arg-type]
            for number, line in enumerate(block.lines, block.first)
        )
        return next(records(lines, limits.row_bytes))
    finally:
        upload.close()


def _record(row: Row) -> Record:
    lines = (
        (number, part + b"\n", False) for number, part in enumerate(row.raw.encode().split(b"\n"), row.line)
    )
    return next(records(lines, Limits().row_bytes))
