"""Imports another tool's files: stored unchanged, previewed, and on confirmation made a version by a worker.

A FileImport holds the state: first as a draft, which survives if the user leaves the page, later as the record of what
was left out. The version's file is made from the originals, then read like an upload.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, lru_cache
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
from datasets.core.imports.encodings import warn_of_encodings
from datasets.core.imports.key_use import UNREAD
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
from evalsite.hooks import Hook
from evalsite.storage import files
from evalsite.tasks.jobs import Hold

ORIGIN = STEP = "import"
TABLE = "table"
LOOKED_AT = 200
SAMPLE_BYTES = 4 * 1024 * 1024
"""Limits of a preview: number of first records and their total size in bytes."""
READ_WHOLE = 8 * 1024 * 1024
"""Other tools' files up to this total size in bytes are previewed completely."""

take_verdicts: Hook[Callable[[FileImport, User | None], None]] = Hook(
    "datasets.versions.file_import.take_verdicts"
)
"""Called in the transaction that makes a version with imported verdicts ready."""
verdict_pages: Hook[Callable[[Version], str]] = Hook("datasets.versions.file_import.verdict_pages")
"""Returns the URL of the page about a version's imported verdicts, or ''."""


def source_files(draft: FileImport) -> list[SourceFile]:
    """The stored files; raises NotUsable if one is missing."""
    return [_source_file(entry["stored_as"], entry["name"], draft.encoding) for entry in draft.files]


def _source_file(stored_as: str, name: str, encoding: str) -> SourceFile:
    try:
        return SourceFile.of(files.local(stored_as), name, encoding)
    except FileNotFoundError:
        raise NotUsable("gone", file=name) from None


def recognised(source_files: Sequence[SourceFile]) -> Source | None:
    """The source that recognises the files; None if a single file is in one of our own formats."""
    if len(source_files) == 1 and _promises_answers(source_files[0]):
        return None
    return registry.recognise(source_files)


def _promises_answers(file: SourceFile) -> bool:
    """Whether the file starts with complete rows in our format; other tools also write plain messages."""
    with file.upload() as upload:
        guess = guess_from_beginning(upload)
    return guess is not None and guess.format != "infer_and_judge"


def draft_of_version(version: Version, user: User | None, source: str = "") -> FileImport | None:
    """The draft for an upload's file, created if missing; None if no source recognises the file."""
    draft = FileImport.objects.filter(version=version).first()
    if draft is not None:
        return draft
    if not source:
        recognised_source = recognised([SourceFile.of(version.path, version.file_name)])
        if recognised_source is None:
            return None
        source = recognised_source.name
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
    *,
    project: Project,
    name: str,
    named_files: Sequence[tuple[BinaryIO, str]],
    source: Source,
    user: User | None,
) -> FileImport:
    """Store files uploaded together as a draft. Raises ValidationError with a message; nothing is stored then."""
    entries: list[dict[str, Any]] = []
    with files.deleted_on_error() as names:
        for file, file_name in named_files:
            file.seek(0)
            stored = services.store(file)
            names.append(stored.stored_as)
            entries.append({"name": uploads.shown_name(file_name), **asdict(stored)})
        chosen = name.strip()[:200]
        return FileImport.objects.create(
            project=project,
            name=chosen or _name_of(project, entries, source),
            name_chosen=bool(chosen),
            files=entries,
            source=source.name,
            created_by=user,
        )


def _name_of(project: Project, entries: Sequence[dict[str, Any]], source: Source) -> str:
    """A single file's name, else the common part of the file names, or the tool's name if there is none."""
    names = [entry["name"] for entry in entries]
    if len(names) == 1:
        return services.name_of_file(project, names[0])
    return common_name([uploads.name_from(name) for name in names]) or source.name


def import_discard(draft: FileImport) -> bool:
    """Delete a draft, and its files unless they belong to an upload. False if it is already a version."""
    if not FileImport.objects.filter(pk=draft.pk, new_version=None).delete()[0]:
        return False
    if draft.version_id is None:
        files.delete(*(entry["stored_as"] for entry in draft.files))
    return True


def delete_old() -> None:
    """Delete old undecided drafts of files uploaded together; a draft of an upload stays with its version."""
    old = FileImport.objects.filter(created_at__lt=timezone.now() - KEPT_FOR, new_version=None, version=None)
    for draft in old.order_by("pk")[:10]:
        import_discard(draft)


@transaction.atomic
def import_commit(*, draft: FileImport, user: User | None) -> Version:
    """Create a version from the draft and save its column mapping; concurrent calls return the same version."""
    draft = FileImport.objects.select_for_update().get(pk=draft.pk)
    if draft.new_version is not None:
        return draft.new_version
    if draft.version is None:
        dataset = services.dataset_named(draft.project, _name_now(draft), user)
        parts = [{**entry, "encoding": "", "first_line": 1, "skipped": 0} for entry in draft.files]
    else:
        dataset, parts = draft.version.dataset, []
    new_version = Version(
        dataset=dataset,
        origin=ORIGIN,
        parent=draft.version,
        file_name=uploads.shown_name(f"{uploads.name_from(draft.files[0]['name'])}.jsonl"),
        stored_as=uploads.new_name(),
        size=sum(entry["size"] for entry in draft.files),
        parts=parts,
        repairs=[{"name": STEP, "value": draft.source}],
    )
    names = [entry["name"] for entry in draft.files]
    services.version_add(new_version, Action.DATASET_IMPORTED, user, source=draft.source, files=names)
    FileImport.objects.filter(pk=draft.pk).update(new_version=new_version)
    return new_version


def _name_now(draft: FileImport) -> str:
    """The data set's name; another file may have been uploaded under it since the draft was made."""
    alone = len(draft.files) == 1 and not draft.name_chosen
    return services.name_of_file(draft.project, draft.files[0]["name"]) if alone else draft.name


def write_file(version: Version, hold: Hold, progress: Progress) -> None:
    """Make the version's file; raises NotImported, or WorkStopped if another worker has the version now."""
    draft = FileImport.objects.select_related("project").get(new_version=version)
    source = registry.source_named(draft.source)
    warned = Imported(())
    try:
        with repair.new_file(version, hold, progress) as path:
            if source is None:
                raise NotUsable("no_table", file=draft.files[0]["name"])
            options = replace(options_of(draft), progress=lambda: progress(0.0))
            sources = source_files(draft)
            warn_of_encodings(sources, options.limits, warned)
            imported = warned = source.read(sources, options).beside(warned)
            places = Places()
            names = ", ".join(entry["name"] for entry in draft.files)
            answered = _write_rows(imported, path, names, places, progress)
            verdicts = _kept_verdicts(draft, imported, path.with_name("verdicts"), progress)
            _store_result(draft, imported, places, verdicts)
            version.chosen_format = "judge_only" if answered else "infer_and_judge"
            Version.objects.filter(pk=version.pk).update(chosen_format=version.chosen_format)
    except NotUsable as error:
        problem = {"code": error.code, "params": error.params}
        FileImport.objects.filter(pk=draft.pk).update(problem=problem, **_left_out(warned))
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
    why = next((entry.code for entry in imported.left_out if entry.code != UNREAD), None)
    if why is not None:
        return NotUsable("all_left_out", file=names, why=why)
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


def _store_result(draft: FileImport, imported: Imported, places: Places, verdicts: tuple[int, str]) -> None:
    FileImport.objects.filter(pk=draft.pk).update(
        places={"names": places.names, "stretches": places.ranges},
        notes=[[note.becomes, note.origin] for note in imported.notes],
        **_left_out(imported),
        verdicts=verdicts[0],
        verdicts_as=verdicts[1],
        problem={},
    )


def _left_out(imported: Imported) -> dict[str, Any]:
    """The fields of a FileImport for what was left out, or taken with a warning."""
    listed = [
        [entry.place.file, entry.place.line, entry.place.sheet, entry.code, entry.detail[:200]]
        for entry in imported.left_out
    ]
    return {"left_out": listed, "left_out_counts": imported.left_out_counts}


def hand_over_verdicts(version_id: int) -> None:
    """Pass the verdicts of a version's files to the registered receivers."""
    imports = FileImport.objects.filter(new_version=version_id).exclude(verdicts_as="")
    done = imports.select_related("new_version__dataset").first()
    if done is not None:
        for take in take_verdicts:
            take(done, done.new_version.created_by if done.new_version else None)


# Preview


def sample_of(draft: FileImport) -> SourceTable:
    """The first records of the first table; raises NotUsable."""
    return _samples_of(draft)[0][1]


def _samples_of(draft: FileImport) -> list[tuple[str, SourceTable]]:
    """Samples of all files, cached because every change of the mapping needs them."""
    names = tuple((entry["stored_as"], entry["name"]) for entry in draft.files)
    return _samples(names, draft.sheet, draft.encoding)


@lru_cache(maxsize=8)
def _samples(names: tuple[tuple[str, str], ...], sheet: str, encoding: str) -> list[tuple[str, SourceTable]]:
    options = Options(sheet=sheet, limits=uploads.limits_of_kept())
    tables = open_tables([_source_file(stored_as, name, encoding) for stored_as, name in names], options)
    return [(name, _first_of(table, len(tables))) for name, table in tables]


def _first_of(table: SourceTable, tables: int) -> SourceTable:
    """The table reduced to its share of the sample if `tables` tables are previewed."""
    left, records = SAMPLE_BYTES // tables, []
    for record in islice(table.records(), max(1, LOOKED_AT // tables)):
        left -= len(repr(record))
        records.append(record)
        if left < 0:
            break
    return replace(table, records=lambda: iter(records), looks=cache(table.looks))


def sheets_of(draft: FileImport) -> list[SheetPreview]:
    """The sheets of the first file if it is a workbook, up to the limit; else []."""
    try:
        return _sheets(draft.files[0]["stored_as"], draft.files[0]["name"])
    except NotUsable:
        return []


@lru_cache(maxsize=8)
def _sheets(stored_as: str, name: str) -> list[SheetPreview]:
    file = _source_file(stored_as, name, "")
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
    FileImport.objects.filter(pk=draft.pk, new_version=None).update(columns=columns, sheet=sheet)


def draft_encoding(draft: FileImport, encoding: str) -> None:
    """Save the encoding of the draft's texts, '' to detect it; the mapping is suggested anew."""
    draft.encoding, draft.columns = encoding, ""
    FileImport.objects.filter(pk=draft.pk, new_version=None).update(encoding=encoding, columns="")


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
    whole = sum(entry["size"] for entry in draft.files) <= READ_WHOLE
    options = options_of(draft) if whole else replace(options_of(draft), first=LOOKED_AT)
    imported = source.read(source_files(draft), options)
    rows = iter(imported.rows)
    first = list(islice(rows, LOOKED_AT))
    if not whole:
        return Preview(imported, first, whole=False)
    for _row in rows:  # verdicts are available only after all rows
        pass
    return Preview(imported, first, list(imported.verdicts))
