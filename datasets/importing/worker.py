"""Imports an uploaded file into the tables: claimed by one worker, in small transactions, all or nothing."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from django.db import connection, transaction
from django.utils.translation import gettext_noop

from datasets.core.decode import Unreadable
from datasets.core.formats import format_called
from datasets.core.line_set import Lines
from datasets.core.reader import Summary, read
from datasets.core.rows import NewRow
from datasets.importing import tables
from datasets.models import Version, VersionState
from datasets.uploads import limits_of_kept
from evalsite.hooks import Hook, HookTable
from evalsite.links import absolute_url
from evalsite.models import Job
from evalsite.storage import files
from evalsite.storage.errors import StorageProblem, storage_problem
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold, WorkStopped
from evalsite.webhooks.events import emit
from evalsite.webhooks.kinds import Event

log = logging.getLogger("datasets.importing.worker")

JOB = "read_version"
BATCH_ROWS = 2000  # about 20 ms of writing, during which nobody else can write to SQLite
BATCH_BYTES = 3 * 1024 * 1024
SMALL = 32 * 1024 * 1024  # bytes; smaller uploads take seconds and interrupt larger ones
LOOK_UP_SECONDS = 0.5  # for renewing the job and noticing cancellation between batches

# Stored in `Version.problem` in English and translated when shown.
GONE = gettext_noop("The uploaded file is missing. Upload it again.")
AWAY = gettext_noop(
    "The file storage did not respond. The file is not lost: read it again when the storage is back. "
    "If that does not help, contact an administrator."
)
UNEXPECTED = gettext_noop(
    "Reading failed unexpectedly; see the server's log. The file is kept: read it again. If that "
    "does not help, contact an administrator."
)
DISK_FULL = gettext_noop(
    "The server's disk is full, so the file was not read. The file is kept. Ask an administrator to free disk space, "
    "then read it again."
)
BEYOND_LIMITS = gettext_noop(
    "The file can't be repaired: the file or one of its rows exceeds the upload limits."
)
NOT_IMPORTED = gettext_noop("The files could not be imported.")

Progress = Callable[[float], None]
file_makers: HookTable[Callable[[Version, Hold, Progress], None]] = HookTable(
    "datasets.importing.worker.file_makers"
)
"""{origin: function that makes a version's file before it is read}."""
follow_ups: Hook[Callable[[int], None]] = Hook("datasets.importing.worker.follow_ups")
"""Called with a version's id in the transaction that makes it ready."""


class NotImported(Exception):
    """A version's file cannot be made from another tool's files; its FileImport has the reason."""


def _failed(hold: Hold, version: Version, error: Exception) -> None:
    _finish_without_rows(hold, VersionState.FAILED, problem=_problem(version.pk, error))


def _wait_again(version_id: int) -> None:
    begun = Version.objects.filter(pk=version_id, state=VersionState.READING)
    begun.update(state=VersionState.WAITING, bytes_read=0, rows=0)


@jobs.job(JOB, Version, failed=_failed, released=_wait_again)
def read_version(hold: Hold, version: Version) -> None:
    """Import a waiting version's file; it is then ready, failed or cancelled."""
    waiting = Version.objects.filter(pk=version.pk, state=VersionState.WAITING)
    if not waiting.update(state=VersionState.READING):
        return
    tables.clear(version.pk)
    importer = Importer(version, hold)
    try:
        if version.to_be_repaired:
            importer.make_file(version)
        _import(version, importer)
    except WorkStopped:
        if Version.objects.filter(pk=version.pk, cancel_requested=True).exists():
            _finish_without_rows(hold, VersionState.CANCELLED)
        raise


def _import(version: Version, importer: Importer) -> None:
    chosen = format_called(version.chosen_format)
    path = files.local(version.stored_as, lambda: importer.progress(0, 0))
    reading = read(path, format=chosen, limits=limits_of_kept(), progress=importer.progress, digest=False)
    with reading, importer:
        for rows, size in reading.parts(importer.discard_rows):
            importer.add(rows, size)
        importer.finish(reading.summary, reading.lines)


def _problem(version_id: int, error: Exception) -> str:
    """The message for an error; unexpected ones are also logged."""
    if isinstance(error, FileNotFoundError):
        return GONE
    if problem := storage_problem(error):
        log.warning("Version %s could not be read: %s", version_id, error)
        return DISK_FULL if problem is StorageProblem.DISK_FULL else AWAY
    if isinstance(error, Unreadable):
        return BEYOND_LIMITS
    if isinstance(error, NotImported):
        return NOT_IMPORTED
    log.error("Version %s could not be read.", version_id, exc_info=error)
    return UNEXPECTED


def import_version(version_id: int, stop: threading.Event | None = None) -> bool:
    """Import a version here. False if another worker does, or it is done."""
    return jobs.run(JOB, version_id, stop)


def import_or_wait(version_id: int) -> Version:
    """Import the version here, or wait for another worker to do so; return its new state."""
    while True:
        import_version(version_id)
        version = Version.objects.get(pk=version_id)
        if version.state not in (VersionState.WAITING, VersionState.READING):
            return version
        time.sleep(0.2)


def do_urgent_work(stop: threading.Event, smaller_than: int | None = None) -> None:
    """Import waiting uploads and do short work in the middle of longer work, so that nobody waits for that."""
    waiting = Version.objects.filter(pk__in=jobs.ids(JOB, Job.State.WAITING))
    if smaller_than is not None:
        waiting = waiting.filter(size__lt=smaller_than)
    for version_id in list(waiting.order_by("pk").values_list("pk", flat=True)):
        if not stop.is_set():
            import_version(version_id, stop)
    jobs.do_short_work(stop)


def _finish_without_rows(hold: Hold, state: VersionState, *, problem: str = "") -> None:
    """End without rows. Raises WorkStopped if the version is not ours any more."""
    hold.renew()
    tables.clear(hold.pk)
    tables.finish(hold, state, problem=problem, rows=0)


class Importer:
    """Collects rows into batches; each batch is one transaction that also renews the job.

    On PostgreSQL a thread sends a batch while the next one is read; nothing else uses the connection until `_settle`.
    SQLite batches are written immediately, as nobody else can write in the meantime.
    """

    def __init__(self, version: Version, hold: Hold) -> None:
        self.version_id = version.pk
        self.large = version.size >= SMALL
        self.hold = hold
        self.writer = tables.Writer(self.version_id, self._settle)
        self.batch: list[NewRow] = []
        self.batch_bytes = 0
        self.rows = 0
        self.bytes_read = 0
        self.looked_up = 0.0
        self.gave_way = time.monotonic()
        self.sender = ThreadPoolExecutor(1, "import")
        self.unchecked = ExitStack()  # while active, foreign keys are not checked
        self.checked = True
        self.under_way = ExitStack()  # transaction of the batch being sent
        self.sent: list[Future[object]] = []

    def __enter__(self) -> Importer:
        return self

    def __exit__(self, *error: Any) -> None:
        """Roll back a batch in progress; there is none after success."""
        self.sender.shutdown()
        try:
            self.under_way.__exit__(*error)
        finally:  # the connection stays in use, even if the rollback failed
            self._check()

    def make_file(self, version: Version) -> None:
        """Write the file of a version that is made from another version or other tools' files."""
        make = file_makers[version.origin]
        make(version, self.hold, lambda share: self.progress(int(share * version.size), 0))
        self.bytes_read = 0

    def progress(self, done: int, _all: int) -> None:
        """Called by the reader between rows; renews the job even while no batch is written."""
        self.bytes_read = done
        if time.monotonic() - self.looked_up >= LOOK_UP_SECONDS:
            self._settle()
            self._advance()
        if self.large and time.monotonic() - self.gave_way >= LOOK_UP_SECONDS:
            self._settle()
            self._check()
            do_urgent_work(self.hold.stop, smaller_than=SMALL)
            self.gave_way = time.monotonic()

    def add(self, rows: list[NewRow], size: int) -> None:
        """Add rows that take `size` bytes of the file; writes a full batch."""
        self.batch += rows
        self.batch_bytes += size
        self.rows += len(rows)
        if len(self.batch) < BATCH_ROWS and self.batch_bytes < BATCH_BYTES:
            return
        if connection.vendor == "sqlite":
            self.begin()
            for send in self.writer.sending(self.batch):
                send()
            self._advance()
            self.under_way.close()
        else:
            sending = self.writer.sending(self.batch)  # while the server processes the last one
            self._settle()
            self.begin()
            self.sent = [self.sender.submit(send) for send in sending]
        self.batch, self.batch_bytes = [], 0

    def discard_rows(self) -> None:
        """Discard all rows so far: the file is read again in another way."""
        self._settle()
        self._check()
        tables.clear(self.version_id)
        self.writer = tables.Writer(self.version_id, self._settle)
        self.batch, self.batch_bytes, self.rows = [], 0, 0

    def finish(self, summary: Summary, lines: Mapping[str, Lines]) -> None:
        """Write the last rows and make everything about the version visible at once."""
        self._settle()
        self._check()
        with transaction.atomic():
            for send in self.writer.sending(self.batch):
                send()
            self.writer.write_findings(summary.findings)
            self.writer.write_finding_lines(lines)
            self.writer.write_candidate_counts()
            tables.finish(self.hold, VersionState.READY, **figures(summary))
            for follow_up in follow_ups:
                follow_up(self.version_id)
            _tell(self.version_id)

    def begin(self) -> None:
        """Begin the transaction of a batch.

        Its rows refer only to this version and to each other, so constraint checks stay disabled until others
        write: SQLite re-prepares every statement when they are toggled.
        """
        if self.checked:
            self.unchecked.enter_context(connection.constraint_checks_disabled())
            self.checked = False
        self.under_way.enter_context(transaction.atomic())
        tables.let_commits_wait_for_no_disk()

    def _check(self) -> None:
        self.unchecked.close()
        self.checked = True

    def _settle(self) -> None:
        """Wait for the batch in progress; afterwards the connection may be used."""
        if self.sent:
            for sent in self.sent:
                sent.result()
            self.sent = []
            self._advance()
            self.under_way.close()

    def _advance(self) -> None:
        self.hold.check()
        tables.advance(self.hold, bytes_read=self.bytes_read, rows=self.rows)
        self.looked_up = time.monotonic()


def _tell(version_id: int) -> None:
    """Tell webhooks that the version can be used."""
    version = Version.objects.select_related("dataset__project").get(pk=version_id)
    dataset = version.dataset
    url = absolute_url("datasets:version", dataset.project.slug, dataset.pk, version.number)
    emit(Event.VERSION_READY, dataset.project, pk=version.pk, name=dataset.name, state=version.state, url=url)


def figures(summary: Summary) -> dict[str, object]:
    """The version's fields from the summary."""
    fields: dict[str, object] = {
        "format": summary.format or "",
        "format_why": {"why": summary.why, **summary.why_params},
        "encoding": summary.encoding or "",
        "bytes_read": summary.bytes,
        "rows": summary.rows,
        "valid_rows": summary.valid_rows,
        "counts": summary.counts,
        "models_found": summary.models,
        "fields_found": summary.fields,
        "problem": "",
    }
    if summary.stopped_by:  # otherwise keep the value from the version's source
        fields["stopped_by"] = summary.stopped_by
    return fields
