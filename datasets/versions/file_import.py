"""Files of other tools become a version: kept as they came, looked at before anybody agrees, then made by a worker.

What the files become stands in a FileImport: a draft first, which waits for whoever left the page; later also the
record of what was left out. The version's file is made from the originals, then read like any upload.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from django.db import transaction
from django.utils import timezone

from datasets import services, uploads
from datasets.core.detect import guess_from_beginning
from datasets.core.imports import registry
from datasets.core.imports.columns import parse
from datasets.core.imports.gathering import encoded
from datasets.core.imports.model import Imported, NotUsable, Options, Row, Source, SourceFile
from datasets.core.imports.places import Places
from datasets.core.imports.table import open_tables, read_tables
from datasets.core.imports.tables import Table
from datasets.core.imports.xlsx import SheetLook, is_xlsx, xlsx_sheets
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
"""So many first records, of so many bytes together, are looked at before anybody agrees."""
READ_WHOLE = 8 * 1024 * 1024
"""Files of other tools of so many bytes together are read whole before anybody agrees."""

take_verdicts: list[Callable[[FileImport, User | None], None]] = []
"""Called in the transaction that makes a version ready whose files held verdicts: see JudgingConfig.ready."""
verdict_pages: list[Callable[[Version], str]] = []
"""Gives the address of the page about the verdicts that came with a version, '' if none did: see there, too."""


def source_files(draft: FileImport) -> list[SourceFile]:
    """The files as they were kept; raises NotUsable where one of them is gone."""
    return [_source_file(one["stored_as"], one["name"]) for one in draft.files]


def _source_file(stored_as: str, name: str) -> SourceFile:
    try:
        return SourceFile.of(files.local(stored_as), name)
    except FileNotFoundError:
        raise NotUsable("gone", file=name) from None


def recognised(given: Sequence[SourceFile], native: bool) -> Source | None:
    """The source of the files; where `native`, only of a file that none of the four formats fits."""
    if native and len(given) == 1 and _promises_answers(given[0]):
        return None
    return registry.recognise(given)


def _promises_answers(file: SourceFile) -> bool:
    """Whether it begins as a whole row of ours; messages alone are what other tools write too."""
    with closing(file.upload()) as upload:
        guess = guess_from_beginning(upload)
    return guess is not None and guess.format != "infer_and_judge"


def draft_of_version(version: Version, user: User | None, source: str = "") -> FileImport | None:
    """The draft about an upload's file, made if there is none; None where no source knows the file."""
    found = FileImport.objects.filter(version=version).first()
    if found is not None:
        return found
    if not source:
        known = recognised([SourceFile.of(version.path, version.file_name)], native=True)
        if known is None:
            return None
        source = known.name
    own = {
        "name": version.file_name,
        "stored_as": version.stored_as,
        "size": version.size,
        "sha256": version.sha256,
    }
    common = {"project": version.dataset.project, "name": version.dataset.name, "files": [own]}
    return FileImport.objects.get_or_create(
        version=version, defaults={**common, "source": source, "created_by": user}
    )[0]


def draft_of_files(
    *, project: Project, name: str, given: Sequence[tuple[BinaryIO, str]], source: Source, user: User | None
) -> FileImport:
    """Keeps files that came together. Raises ValidationError with a sentence; nothing is left of them then."""
    kept: list[dict[str, Any]] = []
    with ExitStack() as undo:
        for file, file_name in given:
            file.seek(0)
            stored = services.store(file)
            undo.callback(files.delete, stored.stored_as)
            kept.append({"name": uploads.shown_name(file_name), "stored_as": stored.stored_as})
            kept[-1] |= {"size": stored.size, "sha256": stored.sha256}
        name = name.strip()[:200] or _name_of(kept, source)
        draft = FileImport.objects.create(
            project=project, name=name, files=kept, source=source.name, created_by=user
        )
        undo.pop_all()
    return draft


def _name_of(kept: Sequence[dict[str, Any]], source: Source) -> str:
    """What the names of the files have in common; the tool's name where that is nothing."""
    stems = [uploads.name_from(one["name"]) for one in kept]
    return stems[0] if len(stems) == 1 else common_name(stems) or source.name


def import_discard(draft: FileImport) -> bool:
    """Forget a draft, and the files that belong to nothing else. False if it was made into a version already."""
    with transaction.atomic():
        if not FileImport.objects.filter(pk=draft.pk, made=None).delete()[0]:
            return False
    if draft.version_id is None:
        files.delete(*(one["stored_as"] for one in draft.files))
    return True


def reconcile() -> None:
    """Forget files that came together and that nobody decided on; a draft about an upload stays with its version."""
    old = FileImport.objects.filter(created_at__lt=timezone.now() - KEPT_FOR, made=None, version=None)
    for draft in old.order_by("pk")[:10]:
        import_discard(draft)


@transaction.atomic
def import_commit(*, draft: FileImport, user: User | None) -> Version:
    """Has the files made into a version; of two at once both get the same. What was chosen for columns is kept."""
    draft = FileImport.objects.select_for_update().get(pk=draft.pk)
    if draft.made is not None:
        return draft.made
    dataset = (
        draft.version.dataset if draft.version else services.dataset_named(draft.project, draft.name, user)
    )
    several = draft.version is None
    made = Version(
        dataset=dataset,
        origin=ORIGIN,
        parent=draft.version,
        file_name=uploads.shown_name(f"{uploads.name_from(draft.files[0]['name'])}.jsonl"),
        stored_as=uploads.new_name(),
        size=sum(one["size"] for one in draft.files),
        parts=[{**one, "encoding": "", "first_line": 1, "skipped": 0} for one in draft.files]
        if several
        else [],
        repairs=[{"name": STEP, "value": draft.source}],
    )
    names = [one["name"] for one in draft.files]
    services.version_add(made, Action.DATASET_IMPORTED, user, source=draft.source, files=names)
    FileImport.objects.filter(pk=draft.pk).update(made=made)
    return made


def write_file(version: Version, owner: str, progress: Progress) -> None:
    """Make the version's file; raises NotImported, and WorkStopped if the version is not `owner`'s any more."""
    draft = FileImport.objects.select_related("project").get(made=version)
    source = registry.source_named(draft.source)
    try:
        with repair.work_folder(version) as path:
            if source is None:
                raise NotUsable("no_table", file=draft.files[0]["name"])
            options = replace(options_of(draft), progress=lambda: progress(0.0))
            imported = source.read(source_files(draft), options)
            places = Places()
            names = ", ".join(one["name"] for one in draft.files)
            answered = _write_rows(imported, path, names, places, progress)
            _note(
                draft, imported, places, _kept_verdicts(draft, imported, path.with_name("verdicts"), progress)
            )
            version.chosen_format = "judge_only" if answered else "infer_and_judge"
            Version.objects.filter(pk=version.pk).update(chosen_format=version.chosen_format)
            repair.take_file(version, owner, path, progress)
    except NotUsable as error:
        FileImport.objects.filter(pk=draft.pk).update(problem={"code": error.code, "params": error.params})
        raise NotImported(error.code) from error


def options_of(draft: FileImport) -> Options:
    """What was chosen, and how much of a file is read."""
    return Options(columns=draft.columns, sheet=draft.sheet, limits=uploads.limits_of_kept())


def _write_rows(imported: Imported, path: Path, names: str, places: Places, progress: Progress) -> bool:
    """Whether any row has an answer. Raises NotUsable where there is no row, or more than is kept."""
    limits, answered, rows, room = uploads.limits_of_kept(), False, 0, uploads.limits_of_kept().file_bytes
    with path.open("wb") as file:
        for row in imported.rows:
            rows += 1
            places.add(row.place)
            answered = answered or "model_outputs" in row.data
            room -= file.write(encoded(row.data) + b"\n")
            if room < 0 or rows > limits.rows:
                raise NotUsable("too_large_unpacked", file=row.place.file)
            if rows % 200 == 0:
                progress(0.0)
    if not rows:
        raise _no_rows(imported, names)
    return answered


def _no_rows(imported: Imported, names: str) -> NotUsable:
    """With the first reason where everything was left out."""
    if imported.left_out:
        return NotUsable("all_left_out", file=names, why=imported.left_out[0].code)
    return NotUsable("no_rows", file=names)


def _kept_verdicts(draft: FileImport, imported: Imported, path: Path, progress: Progress) -> tuple[int, str]:
    """How many there are, and under which name they are kept as a results file; '' where there is none."""
    count = 0
    with path.open("wb") as file:
        for count, verdict in enumerate(imported.verdicts, 1):
            file.write(encoded(verdict) + b"\n")
            if count % 1000 == 0:
                progress(0.5)
    if draft.verdicts_as:
        files.delete(draft.verdicts_as)  # of an attempt that was broken off
    if not count:
        return 0, ""
    name = uploads.new_name()
    files.put(path, name)
    return count, name


def _note(draft: FileImport, imported: Imported, places: Places, verdicts: tuple[int, str]) -> None:
    FileImport.objects.filter(pk=draft.pk).update(
        places={"names": places.names, "stretches": places.stretches},
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
    """Gives the verdicts of a version's files to those who store them."""
    done = (
        FileImport.objects.filter(made=version_id)
        .exclude(verdicts_as="")
        .select_related("made__dataset")
        .first()
    )
    if done is not None:
        for take in take_verdicts:
            take(done, done.made.created_by if done.made else None)


# What is looked at before anybody agrees


def sample_of(draft: FileImport) -> Table:
    """The first records of a table, of several those of the first; raises NotUsable."""
    return _samples_of(draft)[0][1]


def _samples_of(draft: FileImport) -> list[tuple[str, Table]]:
    """By files. They are kept in memory, as each change of a mapping asks for them."""
    return _samples(tuple((one["stored_as"], one["name"]) for one in draft.files), draft.sheet)


@lru_cache(maxsize=8)
def _samples(given: tuple[tuple[str, str], ...], sheet: str) -> list[tuple[str, Table]]:
    options = Options(sheet=sheet, limits=uploads.limits_of_kept())
    tables = open_tables([_source_file(stored_as, name) for stored_as, name in given], options)
    return [(name, _first_of(table, len(tables))) for name, table in tables]


def _first_of(table: Table, tables: int) -> Table:
    """A table's first records, its share of those that are looked at of so many tables."""
    room, kept = SAMPLE_BYTES // tables, []
    for record in islice(table.records(), max(1, LOOKED_AT // tables)):
        room -= len(repr(record))
        kept.append(record)
        if room < 0:
            break
    return replace(table, records=lambda: iter(kept))


def sheets_of(draft: FileImport) -> list[SheetLook]:
    """The sheets of a workbook, of several those of the first, as far as they are looked at; [] of what is none."""
    try:
        return _sheets(draft.files[0]["stored_as"], draft.files[0]["name"])
    except NotUsable:
        return []


@lru_cache(maxsize=8)
def _sheets(stored_as: str, name: str) -> list[SheetLook]:
    file = _source_file(stored_as, name)
    return xlsx_sheets(file, uploads.limits_of_kept()) if is_xlsx(file) else []


def header_of(columns: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(sorted(columns)).encode("utf-8", "surrogatepass")).hexdigest()


def saved_columns(draft: FileImport, columns: Sequence[str]) -> str:
    """What was chosen for another table with this header; '' if nothing was."""
    saved = SavedColumns.objects.filter(project=draft.project, header=header_of(columns)).first()
    return saved.columns if saved else ""


def columns_save(draft: FileImport, columns: Sequence[str]) -> None:
    """Keeps what was chosen for the next table with this header."""
    SavedColumns.objects.update_or_create(
        project=draft.project, header=header_of(columns), defaults={"columns": draft.columns}
    )


def draft_change(draft: FileImport, *, columns: str, sheet: str) -> None:
    """Keeps what was chosen so far; raises NotUsable where it cannot be understood."""
    parse(columns) if columns else None
    draft.columns, draft.sheet = columns, sheet
    FileImport.objects.filter(pk=draft.pk, made=None).update(columns=columns, sheet=sheet)


@dataclass(frozen=True, slots=True)
class Look:
    """What files would become: the first rows, and of `whole` ones everything that is left out, and all verdicts."""

    imported: Imported
    rows: list[Row]
    verdicts: list[dict[str, Any]]
    whole: bool


def looked_at(draft: FileImport) -> Look:
    """What the first records would become, and of small files all; raises NotUsable."""
    source = registry.source_named(draft.source)
    if draft.source == TABLE:
        samples = _samples_of(draft)
        imported = read_tables(samples, options_of(draft))
        share = max(1, LOOKED_AT // len(samples))
        whole = all(len(list(sample.records())) < share for _name, sample in samples)
        return Look(imported, list(imported.rows), list(imported.verdicts), whole)
    if source is None:
        raise NotUsable("no_table", file=draft.files[0]["name"])
    whole = sum(one["size"] for one in draft.files) <= READ_WHOLE
    options = options_of(draft) if whole else replace(options_of(draft), first=LOOKED_AT)
    imported = source.read(source_files(draft), options)
    rows = iter(imported.rows)
    first = list(islice(rows, LOOKED_AT))
    if not whole:
        return Look(imported, first, [], whole=False)
    for _row in rows:  # verdicts come after all rows
        pass
    return Look(imported, first, list(imported.verdicts), whole=True)
