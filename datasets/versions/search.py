"""The search index of a version: built in the background after import, and used by the row browser.

It is a file (see core/search_index.py), built below DATA_DIR on one machine and stored where all can read it;
SearchIndex tracks its state. It is optional: without it, the browser scans a limited number of rows at a time.
"""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import Q, Sum
from django.db.models.functions import Length

from datasets.core.formats import format_called
from datasets.core.search_index import (
    Builder,
    Index,
    IndexRow,
    Unsupported,
    decoded,
    readable,
    texts_of,
)
from datasets.models import Candidate, Response, Row, SearchIndex, Version, VersionState
from evalsite import health
from evalsite.models import Job
from evalsite.storage import files
from evalsite.storage.errors import StorageProblem, StorageUnreachable, storage_problem
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold, WorkStopped

log = logging.getLogger("datasets.versions.search")

FOLDER = "search"
JOB = "index_version"
BEFORE = ("read_version", "match_answers", "compare_versions")  # jobs that go first
STORAGE_PAUSE = timedelta(minutes=1)  # before an index is built again that could not be stored
BATCH_ROWS = 500
AROUND = 60  # characters shown around a match
BATCH_CHARACTERS = 2_000_000  # maximum text held in memory at once
SPARSE = 4  # models that answered fewer than every fourth row are indexed


@dataclass(frozen=True, slots=True)
class SearchState:
    """Whether searches use the index, and if not, why. `share` is the share of rows in the index."""

    indexed: bool
    failed: bool = False
    share: float = 0.0


def index_name(version_id: int) -> str:
    """The storage name of a version's finished index."""
    return f"{FOLDER}/{version_id}.sqlite3"


def state_of(version: Version) -> SearchState:
    """The state of a version's index, for display."""
    index = SearchIndex.objects.filter(pk=version.pk).first()
    if index is None:
        return SearchState(indexed=False)
    if index.state == SearchIndex.State.READY and files.exists(index_name(version.pk)):
        return SearchState(indexed=True, share=1.0)
    share = index.rows / version.rows if version.rows else 0.0
    return SearchState(False, failed=index.state == SearchIndex.State.FAILED, share=min(share, 1.0))


def open_index(version: Version) -> Index | None:
    """The version's index, or None if there is none yet. The caller closes it."""
    if not SearchIndex.objects.filter(pk=version.pk, state=SearchIndex.State.READY).exists():
        return None
    try:
        return Index(files.local(index_name(version.pk)))
    except StorageUnreachable:
        return None
    except (FileNotFoundError, sqlite3.OperationalError):  # the file was deleted
        build_again(version)
        return None


def build_again(version: Version) -> None:
    """Have a missing or damaged index rebuilt; until then, rows are scanned."""
    again = SearchIndex.objects.filter(pk=version.pk, state=SearchIndex.State.READY)
    if again.update(state=SearchIndex.State.BUILDING, line=0, rows=0):
        index_soon(version.pk)
        log.warning("The search index of version %s is missing or damaged and will be rebuilt.", version.pk)
        files.delete(index_name(version.pk))


def facets(version: Version) -> dict[str, list[tuple[str, int]]]:
    """{field: [(value, rows)], most frequent first} for fields with few values; empty without an index."""
    index = open_index(version)
    if index is None:
        return {}
    try:
        return index.facets()
    except sqlite3.DatabaseError:
        build_again(version)
        return {}
    finally:
        index.close()


def index_soon(version_id: int) -> None:
    """Have a worker build the index once the current transaction is committed."""
    jobs.request(JOB, version_id)


def _failed(hold: Hold, version: Version, error: Exception) -> None:
    if storage_problem(error) in (StorageProblem.FILES_AWAY, StorageProblem.DISK_FULL):
        log.warning("The search index of version %s could not be stored: %s", version.pk, error)
        hold.release(STORAGE_PAUSE)
        return
    if isinstance(error, Unsupported):
        log.warning("This SQLite has no trigram index; version %s is searched without one.", version.pk)
    else:
        log.error("The search index of version %s could not be built.", version.pk, exc_info=error)
        _part(version).unlink(missing_ok=True)
    _finish(hold, state=SearchIndex.State.FAILED)


@transaction.atomic
def _finish(hold: Hold, **changes: object) -> None:
    hold.finish()
    SearchIndex.objects.filter(pk=hold.pk).update(**changes)


@jobs.job(JOB, Version, failed=_failed)
def index_version(hold: Hold, version: Version) -> None:
    """Build or continue the index of a ready version. It stops early, keeping its progress, if something else waits."""
    index, _made = SearchIndex.objects.get_or_create(version=version)
    if health.is_disk_full():
        hold.release(STORAGE_PAUSE)
    elif index.state == SearchIndex.State.BUILDING:
        _build(version, index, hold)


def _part(version: Version) -> Path:
    return (settings.DATA_DIR / index_name(version.pk)).with_suffix(".part")


def _done(version: Version) -> Path:
    return _part(version).with_suffix(".done")


def _build(version: Version, index: SearchIndex, hold: Hold) -> None:
    _part(version).parent.mkdir(parents=True, exist_ok=True, mode=settings.DATA_FOLDER_MODE)
    builder = _builder(version)
    try:
        for lines in _line_batches(version, builder.line):
            for rows in _index_rows(version, lines):
                builder.add(rows)
            hold.store(index, line=builder.line, rows=builder.rows)
            hold.check()
            if _something_waits():  # the other work goes first, then the index continues
                hold.release()
                index_soon(version.pk)
                return
            jobs.do_short_work(hold.stop)
        builder.finish(_done(version))
    finally:
        builder.close()
    size = _done(version).stat().st_size
    try:
        files.put(_done(version), index_name(version.pk), hold.renew_at_times)
    except (StorageUnreachable, WorkStopped):
        _done(version).replace(_part(version))  # keeps the finished file for the next attempt
        raise
    _finish(hold, state=SearchIndex.State.READY, size=size, line=builder.line, rows=builder.rows)


def _builder(version: Version) -> Builder:
    """Continue the started index file, or start over if it was damaged by a power cut."""
    try:
        return Builder(_part(version))
    except sqlite3.DatabaseError:
        _part(version).unlink(missing_ok=True)
        return Builder(_part(version))


def _something_waits() -> bool:
    return Job.objects.filter(kind__in=BEFORE, state=Job.State.WAITING).exists()


def _line_batches(version: Version, after: int) -> Iterator[list[int]]:
    rows = Row.objects.filter(version=version).order_by("line").values_list("line", flat=True)
    while lines := list(rows.filter(line__gt=after)[:BATCH_ROWS]):
        yield lines
        after = lines[-1]


def _index_rows(version: Version, lines: Sequence[int]) -> Iterator[list[IndexRow]]:
    """Yield index rows in groups of limited text size."""
    rare = Candidate.uploaded.filter(version=version, rows__lt=version.valid_rows / SPARSE)
    sparse = dict(rare.values_list("pk", "name"))
    fmt = format_called(version.format)
    for group in row_groups(version, lines):
        texts = texts_of(((row.line, row.raw, row.valid, row.answers) for row in group), fmt)
        names = [tuple({sparse[pk] for pk in row.candidates if pk in sparse}) for row in group]
        yield [replace(text, models=models) for text, models in zip(texts, names, strict=True)]


@dataclass(frozen=True, slots=True)
class SearchedRow:
    """A row with the JSON of its answers and the ids of their candidates."""

    line: int
    raw: str
    valid: bool
    answers: list[str]
    candidates: list[int]


def row_groups(version: Version, lines: Sequence[int]) -> Iterator[list[SearchedRow]]:
    """Rows at `lines` with answers, in order; a group holds at most BATCH_CHARACTERS of text, or one row."""
    rows = Row.objects.filter(version=version, line__in=lines).values_list("line", "pk", Length("raw"))
    sizes = [(pk, size) for _, pk, size in sorted(rows)]
    answers = Response.uploaded.filter(row__in=[pk for pk, _ in sizes]).values("row")
    more = dict(answers.annotate(all=Sum(Length("raw"))).values_list("row", "all"))
    group: list[int] = []
    characters = 0
    for pk, size in sizes:
        size += more.get(pk, 0)
        if group and characters + size > BATCH_CHARACTERS:
            yield _whole(group)
            group, characters = [], 0
        group.append(pk)
        characters += size
    if group:
        yield _whole(group)


def _whole(pks: list[int]) -> list[SearchedRow]:
    rows = Row.objects.filter(pk__in=pks).values_list("pk", "line", "raw", "valid")
    whole = {pk: SearchedRow(line, raw, valid, [], []) for pk, line, raw, valid in rows}
    answers = Response.uploaded.filter(row__in=pks).order_by("row", "candidate", "number")
    for pk, candidate, raw in answers.values_list("row", "candidate", "raw"):
        whole[pk].answers.append(raw)
        whole[pk].candidates.append(candidate)
    return [whole[pk] for pk in pks]


def texts(version: Version, lines: Sequence[int], *, fields: bool = True) -> Iterator[IndexRow]:
    """The decoded texts of the rows at `lines`, optionally with their fields."""
    for group in row_groups(version, lines):
        rows = ((row.line, row.raw, row.valid, row.answers) for row in group)
        yield from texts_of(rows, format_called(version.format), fields=fields)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A match or the character of a finding, with some characters before and after it."""

    before: str
    met: str
    after: str


def hits(version: Version, lines: Sequence[int], wanted: str) -> dict[int, Excerpt]:
    """{line: first match of a text} for the rows at `lines`."""
    hits_by_line = {}
    for group in row_groups(version, lines):
        for row in group:
            texts = readable(decoded(row.raw, row.valid), row.raw, row.answers)
            if hit := text_hit(texts, wanted):
                hits_by_line[row.line] = hit
    return hits_by_line


def text_hit(texts: Iterable[str], wanted: str) -> Excerpt | None:
    """The first case-insensitive match of `wanted`; None if it matches only after case folding."""
    pattern = re.compile(re.escape(wanted), re.IGNORECASE)
    for text in texts:
        match = pattern.search(text)
        if match:
            start, end = match.span()
            before = ("…" if start > AROUND else "") + text[max(0, start - AROUND) : start]
            after = text[end : end + AROUND] + ("…" if end + AROUND < len(text) else "")
            return Excerpt(before, match.group(), after)
    return None


def reconcile() -> None:
    """Have an index built for every version without one."""
    ready = Version.objects.filter(state=VersionState.READY)
    wanting = ready.filter(Q(search_index=None) | Q(search_index__state=SearchIndex.State.BUILDING))
    requested = Job.objects.filter(kind=JOB).values("object_id")
    for version_id in wanting.exclude(pk__in=requested).values_list("pk", flat=True)[:100]:
        index_soon(version_id)
