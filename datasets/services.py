"""Everything that changes data sets, from storing an upload on.

A version that was read changes in one thing only: bad rows are left out.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Exists, Max
from django.utils import timezone
from django.utils.translation import gettext as _

from datasets import uploads
from datasets.importing.worker import read_version
from datasets.models import WHOLE_OR_AGREED, Dataset, Row, Version, VersionState
from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from evalsite.storage import files
from evalsite.storage.errors import NO_SPACE, StorageUnreachable
from evalsite.tasks import workers

log = logging.getLogger("datasets.services")

OPEN_STATES = (VersionState.WAITING, VersionState.READING)


@dataclass(frozen=True, slots=True)
class Stored:
    """The name under which the bytes are kept, how many they are, and their SHA-256 in hexadecimal."""

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
    """Keep a file's bytes and have them read: a new data set, or a further version of the one called `name`.

    Raises ValidationError with a sentence if the file cannot be kept; nothing of it is left then.
    """
    stored, file_name = store(file), uploads.shown_name(file_name)
    try:
        with transaction.atomic():
            dataset = dataset_named(project, name.strip()[:200] or uploads.name_from(file_name), user)
            version = Version(
                dataset=dataset, file_name=file_name, chosen_format=chosen_format, **asdict(stored)
            )
            return version_add(version, Action.DATASET_UPLOADED, user, file=file_name, bytes=stored.size)
    except BaseException:
        discard(stored)
        raise


def store(file: uploads.Incoming, most: int | None = None) -> Stored:
    """Copy a stream of up to `most` bytes (default: the limit of uploads) to its own new file; whole or not at all.

    Raises ValidationError with a sentence if it cannot be kept.
    """
    most = uploads.limit_bytes() if most is None else most
    stored_as = uploads.new_name()
    part = Path(settings.DATA_DIR) / uploads.FOLDER / f".{Path(stored_as).name}.part"
    size, digest = 0, hashlib.sha256()
    try:
        with _storage_problems_in_sentences():
            part.parent.mkdir(parents=True, exist_ok=True, mode=settings.DATA_FOLDER_MODE)
            with open(part, "xb", opener=_private) as out:
                while chunk := file.read(uploads.CHUNK):
                    size += len(chunk)
                    if size > most:
                        raise ValidationError(uploads.too_large_sentence())
                    digest.update(chunk)
                    out.write(chunk)
                out.flush()
                os.fsync(out.fileno())  # the table must not promise bytes that a power cut could take
            files.put(part, stored_as)
    finally:
        part.unlink(missing_ok=True)
    return Stored(stored_as, size, digest.hexdigest())


@contextmanager
def _storage_problems_in_sentences() -> Iterator[None]:
    """Raises ValidationError where the storage is away or full."""
    try:
        yield
    except StorageUnreachable:
        log.exception("An upload could not be kept.")
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


def discard(stored: Stored) -> None:
    """Remove a stored file that no version came to point at."""
    files.delete(stored.stored_as)


def datasets_upload(
    *,
    project: Project,
    given: Sequence[tuple[uploads.Incoming, str]],
    user: User | None,
    chosen_format: str = "",
) -> tuple[list[Version], list[tuple[str, str]]]:
    """Each file with its name as a data set of its own: those that were kept, and (name, why not) of the others.

    Two files that suggest one name get data sets of their own: the second is named by its whole file name.
    """
    taken: list[Version] = []
    refused: list[tuple[str, str]] = []
    names: set[str] = set()
    for file, file_name in given:
        shown = uploads.shown_name(file_name)
        name = uploads.name_from(shown)
        name = shown[:200] if name in names else name
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


@transaction.atomic
def version_add(version: Version, action: Action, user: User | None, **detail: Any) -> Version:
    """Number and save a new version and have a worker read it; the audit log has the action with its detail."""
    version.number = next_number(version.dataset)
    version.created_by = user
    version.save(force_insert=True)
    record_version(action, version, by=user, **detail)
    workers.wake(read_version, version_id=version.pk)
    return version


def dataset_named(project: Project, name: str, user: User | None) -> Dataset:
    """The project's data set of this name, made if there is none, and back in the lists if it was archived."""
    dataset, _made = Dataset.objects.get_or_create(project=project, name=name, defaults={"created_by": user})
    if dataset.archived_at:
        Dataset.objects.filter(pk=dataset.pk).update(archived_at=None)
    return dataset


def record_version(action: Action, version: Version, *, by: User | None = None, **detail: Any) -> None:
    """Write down what happened to a data set, with the version's number."""
    dataset = version.dataset
    record(action, project=dataset.project, thing=dataset, by=by, version=version.number, **detail)


def next_number(dataset: Dataset) -> int:
    """The number of a data set's next version. Two uploads at once are let through one after the other."""
    Dataset.objects.select_for_update().get(pk=dataset.pk)
    return (Version.objects.filter(dataset=dataset).aggregate(last=Max("number"))["last"] or 0) + 1


@transaction.atomic
def version_read_as(*, version: Version, chosen_format: str, user: User | None) -> Version:
    """A further version from the same bytes, read as `chosen_format` ("" detects it again)."""
    made = Version(
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
    return version_add(made, Action.DATASET_READ_AS, user, format=chosen_format or "auto")


@transaction.atomic
def version_try_again(*, version: Version) -> bool:
    """Have a version that failed or was cancelled read again. False if it is neither."""
    ended = Version.objects.filter(pk=version.pk, state__in=(VersionState.FAILED, VersionState.CANCELLED))
    if not ended.update(
        state=VersionState.WAITING, problem="", cancel_wanted=False, finished_at=None, bytes_read=0, rows=0
    ):
        return False
    workers.wake(read_version, version_id=version.pk)
    return True


def version_cancel(*, version: Version) -> bool:
    """Stop the reading. False if it has ended. What waits ends at once; what is being read within a moment.

    A version that waits again after its reader died still has rows of it; a worker takes them away and ends it.
    """
    untouched = Version.objects.filter(pk=version.pk, state=VersionState.WAITING)
    untouched = untouched.filter(~Exists(Row.objects.filter(version=version.pk)))
    if untouched.update(state=VersionState.CANCELLED, cancel_wanted=True, finished_at=timezone.now()):
        return True
    begun = Version.objects.filter(pk=version.pk, state__in=OPEN_STATES)
    return bool(begun.update(cancel_wanted=True))


@transaction.atomic
def version_leave_bad_rows_out(*, version: Version, user: User | None) -> bool:
    """Record that the bad rows, and what was not read of the file, are left out on purpose.

    False if there is nothing such, or it was recorded before.
    """
    ready = Version.objects.filter(pk=version.pk, state=VersionState.READY, valid_rows__gt=0)
    if not ready.exclude(WHOLE_OR_AGREED).update(left_out_at=timezone.now(), left_out_by=user):
        return False
    unread = {"not_read_on": version.stopped_by} if version.stopped_by else {}
    record_version(Action.DATASET_LEFT_OUT, version, by=user, rows=version.bad_rows, **unread)
    return True


@transaction.atomic
def dataset_archive(*, dataset: Dataset) -> bool:
    """Take a data set out of the lists; nothing is deleted. False if it was archived before."""
    if not Dataset.objects.filter(pk=dataset.pk, archived_at=None).update(archived_at=timezone.now()):
        return False
    record(Action.DATASET_ARCHIVED, project=dataset.project, thing=dataset)
    return True


@transaction.atomic
def dataset_restore(*, dataset: Dataset) -> bool:
    """Undo archiving. False if it was not archived."""
    archived = Dataset.objects.filter(pk=dataset.pk, archived_at__isnull=False)
    if not archived.update(archived_at=None):
        return False
    record(Action.DATASET_RESTORED, project=dataset.project, thing=dataset)
    return True
