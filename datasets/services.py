"""Everything that changes data sets, starting with storing an upload.

After it has been read, a version changes only by recording that invalid rows are excluded.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Exists, Max, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from datasets import uploads
from datasets.importing.worker import JOB
from datasets.models import WHOLE_OR_AGREED, Dataset, Row, Version, VersionState
from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from evalsite.storage import files, unfinished
from evalsite.storage.errors import NO_SPACE, StorageUnreachable
from evalsite.tasks import jobs

log = logging.getLogger("datasets.services")

OPEN_STATES = (VersionState.WAITING, VersionState.READING)


@dataclass(frozen=True, slots=True)
class Stored:
    """The name, size in bytes and hexadecimal SHA-256 of a stored file."""

    stored_as: str
    size: int
    sha256: str


def dataset_upload(
    *,
    project: Project,
    name: str,
    file: uploads.Incoming,
    file_name: str,
    user: User | None,
    chosen_format: str = "",
) -> Version:
    """Store a file and have it read: as a new data set, or a new version of the one called `name`.

    Without a name, the file's is used: see `name_of_file`. Raises ValidationError with a message if the file cannot be
    stored; nothing is left of it then.
    """
    stored, file_name = store(file), uploads.shown_name(file_name)
    with files.deleted_on_error(stored.stored_as), transaction.atomic():
        dataset = dataset_named(project, name.strip()[:200] or name_of_file(project, file_name), user)
        version = Version(dataset=dataset, file_name=file_name, chosen_format=chosen_format, **asdict(stored))
        return version_add(version, Action.DATASET_UPLOADED, user, file=file_name, bytes=stored.size)


def store(file: uploads.Incoming) -> Stored:
    """Copy an uploaded file to a new file. Raises ValidationError with a message if it cannot be stored."""
    return store_chunks(iter(lambda: file.read(uploads.CHUNK), b""), uploads.limit_bytes())


def store_chunks(chunks: Iterable[bytes], most: int) -> Stored:
    """Write up to `most` bytes to a new file, all or nothing. Raises ValidationError with a message."""
    stored_as = uploads.new_name()
    part = settings.DATA_DIR / uploads.FOLDER / f".{Path(stored_as).name}.part"
    size, digest = 0, hashlib.sha256()
    try:
        with _storage_problems_in_sentences():
            part.parent.mkdir(parents=True, exist_ok=True, mode=settings.DATA_FOLDER_MODE)
            with open(part, "xb", opener=_private) as out:
                unfinished.lock(out)
                for chunk in chunks:
                    size += len(chunk)
                    if size > most:
                        raise ValidationError(uploads.too_large_sentence())
                    digest.update(chunk)
                    out.write(chunk)
                out.flush()
                os.fsync(out.fileno())  # a power cut must not lose committed uploads
            files.put(part, stored_as)
    finally:
        part.unlink(missing_ok=True)
    return Stored(stored_as, size, digest.hexdigest())


@contextmanager
def _storage_problems_in_sentences() -> Iterator[None]:
    """Raise ValidationError with a message if the storage is unreachable or full."""
    try:
        yield
    except StorageUnreachable:
        log.exception("An upload could not be stored.")
        raise ValidationError(
            _(
                "The file storage is not responding. Nothing was saved. Try again in a minute. If that does not help, "
                "contact an administrator."
            )
        ) from None
    except OSError as error:
        if error.errno in NO_SPACE:
            raise ValidationError(
                _(
                    "The server's disk is full. Nothing was saved. Ask an administrator to free disk space, then try "
                    "again."
                )
            ) from None
        raise


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, settings.DATA_FILE_MODE)


def datasets_upload(
    *,
    project: Project,
    named_files: Sequence[tuple[uploads.Incoming, str]],
    user: User | None,
    chosen_format: str = "",
) -> tuple[list[Version], list[tuple[str, str]]]:
    """Store each file as a separate data set; return the versions, and (name, reason) of the rejected files."""
    taken: list[Version] = []
    refused: list[tuple[str, str]] = []
    names: set[str] = set()
    for file, file_name in named_files:
        shown = uploads.shown_name(file_name)
        name = name_of_file(project, shown, names)
        names.add(name)
        try:
            taken.append(
                dataset_upload(
                    project=project,
                    name=name,
                    file=file,
                    file_name=shown,
                    user=user,
                    chosen_format=chosen_format,
                )
            )
        except ValidationError as error:
            refused.append((shown, error.messages[0]))
    return taken, refused


def version_from(parent: Version, origin: str, **fields: Any) -> Version:
    """A new version, not saved yet, made from another; what ended the reading of that one holds for this one too."""
    return Version(
        dataset=parent.dataset, parent=parent, origin=origin, stopped_by=parent.stopped_by, **fields
    )


@transaction.atomic
def version_add(version: Version, action: Action, user: User | None, **detail: Any) -> Version:
    """Number and save a new version, log the action with its detail, and have a worker read the version."""
    version.number = next_number(version.dataset)
    version.created_by = user
    version.save(force_insert=True)
    record_version(action, version, by=user, **detail)
    jobs.request(JOB, version.pk)
    return version


def name_of_file(project: Project, file_name: str, taken: Container[str] = ()) -> str:
    """The name of the data set that a file becomes if none is chosen: the file's without its ending.

    If that name is taken, or belongs to a file that differs only in the ending, it is the complete file name; if that
    is too, the name is numbered.
    """
    name = uploads.name_from(file_name)
    others = (f"{name[:190]} ({number})" for number in count(3))
    free = (candidate for candidate in chain((name, file_name[:200]), others) if candidate not in taken)
    return next(candidate for candidate in free if not _has_another_ending(project, candidate, file_name))


def _has_another_ending(project: Project, name: str, file_name: str) -> bool:
    """Whether the data set with this name has a file that differs from this one only in the ending, and not itself."""
    versions = Version.objects.filter(dataset__project=project, dataset__name=name)
    uploaded = versions.filter(Q(origin="upload") | ~Q(parts=[])).values_list("origin", "file_name", "parts")
    files = {part["name"] for _origin, _name, parts in uploaded for part in parts}
    files |= {own for origin, own, _parts in uploaded if origin == "upload"}
    stem = uploads.name_from(file_name)
    return file_name not in files and any(uploads.name_from(file) == stem for file in files)


def dataset_named(project: Project, name: str, user: User | None) -> Dataset:
    """The project's data set with this name, created if missing and restored if archived."""
    dataset, _made = Dataset.objects.get_or_create(project=project, name=name, defaults={"created_by": user})
    if dataset.archived_at:
        Dataset.objects.filter(pk=dataset.pk).update(archived_at=None)
    return dataset


def record_version(action: Action, version: Version, *, by: User | None = None, **detail: Any) -> None:
    """Record an action on a data set in the audit log, with the version's number."""
    dataset = version.dataset
    record(action, project=dataset.project, thing=dataset, by=by, version=version.number, **detail)


def next_number(dataset: Dataset) -> int:
    """The number of a data set's next version; locks the data set, so that concurrent uploads wait."""
    locked = Dataset.objects.select_for_update().get(pk=dataset.pk)
    last = Version.objects.filter(dataset=dataset).aggregate(last=Max("number"))["last"] or 0
    return max(last, locked.last_deleted) + 1


def version_lock(version: Version) -> None:
    """Keep a version from being deleted until the transaction ends. Raises ValidationError if it was deleted."""
    if not Version.objects.select_for_update().filter(pk=version.pk).exists():
        raise ValidationError(_("This version was deleted."))


@transaction.atomic
def version_read_as(*, version: Version, chosen_format: str, user: User | None) -> Version:
    """Create a new version from the same bytes, read as `chosen_format` ("" detects it again)."""
    new_version = Version(
        dataset=version.dataset,
        origin="format",
        parent=version,
        file_name=version.file_name,
        stored_as=version.stored_as,
        size=version.size,
        sha256=version.sha256,
        parts=version.parts,
        chosen_format=chosen_format,
    )
    return version_add(new_version, Action.DATASET_READ_AS, user, format=chosen_format or "auto")


@transaction.atomic
def version_try_again(*, version: Version) -> bool:
    """Have a failed or cancelled version read again. False if it is neither."""
    ended = Version.objects.filter(pk=version.pk, state__in=(VersionState.FAILED, VersionState.CANCELLED))
    if not ended.update(
        state=VersionState.WAITING, problem="", cancel_requested=False, finished_at=None, bytes_read=0, rows=0
    ):
        return False
    jobs.request(JOB, version.pk)
    return True


def version_cancel(*, version: Version) -> bool:
    """Cancel the import; False if it has ended. A waiting version ends immediately, others within a moment.

    A version that waits again after its worker died still has rows; a worker deletes them and ends it.
    """
    untouched = Version.objects.filter(pk=version.pk, state=VersionState.WAITING)
    untouched = untouched.filter(~Exists(Row.objects.filter(version=version.pk)))
    if untouched.update(state=VersionState.CANCELLED, cancel_requested=True, finished_at=timezone.now()):
        jobs.cancel(JOB, version.pk)
        return True
    begun = Version.objects.filter(pk=version.pk, state__in=OPEN_STATES)
    return bool(begun.update(cancel_requested=True))


@transaction.atomic
def version_leave_bad_rows_out(*, version: Version, user: User | None) -> bool:
    """Record the agreement to exclude invalid rows and unread parts of the file.

    Returns False if there are none, or it was recorded before.
    """
    ready = Version.objects.filter(pk=version.pk, state=VersionState.READY, valid_rows__gt=0)
    if not ready.exclude(WHOLE_OR_AGREED).update(left_out_at=timezone.now(), left_out_by=user):
        return False
    unread = {"not_read_on": version.stopped_by} if version.stopped_by else {}
    record_version(Action.DATASET_LEFT_OUT, version, by=user, rows=version.bad_rows, **unread)
    return True
