"""Imports another tool's files: stored unchanged, previewed, and on confirmation made a version by a worker.

A FileImport holds the state: first as a draft, which survives if the user leaves the page, later as the record of what
was left out. The version's file is made from the originals, then read like an upload.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from django.db import transaction
from django.utils import timezone

from datasets import services, uploads
from datasets.core.detect import guess_from_beginning
from datasets.core.imports import registry
from datasets.core.imports.collector import encoded
from datasets.core.imports.columns import parse
from datasets.core.imports.model import Imported, ImportedRow, NotUsable, Options, Source, SourceFile
from datasets.core.imports.places import Places
from datasets.core.imports.table import open_tables, read_tables
from datasets.core.imports.tables import SourceTable
from datasets.core.imports.xlsx import SheetPreview, is_xlsx, xlsx_sheets
from datasets.importing.worker import NotImported, Progress
from datasets.models import FileImport, SavedColumns, Version
from datasets.versions import repair
from datasets.versions.attach import KEPT_FOR
from datasets.versions.joined_parts import common_name
from evalsite.accounts.models import Project, User
from evalsite.audit import Action
from evalsite.storage import files

ORIGIN = STEP = "import"
TABLE = "table"
LOOKED_AT = 200
SAMPLE_BYTES = 4 * 1024 * 1024
"""Limits of a preview: number of first records and their total size in bytes."""
READ_WHOLE = 8 * 1024 * 1024
"""Other tools' files up to this total size in bytes are previewed completely."""

take_verdicts: list[Callable[[FileImport, User | None], None]] = []
"""Called in the transaction that makes a version with imported verdicts ready. See JudgingConfig.ready."""
verdict_pages: list[Callable[[Version], str]] = []
"""Returns the URL of the page about a version's imported verdicts, or ''. See JudgingConfig.ready."""


def source_files(draft: FileImport) -> list[SourceFile]:
    """The stored files; raises NotUsable if one is missing."""
    return [_source_file(one["stored_as"], one["name"]) for one in draft.files]


def _source_file(stored_as: str, name: str) -> SourceFile:
    try:
        return SourceFile.of(files.local(stored_as), name)
    except FileNotFoundError:
        raise NotUsable("gone", file=name) from None


def recognised(given: Sequence[SourceFile]) -> Source | None:
    """The source that recognises the files; None if a single file is in one of our own formats."""
    if len(given) == 1 and _promises_answers(given[0]):
        return None
    return registry.recognise(given)


def _promises_answers(file: SourceFile) -> bool:
    """Whether the file starts with complete rows in our format; other tools also write plain messages."""
    with file.upload() as upload:
        guess = guess_from_beginning(upload)
    return guess is not None and guess.format != "infer_and_judge"


def draft_of_version(version: Version, user: User | None, source: str = "") -> FileImport | None:
    """The draft for an upload's file, created if missing; None if no source recognises the file."""
    found = FileImport.objects.filter(version=version).first()
    if found is not None:
        return found
    if not source:
        known = recognised([SourceFile.of(version.path, version.file_name)])
        if known is None:
            return None
        source = known.name
    stored = services.Stored(version.stored_as, version.size, version.sha256)
    draft, _made = FileImport.objects.get_or_create(
        version=version,
        defaults={
            "project": version.dataset.project,
            "name": version.dataset.name,
            "files": [{"name": version.file_name, **asdict(stored)}],
            "source": source,
            "created_by": user,
        },
    )
    return draft


def draft_of_files(
    *, project: Project, name: str, given: Sequence[tuple[BinaryIO, str]], source: Source, user: User | None
) -> FileImport:
    """Store files uploaded together as a draft. Raises ValidationError with a message; nothing is stored then."""
    kept: list[dict[str, Any]] = []
    with files.deleted_on_error() as names:
        for file, file_name in given:
            file.seek(0)
            stored = services.store(file)
            names.append(stored.stored_as)
            kept.append({"name": uploads.shown_name(file_name), **asdict(stored)})
        name = name.strip()[:200] or _name_of(kept, source)
        return FileImport.objects.create(
            project=project, name=name, files=kept, source=source.name, created_by=user
        )


def _name_of(kept: Sequence[dict[str, Any]], source: Source) -> str:
    """The common part of the file names, or the tool's name if there is none."""
    stems = [uploads.name_from(one["name"]) for one in kept]
    return stems[0] if len(stems) == 1 else common_name(stems) or source.name


def import_discard(draft: FileImport) -> bool:
    """Delete a draft, and its files unless they belong to an upload. False if it is already a version."""
    if not FileImport.objects.filter(pk=draft.pk, made=None).delete()[0]:
        return False
    if draft.version_id is None:
        files.delete(*(one["stored_as"] for one in draft.files))
    return True


def reconcile() -> None:
    """Delete old undecided drafts of files uploaded together; a draft of an upload stays with its version."""
    old = FileImport.objects.filter(created_at__lt=timezone.now() - KEPT_FOR, made=None, version=None)
    for draft in old.order_by("pk")[:10]:
        import_discard(draft)


@transaction.atomic
def import_commit(*, draft: FileImport, user: User | None) -> Version:
    """Create a version from the draft and save its column mapping; concurrent calls return the same version."""
    draft = FileImport.objects.select_for_update().get(pk=draft.pk)
    if draft.made is not None:
        return draft.made
    if draft.version is None:
        dataset = services.dataset_named(draft.project, draft.name, user)
        parts = [{**one, "encoding": "", "first_line": 1, "skipped": 0} for one in draft.files]
    else:
        dataset, parts = draft.version.dataset, []
    made = Version(
        dataset=dataset,
        origin=ORIGIN,
        parent=draft.version,
        file_name=uploads.shown_name(f"{uploads.name_from(draft.files[0]['name'])}.jsonl"),
        stored_as=uploads.new_name(),
        size=sum(one["size"] for one in draft.files),
        parts=parts,
        repairs=[{"name": STEP, "value": draft.source}],
    )
    names = [one["name"] for one in draft.files]
    services.version_add(made, Action.DATASET_IMPORTED, user, source=draft.source, files=names)
    FileImport.objects.filter(pk=draft.pk).update(made=made)
    return made


def write_file(version: Version, owner: str, progress: Progress) -> None:
    """Make the version's file; raises NotImported, or WorkStopped if `owner` lost the version."""
    draft = FileImport.objects.select_related("project").get(made=version)
    source = registry.source_named(draft.source)
    try:
        with repair.new_file(version, owner, progress) as path:
            if source is None:
                raise NotUsable("no_table", file=draft.files[0]["name"])
            options = replace(options_of(draft), progress=lambda: progress(0.0))
            imported = source.read(source_files(draft), options)
            places = Places()
            names = ", ".join(one["name"] for one in draft.files)
            answered = _write_rows(imported, path, names, places, progress)
            verdicts = _kept_verdicts(draft, imported, path.with_name("verdicts"), progress)
            _note(draft, imported, places, verdicts)
            version.chosen_format = "judge_only" if answered else "infer_and_judge"
            Version.objects.filter(pk=version.pk).update(chosen_format=version.chosen_format)
    except NotUsable as error:
        FileImport.objects.filter(pk=draft.pk).update(problem={"code": error.code, "params": error.params})
        raise NotImported(error.code) from error


def options_of(draft: FileImport) -> Options:
    """The draft's options and the file limits."""
    return Options(columns=draft.columns, sheet=draft.sheet, limits=uploads.limits_of_kept())


def _write_rows(imported: Imported, path: Path, names: str, places: Places, progress: Progress) -> bool:
    """Write the rows; return whether any has an answer. Raises NotUsable if there are no rows or too many."""
    limits, answered, rows = uploads.limits_of_kept(), False, 0
    left = limits.file_bytes
    with path.open("wb") as file:
        for row in imported.rows:
            rows += 1
            places.add(row.place)
            answered = answered or "model_outputs" in row.data
            left -= file.write(encoded(row.data) + b"\n")
            if left < 0 or rows > limits.rows:
                raise NotUsable("too_large_unpacked", file=row.place.file)
            if rows % 200 == 0:
                progress(0.0)
    if not rows:
        raise _no_rows(imported, names)
    return answered


def _no_rows(imported: Imported, names: str) -> NotUsable:
    """The error if nothing was imported, with the first reason if everything was left out."""
    if imported.left_out:
        return NotUsable("all_left_out", file=names, why=imported.left_out[0].code)
    return NotUsable("no_rows", file=names)


def _kept_verdicts(draft: FileImport, imported: Imported, path: Path, progress: Progress) -> tuple[int, str]:
    """Store the verdicts as a results file; return their number and its name, '' if there are none."""
    count = 0
    with path.open("wb") as file:
        for count, verdict in enumerate(imported.verdicts, 1):
            file.write(encoded(verdict) + b"\n")
            if count % 1000 == 0:
                progress(0.5)
    if draft.verdicts_as:
        files.delete(draft.verdicts_as)  # left by an aborted attempt
    if not count:
        return 0, ""
    name = uploads.new_name()
    files.put(path, name)
    return count, name


def _note(draft: FileImport, imported: Imported, places: Places, verdicts: tuple[int, str]) -> None:
    FileImport.objects.filter(pk=draft.pk).update(
        places={"names": places.names, "stretches": places.ranges},
        notes=[[one.becomes, one.origin] for one in imported.notes],
        left_out=[
            [one.place.file, one.place.line, one.place.sheet, one.code, one.detail[:200]]
            for one in imported.left_out
        ],
        left_out_counts=imported.left_out_counts,
        verdicts=verdicts[0],
        verdicts_as=verdicts[1],
        problem={},
    )


def hand_over_verdicts(version_id: int) -> None:
    """Pass the verdicts of a version's files to the registered receivers."""
    imports = FileImport.objects.filter(made=version_id).exclude(verdicts_as="")
    done = imports.select_related("made__dataset").first()
    if done is not None:
        for take in take_verdicts:
            take(done, done.made.created_by if done.made else None)


# Preview


def sample_of(draft: FileImport) -> SourceTable:
    """The first records of the first table; raises NotUsable."""
    return _samples_of(draft)[0][1]


def _samples_of(draft: FileImport) -> list[tuple[str, SourceTable]]:
    """Samples of all files, cached because every change of the mapping needs them."""
    return _samples(tuple((one["stored_as"], one["name"]) for one in draft.files), draft.sheet)


@lru_cache(maxsize=8)
def _samples(given: tuple[tuple[str, str], ...], sheet: str) -> list[tuple[str, SourceTable]]:
    options = Options(sheet=sheet, limits=uploads.limits_of_kept())
    tables = open_tables([_source_file(stored_as, name) for stored_as, name in given], options)
    return [(name, _first_of(table, len(tables))) for name, table in tables]


def _first_of(table: SourceTable, tables: int) -> SourceTable:
    """The table reduced to its share of the sample if `tables` tables are previewed."""
    left, kept = SAMPLE_BYTES // tables, []
    for record in islice(table.records(), max(1, LOOKED_AT // tables)):
        left -= len(repr(record))
        kept.append(record)
        if left < 0:
            break
    return replace(table, records=lambda: iter(kept))


def sheets_of(draft: FileImport) -> list[SheetPreview]:
    """The sheets of the first file if it is a workbook, up to the limit; else []."""
    try:
        return _sheets(draft.files[0]["stored_as"], draft.files[0]["name"])
    except NotUsable:
        return []


@lru_cache(maxsize=8)
def _sheets(stored_as: str, name: str) -> list[SheetPreview]:
    file = _source_file(stored_as, name)
    return xlsx_sheets(file, uploads.limits_of_kept()) if is_xlsx(file) else []


def header_of(columns: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(sorted(columns)).encode("utf-8", "surrogatepass")).hexdigest()


def saved_columns(draft: FileImport, columns: Sequence[str]) -> str:
    """The mapping saved for a table with this header, or ''."""
    saved = SavedColumns.objects.filter(project=draft.project, header=header_of(columns)).first()
    return saved.columns if saved else ""


def columns_save(draft: FileImport, columns: Sequence[str]) -> None:
    """Save the mapping for the next table with this header."""
    SavedColumns.objects.update_or_create(
        project=draft.project, header=header_of(columns), defaults={"columns": draft.columns}
    )


def draft_change(draft: FileImport, *, columns: str, sheet: str) -> None:
    """Save the draft's mapping and sheet; raises NotUsable if the mapping cannot be parsed."""
    if columns:
        parse(columns)
    draft.columns, draft.sheet = columns, sheet
    FileImport.objects.filter(pk=draft.pk, made=None).update(columns=columns, sheet=sheet)


@dataclass(frozen=True, slots=True)
class Preview:
    """The first rows and, if `whole`, everything left out and all verdicts."""

    imported: Imported = field(default_factory=lambda: Imported(()))
    rows: list[ImportedRow] = field(default_factory=list)
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    whole: bool = True


def preview(draft: FileImport) -> Preview:
    """Preview the first records, or small files completely; raises NotUsable."""
    source = registry.source_named(draft.source)
    if draft.source == TABLE:
        samples = _samples_of(draft)
        imported = read_tables(samples, options_of(draft))
        share = max(1, LOOKED_AT // len(samples))
        whole = all(len(list(sample.records())) < share for _name, sample in samples)
        return Preview(imported, list(imported.rows), list(imported.verdicts), whole)
    if source is None:
        raise NotUsable("no_table", file=draft.files[0]["name"])
    whole = sum(one["size"] for one in draft.files) <= READ_WHOLE
    options = options_of(draft) if whole else replace(options_of(draft), first=LOOKED_AT)
    imported = source.read(source_files(draft), options)
    rows = iter(imported.rows)
    first = list(islice(rows, LOOKED_AT))
    if not whole:
        return Preview(imported, first, whole=False)
    for _row in rows:  # verdicts are available only after all rows
        pass
    return Preview(imported, first, list(imported.verdicts))
