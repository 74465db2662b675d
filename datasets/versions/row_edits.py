"""Manual row edits: collected as drafts for a version, which stays unchanged, until a new version is made from them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Exists, F, Max, OuterRef, QuerySet
from django.utils.translation import gettext as _

from datasets import uploads
from datasets.core.csv_reader import CsvTable, records_in
from datasets.core.decode import Upload
from datasets.core.findings import Finding
from datasets.core.formats import format_called
from datasets.core.lines import lines_at
from datasets.importing.worker import Progress
from datasets.models import Dataset, Row, RowEdit, Version, VersionState
from datasets.selectors import encoding_of, line_after
from datasets.services import version_add, version_from
from datasets.versions import invalid_rows, repair
from datasets.versions.row_fields import (
    Replacement,
    as_typed,
    blank_like,
    findings_in,
    one_line,
    replaced,
)
from datasets.versions.row_findings import codes_at
from evalsite.accounts.models import User
from evalsite.audit import Action
from evalsite.storage import files
from evalsite.tasks.jobs import Hold
from evalsite.web.numbers import LARGEST

ORIGIN = "edit"
NEW = 0
"""The line of a row that is not saved yet; saving assigns it a line after all lines of the file."""
LONGEST = 300_000  # characters of an editable row; a form takes 4 MB, and a character up to 9 bytes of it
LINES_RECORDED = 50


class EditConflict(Exception):
    """Someone else edited the row, or made a version with its edit, since the form was opened."""


@dataclass(frozen=True, slots=True)
class FileRow:
    """A row in its version's file and its number of lines, 0 for a new row; `table`: the header of a CSV."""

    version: Version
    line: int
    lines: int
    text: str
    table: CsvTable | None

    def findings(self, text: str) -> list[Finding]:
        """The findings that `text` would have in place of the row."""
        fmt = format_called(self.version.format)
        return findings_in(text, self.line, fmt, uploads.limits(), self.table)


def can_edit(version: Version) -> bool:
    """Whether the version has rows to edit and its file still exists."""
    return (
        version.state == VersionState.READY
        and version.rows > 0
        and not version.is_spread
        and version.file_is_kept
    )


def file_row(version: Version, line: int) -> FileRow:
    """The row at a line, read from the file.

    Reading starts at a landmark at most 4 MB before the line, once the file was read up to there; an archive is read
    from its beginning. Raises ValidationError with a message if the row cannot be edited, Row.DoesNotExist if there is
    none.
    """
    table = invalid_rows.csv_table(version)
    if line == NEW or RowEdit.objects.filter(version=version, line=line, lines=0).exists():
        return FileRow(version, line, 0, "", table)
    Row.objects.only("pk").get(version=version, line=line)
    if "row.too_large" in codes_at(version, [line]).get(line, set()):
        raise _too_long()
    limits, until = uploads.limits_of_kept(), line + 1
    if table:
        until = line_after(version, line) or line + limits.row_bytes
    text = lines_at(version.path, encoding_of(version), line, until, limits).replace("\0", "\ufffd")
    if len(text) > LONGEST:
        raise _too_long()
    if table:
        record = records_in(text, line, table.delimiter)[0]
        return FileRow(version, line, record.more + 1, record.text, table)
    return FileRow(version, line, 1, text.strip(), None)


def _too_long() -> ValidationError:
    text = _(
        "This row is too long to edit in the browser (limit: %(most)s characters). Edit the file "
        "and upload it as a new version."
    )
    return ValidationError(text % {"most": f"{LONGEST:,}"})


def blank_row(row: FileRow) -> str:
    """The template for a new row: the parts of the first valid row, empty."""
    first = line_after(row.version, 0, valid=True)
    return blank_like(file_row(row.version, first).text, row.table) if first is not None else ""


def last_edit(version: Version, line: int) -> RowEdit | None:
    """The latest edit of a line, whatever its state."""
    edits = RowEdit.objects.filter(version=version, line=line).select_related("author", "new_version")
    return edits.order_by("-number").first()


def _last_of_lines(version: Version) -> QuerySet[RowEdit]:
    later = RowEdit.objects.filter(
        version=OuterRef("version"), line=OuterRef("line"), number__gt=OuterRef("number")
    )
    return RowEdit.objects.filter(~Exists(later), version=version, new_version=None).order_by("line")


def open_edits(version: Version) -> QuerySet[RowEdit]:
    """The edits that go into the next version, by line."""
    return _last_of_lines(version).filter(discarded=False).select_related("author")


def newest(version: Version) -> int:
    """The id of the latest edit, including discards; 0 if there is none. It grows with every change of the drafts."""
    return RowEdit.objects.filter(version=version).aggregate(last=Max("pk"))["last"] or 0


def discarded_edits(version: Version) -> QuerySet[RowEdit]:
    """Discarded edits that can be restored, latest first."""
    discarded = _last_of_lines(version).filter(discarded=True).exclude(text=F("before"))
    return discarded.select_related("author").order_by("-edited_at", "-pk")


def row_edit_save(*, row: FileRow, text: str, state: str, user: User | None) -> RowEdit | None:
    """Save an edited row; None if it equals the row in the file and no edit of it is open.

    `state` is the state of the edit that the form was based on ("" for none). Raises EditConflict if another edit was
    saved since, ValidationError with a message if the text cannot be a row.
    """
    text = _as_row(row, text)
    if row.line == NEW:
        return _add_row(row, text, user)
    last = _last_in_state(row, state)
    unchanged = text == row.text
    if unchanged and (last is None or not last.is_open):
        return None
    return add_edit(row, last, text, user, discarded=unchanged)


def row_delete(*, row: FileRow, state: str, user: User | None) -> RowEdit:
    """Remove a row from the next version. Raises EditConflict as above."""
    last = _last_in_state(row, state)
    added = row.lines == 0
    return add_edit(row, last, last.text if last and added else "", user, discarded=added)


def _last_in_state(row: FileRow, state: str) -> RowEdit | None:
    last = last_edit(row.version, row.line)
    if (last.state if last else "") != state:
        raise EditConflict
    return last


def _add_row(row: FileRow, text: str, user: User | None) -> RowEdit:
    """Add a row at the end. Raises EditConflict if several users add rows at the same moment."""
    for _attempt in range(4):
        sources = [Row.objects.filter(version=row.version), RowEdit.objects.filter(version=row.version)]
        line = max(rows.aggregate(last=Max("line"))["last"] or 0 for rows in sources) + 1
        with suppress(EditConflict):
            return add_edit(replace(row, line=line), None, text, user, discarded=False)
    raise EditConflict


def _as_row(row: FileRow, text: str) -> str:
    """Normalise typed text for the file. Raises ValidationError."""
    if "\0" in text:
        raise ValidationError(_("A row cannot hold the character NUL."))
    if not text.strip():
        raise ValidationError(_("A row cannot be blank."))
    if len(text) > LONGEST:
        raise ValidationError(
            _("Rows edited here can have at most %(most)s characters.") % {"most": f"{LONGEST:,}"}
        )
    text = as_typed(row.text, text)
    if row.table:
        return _as_record(row, text.rstrip("\r\n"))
    text = one_line(text)
    if "\n" in text:
        raise ValidationError(
            _("This text spans several lines and is not valid JSON. Fix it, or put it on one line.")
        )
    return text


def _as_record(row: FileRow, text: str) -> str:
    """Check that a record is one; several are allowed if an unclosed quote had swallowed those that follow."""
    sign = row.table.delimiter if row.table else ","
    records = records_in(text, delimiter=sign)
    before = records_in(row.text, delimiter=sign)[:1] if row.text else []
    if records[-1].quote is not None and text != row.text:
        raise ValidationError(_("Unclosed quote: the rows that follow would become part of this field."))
    if len(records) > 1 and all(record.quote is None for record in before):
        raise ValidationError(
            _("These are several records. Put a field with a line break into double quotes.")
        )
    return text


def add_edit(row: FileRow, last: RowEdit | None, text: str, user: User | None, *, discarded: bool) -> RowEdit:
    """Add the edit of a row after `last`. Raises EditConflict if there already is one."""
    try:
        with transaction.atomic():  # the second of two concurrent edits violates the unique number
            return RowEdit.objects.create(
                version=row.version,
                line=row.line,
                lines=row.lines,
                number=last.number + 1 if last else 1,
                before=row.text,
                text=text,
                discarded=discarded,
                author=user,
            )
    except IntegrityError:
        raise EditConflict from None


def row_edit_decide(
    *, version: Version, line: int, state: str, discarded: bool, user: User | None
) -> RowEdit:
    """Discard or restore the last edit of a line. Raises EditConflict if it is no longer in that `state`."""
    last = last_edit(version, line)
    if last is None or last.state != state or last.new_version_id or last.discarded == discarded:
        raise EditConflict
    row = FileRow(version, line, last.lines, last.before, None)
    return add_edit(row, last, last.text, user, discarded=discarded)


@transaction.atomic
def version_edit(*, version: Version, user: User | None, until: int = LARGEST) -> Version | None:
    """Create a version from the open edits (up to the id `until`) in the background; None if there are none.

    Concurrent calls wait for each other, so that an edit goes into only one version.
    """
    Dataset.objects.select_for_update().get(pk=version.dataset_id)
    edits = list(open_edits(version).filter(pk__lte=until).values_list("pk", "line"))
    if not edits or not can_edit(version):
        return None
    new_version = version_from(
        version,
        ORIGIN,
        file_name=repair.file_name(version.file_name, []),
        stored_as=uploads.new_name(),
        size=version.size,
        chosen_format=version.chosen_format,
        repairs=[{"name": "edit_rows", "rows": len(edits)}],
    )
    lines = [line for _pk, line in edits[:LINES_RECORDED]]
    version_add(new_version, Action.DATASET_EDITED, user, rows=len(edits), lines=lines)
    for start in range(0, len(edits), 500):
        part = [pk for pk, _line in edits[start : start + 500]]
        RowEdit.objects.filter(pk__in=part).update(new_version=new_version)
    return new_version


def write_file(version: Version, hold: Hold, progress: Progress) -> None:
    """Make the version's file from its parent's and the edits; `progress` and exceptions are as for repairs."""
    assert version.parent is not None  # only versions with a parent have edits
    parent = files.local(version.parent.stored_as, lambda: progress(0.0))
    with (
        repair.new_file(version, hold, progress) as target,
        Upload(parent, uploads.limits_of_kept()) as upload,
        target.open("wb") as file,
    ):
        encoding, edits = encoding_of(version.parent), _replacements(version)
        file.writelines(replaced(upload, encoding, edits, lambda share: progress(share * 0.9)))


def _replacements(version: Version) -> Iterator[Replacement]:
    edits = RowEdit.objects.filter(new_version=version).order_by("line")
    for line, lines, text in edits.values_list("line", "lines", "text").iterator(chunk_size=50):
        yield Replacement(line, lines, text)
