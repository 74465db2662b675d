"""The importer's plain SQL: claiming a version, writing its rows, clearing what a broken reading left behind.

Rules that keep a version whole: only the holder of its lease writes, and looks at the lease inside every
transaction that writes; it is ready only in the transaction of its last rows; rows are shown of ready versions only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from datasets.core.findings import Finding
from datasets.models import Candidate, Version, VersionState

LEASE = timedelta(minutes=10)  # for a reader that hangs; a dead one is noticed by its process
CLEAR_ROWS = 2000  # deleted in one transaction, so that others can write in between

_ROW = "INSERT INTO datasets_row (id, version_id, line, valid, raw) VALUES (%s, %s, %s, %s, %s)"
_RESPONSE = "INSERT INTO datasets_response (row_id, candidate_id, number, raw) VALUES (%s, %s, %s, %s)"
_FINDING = """
INSERT INTO datasets_finding (version_id, code, severity, line, "column", path, repair, params)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
"""
_CLEAR_RESPONSES = """
DELETE FROM datasets_response WHERE row_id IN (
    SELECT id FROM datasets_row WHERE version_id = %s ORDER BY line LIMIT %s)
"""
_CLEAR_ROWS = """
DELETE FROM datasets_row WHERE id IN (
    SELECT id FROM datasets_row WHERE version_id = %s ORDER BY line LIMIT %s)
"""


class LeaseLost(Exception):
    """The version is not ours to write any more: somebody cancelled it, or another worker reads it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One response of one candidate; `number` counts from 1 within row and candidate, `raw` is JSON text."""

    model: str
    number: int
    raw: str


@dataclass(frozen=True, slots=True)
class NewRow:
    """A row to be written."""

    line: int
    valid: bool
    raw: str
    answers: Sequence[Answer] = ()


def claim(version_id: int, owner: str, now: datetime | None = None) -> bool:
    """Take a waiting version for reading. False if somebody else has it, or it was read already."""
    waiting = Version.objects.filter(pk=version_id, state=VersionState.WAITING)
    lease = (now or timezone.now()) + LEASE
    return bool(waiting.update(state=VersionState.READING, owner=owner, lease_until=lease))


def give_back(version_id: int, owner: str) -> bool:
    """Let the version wait again for whoever comes next. False if it was no longer ours."""
    ours = Version.objects.filter(pk=version_id, state=VersionState.READING, owner=owner)
    return bool(ours.update(state=VersionState.WAITING, owner="", lease_until=None, bytes_read=0, rows=0))


def advance(version_id: int, owner: str, *, bytes_read: int, rows: int) -> None:
    """Note how far the reading has come and renew the lease. Raises LeaseLost, which undoes the transaction."""
    ours = Version.objects.filter(pk=version_id, state=VersionState.READING, owner=owner, cancel_wanted=False)
    lease = timezone.now() + LEASE
    if not ours.update(bytes_read=bytes_read, rows=rows, lease_until=lease):
        raise LeaseLost


def note_file(version_id: int, owner: str, *, size: int, sha256: str) -> None:
    """Note that the version's file is made. Raises LeaseLost, which undoes the transaction."""
    ours = Version.objects.filter(pk=version_id, state=VersionState.READING, owner=owner, cancel_wanted=False)
    if not ours.update(size=size, sha256=sha256, bytes_read=0, lease_until=timezone.now() + LEASE):
        raise LeaseLost


def finish(version_id: int, owner: str, state: VersionState, **figures: Any) -> None:
    """End the reading; `figures` are the version's fields. Raises LeaseLost, which undoes the transaction."""
    ours = Version.objects.filter(pk=version_id, state=VersionState.READING, owner=owner)
    if state == VersionState.READY:
        ours = ours.filter(cancel_wanted=False)
    ended = {"owner": "", "lease_until": None, "finished_at": timezone.now()}
    if not ours.update(state=state, **ended, **figures):
        raise LeaseLost


class Writer:
    """Writes the rows of one version, in ascending lines. Every call stands inside the caller's transaction."""

    def __init__(self, version_id: int) -> None:
        self.version_id = version_id
        # An earlier reading of the same file may have left its candidates; they are taken over.
        found = Candidate.objects.filter(version=version_id, source="uploaded")
        self.candidates: dict[str, int] = dict(found.values_list("name", "pk"))
        self.counts: dict[int, list[int]] = {}  # candidate: rows, responses

    def write(self, rows: Sequence[NewRow]) -> None:
        ids = _new_row_ids(len(rows))
        values = [(i, self.version_id, r.line, r.valid, r.raw) for i, r in zip(ids, rows, strict=True)]
        _insert("datasets_row", _ROW, values)
        answers = []
        for row_id, row in zip(ids, rows, strict=True):
            for answer in row.answers:
                candidate = self._candidate(answer)
                answers.append((row_id, candidate, answer.number, answer.raw))
        _insert("datasets_response", _RESPONSE, answers)

    def _candidate(self, answer: Answer) -> int:
        known = self.candidates.get(answer.model)
        if known is None:
            known = Candidate.objects.create(version_id=self.version_id, name=answer.model).pk
            self.candidates[answer.model] = known
        counts = self.counts.setdefault(known, [0, 0])
        counts[0] += answer.number == 1
        counts[1] += 1
        return known

    def write_findings(self, findings: Iterable[Finding]) -> None:
        values = [
            (self.version_id, f.code, f.severity, f.line, f.column, (f.path or "")[:500], f.repair or "",
             json.dumps(f.params))
            for f in findings
        ]  # fmt: skip
        with connection.cursor() as cursor:
            cursor.executemany(_FINDING, values)

    def write_candidate_counts(self) -> None:
        for candidate, (rows, responses) in self.counts.items():
            Candidate.objects.filter(pk=candidate).update(rows=rows, responses=responses)


def _new_row_ids(count: int) -> Sequence[int]:
    """Ids for `count` new rows, so that their responses can be written without reading the rows back.

    SQLite: the transaction is IMMEDIATE, nobody else can write before it ends, so what follows the largest
    id is free. PostgreSQL: taken from the column's own sequence, which never gives a number twice.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT COALESCE(MAX(id), 0) + 1 FROM datasets_row")
            first = cursor.fetchone()[0]
            return range(first, first + count)
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence('datasets_row', 'id')) FROM generate_series(1, %s)",
            [count],
        )
        return [number for (number,) in cursor.fetchall()]


def _insert(table: str, statement: str, values: Sequence[tuple[Any, ...]]) -> None:
    """executemany on SQLite, COPY on PostgreSQL (half the time of executemany there)."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.executemany(statement, values)
            return
        columns = statement[statement.index("(") : statement.index(")") + 1]
        with cursor.copy(f"COPY {table} {columns} FROM STDIN") as copy:
            for value in values:
                copy.write_row(value)


def clear(version_id: int) -> None:
    """Delete the rows, responses and findings that a broken reading left, in slices.

    Its candidates stay, without figures: finding out that no response names one would read the whole table.
    """
    with connection.constraint_checks_disabled():
        while _clear_slice(version_id):
            pass
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM datasets_finding WHERE version_id = %s", [version_id])


def _clear_slice(version_id: int) -> bool:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_CLEAR_RESPONSES, [version_id, CLEAR_ROWS])
        cursor.execute(_CLEAR_ROWS, [version_id, CLEAR_ROWS])
        return bool(cursor.rowcount)
