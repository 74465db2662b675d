"""The importer's plain SQL: writing the rows of a version and clearing those of an aborted import.

Rules that keep a version consistent: only the holder of its job writes, and renews the job in every writing
transaction; the transaction that writes the last rows makes it ready; only rows of ready versions are shown.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, starmap
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from datasets.core.findings import Finding
from datasets.core.line_set import Lines
from datasets.core.rows import NewRow
from datasets.models import Candidate, FindingLines, Version, VersionState
from evalsite.tasks.jobs import Hold, WorkStopped

IDS_AT_ONCE = 10_000
CLEAR_ROWS = 2000  # deleted per transaction, so that others can write in between

ROWS_AT_ONCE = (250, 25, 1)  # rows per statement, largest that fits; SQLite allows 32,766 values in one

Flat = list[Any]
"""The values of all rows, concatenated."""


@dataclass(frozen=True, slots=True)
class Target:
    """A table and its columns to be written: all numbers except the last, a text as UTF-8 bytes."""

    table: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    """PostgreSQL's types of the values; `bytea` sends the bytes of a text as they are."""


_ROWS = Target(
    "datasets_row", ("id", "version_id", "line", "valid", "raw"), ("int8", "int8", "int4", "bool", "bytea")
)
_RESPONSES = Target(
    "datasets_response", ("row_id", "candidate_id", "number", "raw"), ("int8", "int8", "int2", "bytea")
)
_FINDING = """
INSERT INTO datasets_storedfinding (version_id, code, severity, line, "column", path, repair, params)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
"""
# Looks up the sequence once instead of once per id.
_TAKE_IDS = """
WITH sequence AS MATERIALIZED (SELECT pg_get_serial_sequence('datasets_row', 'id')::regclass AS name)
SELECT MIN(taken), MAX(taken)
FROM (SELECT nextval(sequence.name) AS taken FROM sequence, generate_series(1, %s)) AS ids
"""
_CLEAR_RESPONSES = """
DELETE FROM datasets_response WHERE row_id IN (
    SELECT id FROM datasets_row WHERE version_id = %s ORDER BY line LIMIT %s)
"""
_CLEAR_ROWS = """
DELETE FROM datasets_row WHERE id IN (
    SELECT id FROM datasets_row WHERE version_id = %s ORDER BY line LIMIT %s)
"""


@transaction.atomic
def advance(hold: Hold, **changes: object) -> None:
    """Store the progress of the import and renew the job.

    Raises WorkStopped, which rolls back the transaction, if the import was cancelled or another worker took over.
    """
    hold.renew()
    if not Version.objects.filter(pk=hold.pk, cancel_requested=False).update(**changes):
        raise WorkStopped


@transaction.atomic
def finish(hold: Hold, state: VersionState, **figures: Any) -> None:
    """End the import; `figures` are the version's fields. Raises WorkStopped, which rolls back the transaction."""
    hold.finish()
    ours = Version.objects.filter(pk=hold.pk)
    if state == VersionState.READY:
        ours = ours.filter(cancel_requested=False)
    if not ours.update(state=state, finished_at=timezone.now(), **figures):
        raise WorkStopped


def let_commits_wait_for_no_disk() -> None:
    """Commit without waiting for the disk: a server crash can only lose part of an unfinished import.

    The commit that makes the version ready does wait, and covers this one. (SQLite never waits: see settings.)
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit = off")


class Writer:
    """Writes the rows of one version, in ascending order of lines.

    Every method must be called in the caller's transaction, except `sending` on PostgreSQL, which calls `settle` before
    it uses the connection.
    """

    def __init__(self, version_id: int, settle: Callable[[], None] = lambda: None) -> None:
        self.version_id = version_id
        self.settle = settle
        self.ids = range(0)  # reserved, but not used for rows yet
        # An earlier import of the same file may have left its candidates; reuse them.
        stored = Candidate.uploaded.filter(version=version_id)
        self.candidates: dict[str, int] = dict(stored.values_list("name", "pk"))
        self.written: Counter[tuple[int, int]] = Counter()  # by candidate and number

    def sending(self, rows: Sequence[NewRow]) -> list[Callable[[], object]]:
        """Return calls that send the rows, to be made in order within the caller's transaction, in any thread.

        The rows count as written. Foreign keys are not checked. Until all calls are made, nothing else may use the
        connection.
        """
        version, candidates = self.version_id, self.candidates
        values: Flat = []
        answers: Flat = []
        for row_id, row in zip(self._row_ids(len(rows)), rows, strict=True):
            values += (row_id, version, row.line, int(row.valid), bytearray(row.raw))
            for model, number, text in row.answers:
                answers += (row_id, candidates.get(model) or self._new_candidate(model), number, text)
        self.written.update(zip(answers[1::4], answers[2::4], strict=True))
        driver = connection.connection  # Django's cursor would rewrite each statement and inspect each row
        targets = ((_ROWS, values), (_RESPONSES, answers))
        if connection.vendor == "sqlite":
            statements = chain.from_iterable(starmap(_statements, targets))
            return [partial(driver.executemany, *statement) for statement in statements]
        return [partial(_copy, driver, target, flat) for target, flat in targets if flat]

    def _row_ids(self, count: int) -> Sequence[int]:
        """Reserve ids for new rows, so that their responses can be written without reading the rows back."""
        if connection.vendor == "sqlite":
            return _next_ids(count)
        if len(self.ids) < count:
            self.settle()
            self.ids = _reserved_ids(max(count, IDS_AT_ONCE))
        reserved, self.ids = self.ids[:count], self.ids[count:]
        return reserved

    def _new_candidate(self, model: str) -> int:
        self.settle()
        candidate = self.candidates[model] = Candidate.objects.create(
            version_id=self.version_id, name=model
        ).pk
        return candidate

    def write_findings(self, findings: Iterable[Finding]) -> None:
        values = [
            (self.version_id, f.code, f.severity, f.line, f.column, (f.path or "")[:500], f.repair or "",
             json.dumps(f.params))
            for f in findings
        ]  # fmt: skip
        with connection.cursor() as cursor:
            cursor.executemany(_FINDING, values)

    def write_finding_lines(self, lines: Mapping[str, Lines]) -> None:
        blocks = (
            FindingLines(version_id=self.version_id, block=number, code=code, packed=packed)
            for code, lines_of_code in lines.items()
            for number, packed in lines_of_code.blocks()
        )
        FindingLines.objects.filter(version=self.version_id).delete()
        while part := list(itertools.islice(blocks, 100)):
            FindingLines.objects.bulk_create(part)

    def write_candidate_counts(self) -> None:
        responses: Counter[int] = Counter()
        for (candidate, _number), written in self.written.items():
            responses[candidate] += written
        for candidate, written in responses.items():
            Candidate.objects.filter(pk=candidate).update(rows=self.written[candidate, 1], responses=written)


def _next_ids(count: int) -> range:
    """SQLite: in an IMMEDIATE transaction there are no other writers, so ids after the largest one are free."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT COALESCE(MAX(id), 0) + 1 FROM datasets_row")
        first = cursor.fetchone()[0]
    return range(first, first + count)


def _reserved_ids(count: int) -> range:
    """PostgreSQL: take ids from the column's sequence, which never returns a number twice.

    Repeats if other sessions took some in between, leaving those ids unused.
    """
    taken = range(0)
    with connection.cursor() as cursor:
        while len(taken) != count:
            cursor.execute(_TAKE_IDS, [count])
            first, last = cursor.fetchone()
            taken = range(first, last + 1)
    return taken


def _statements(target: Target, flat: Flat) -> Iterator[tuple[str, Iterator[tuple[Any, ...]]]]:
    """Yield (statement, values of each execution), with as many rows per statement as possible.

    Starting and ending a statement costs as much as a row. Texts are passed as bytes and cast in SQL: decoding them for
    Python and encoding them for SQLite would copy them twice. The driver looks for adapters of every value's class but
    bytearray, str, int and float, which would take a tenth of the time.
    """
    start = 0
    row_values = f"({'?, ' * (len(target.columns) - 1)}CAST(? AS TEXT))"
    insert = f"INSERT INTO {target.table} ({', '.join(target.columns)}) VALUES "  # noqa: S608 - names of our own
    for rows in ROWS_AT_ONCE:
        values = rows * len(target.columns)
        places = range(start, len(flat) - values + 1, values)
        if places:
            yield insert + ", ".join([row_values] * rows), _slices(flat, places)
        start += values * len(places)


def _slices(flat: Flat, places: range) -> Iterator[tuple[Any, ...]]:
    return (tuple(flat[at : at + places.step]) for at in places)


def _copy(driver: Any, target: Target, flat: Flat) -> None:
    width = len(target.columns)
    statement = f"COPY {target.table} ({', '.join(target.columns)}) FROM STDIN (FORMAT BINARY)"
    with driver.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(target.types)
        for row in _slices(flat, range(0, len(flat), width)):
            copy.write_row(row)


def clear(version_id: int) -> None:
    """Delete the rows, responses and findings left by an aborted import, in slices.

    Its candidates stay, without counts: checking that no response refers to one would read the whole table.
    """
    with connection.constraint_checks_disabled():
        while _clear_slice(version_id):
            pass
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM datasets_storedfinding WHERE version_id = %s", [version_id])


def _clear_slice(version_id: int) -> bool:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_CLEAR_RESPONSES, [version_id, CLEAR_ROWS])
        cursor.execute(_CLEAR_ROWS, [version_id, CLEAR_ROWS])
        return bool(cursor.rowcount)
