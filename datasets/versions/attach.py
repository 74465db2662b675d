"""Attaching answers: a file is kept, matched in the background, shown, and on agreement made into a new version."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
import uuid
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django_tasks import task

from datasets import services, uploads
from datasets.core.answer_file import MATCH_BY, ModelNameWanted, NoAnswers
from datasets.core.attach import AttachReport, AttachWork, attach
from datasets.importing import worker
from datasets.models import Attachment, Version
from datasets.selectors import format_of
from datasets.versions import temp_files
from evalsite.accounts.models import User
from evalsite.audit import Action
from evalsite.storage import files
from evalsite.storage.errors import StorageUnreachable, database_unavailable
from evalsite.tasks import workers

log = logging.getLogger("datasets.versions.attach")

LEASE = timedelta(minutes=10)
LOOK_UP_SECONDS = 0.5
KEPT_FOR = timedelta(days=14)  # a matched file waits so long for a decision
MODEL_NAME_WANTED, UNEXPECTED, GONE, AWAY = "model_name_wanted", "unexpected", "gone", "away"
WORK = "answers"
State = Attachment.State
OPEN = (State.WAITING, State.MATCHING)


class MatchingStopped(Exception):
    """The worker was asked to end, or the matching is not ours any more."""


def answers_upload(
    *,
    version: Version,
    file: uploads.Incoming,
    file_name: str,
    model_name: str,
    match_by: str,
    user: User | None,
) -> Attachment:
    """Keep a file of answers and have it matched to a version. Raises ValidationError if it cannot be kept."""
    stored = uploads.store(file)
    with transaction.atomic():
        made = Attachment.objects.create(
            version=version,
            file_name=uploads.shown_name(file_name),
            stored_as=stored.stored_as,
            size=stored.size,
            model_name=model_name.strip(),
            match_by=match_by,
            created_by=user,
        )
        workers.wake(match_answers, attachment_id=made.pk)
    return made


@transaction.atomic
def attachment_name(*, attachment: Attachment, model_name: str) -> bool:
    """Say whose answers a legacy file holds, and have it matched. False if that was not what it waited for."""
    nameless = Attachment.objects.filter(
        pk=attachment.pk, state=State.FAILED, problem__code=MODEL_NAME_WANTED
    )
    if not nameless.update(state=State.WAITING, model_name=model_name.strip(), problem={}, done=0):
        return False
    workers.wake(match_answers, attachment_id=attachment.pk)
    return True


@task(queue_name=workers.DATA)
def match_answers(attachment_id: int) -> None:
    """Match a file of answers to its version, unless another worker does."""
    match(attachment_id, workers.owner(), stop=workers.stopping)


@workers.works_on(Attachment)
def match(attachment_id: int, owner: str, stop: threading.Event | None = None) -> bool:
    """Match a waiting file; it is then matched or failed. False if somebody else does it or has done it."""
    waiting = Attachment.objects.filter(pk=attachment_id, state=State.WAITING)
    if not waiting.update(state=State.MATCHING, owner=owner, lease_until=timezone.now() + LEASE):
        return False
    attachment = Attachment.objects.select_related("version").get(pk=attachment_id)
    progress = _Progress(attachment, owner, stop or threading.Event())
    try:
        with temp_files.work_folder(WORK, attachment_id) as folder:
            _match(_work(attachment, folder, progress), attachment, progress)
    except MatchingStopped:
        _end(attachment, owner, state=State.WAITING, done=0)
    except ModelNameWanted:
        _end(attachment, owner, state=State.FAILED, problem={"code": MODEL_NAME_WANTED})
    except NoAnswers as unread:
        problem = {"code": "file", "finding": asdict(unread.found[0])}
        _end(attachment, owner, state=State.FAILED, problem=problem)
    except FileNotFoundError:
        _end(attachment, owner, state=State.FAILED, problem={"code": GONE})
    except StorageUnreachable as error:
        log.warning("The answers %s could not be matched: %s", attachment_id, error)
        _end(attachment, owner, state=State.FAILED, problem={"code": AWAY})
    except Exception as error:  # whatever it was, it must not stay half done
        if database_unavailable(error):
            log.warning("The answers %s are matched when the database answers: %s", attachment_id, error)
            _end(attachment, owner, state=State.WAITING, done=0)
            return True
        log.exception("The answers %s could not be matched.", attachment_id)
        _end(attachment, owner, state=State.FAILED, problem={"code": UNEXPECTED})
    return True


def _match(work: AttachWork, attachment: Attachment, progress: _Progress) -> None:
    """What comes out is kept under names of this attempt, and noted in the transaction in which it takes its place."""
    found = _as_json(attach(work, progress)) | _measured(work.target)
    attempt = f"{attachment.stored_as}.{uuid.uuid4().hex[:8]}"
    made = {work.target: f"{attempt}.merged", work.unmatched: f"{attempt}.unmatched"}
    merged_as, unmatched_as = made.values()
    try:
        for path, name in made.items():
            files.send(path, name, progress.renew)
        with transaction.atomic():
            kept = {"merged_as": merged_as, "unmatched_as": unmatched_as}
            if not _end(attachment, progress.owner, state=State.MATCHED, report=found, **kept):
                raise MatchingStopped
            for path, name in made.items():
                files.place(path, name)
    except BaseException:
        files.delete(merged_as, unmatched_as)
        raise


def _work(attachment: Attachment, folder: Path, progress: _Progress) -> AttachWork:
    return AttachWork(
        base=files.local(attachment.version.stored_as, progress.renew),
        format=format_of(attachment.version),
        answers=files.local(attachment.stored_as, progress.renew),
        target=folder / "merged",
        unmatched=folder / "unmatched",
        model_name=attachment.model_name,
        match_by=next((by for by in MATCH_BY if by == attachment.match_by), ""),
        limits=uploads.limits_of_kept(),
    )


def _measured(path: Path) -> dict[str, object]:
    """Size and SHA-256 of the merged file, which is on the disk afterwards."""
    path.chmod(settings.DATA_FILE_MODE)
    with path.open("rb") as file:
        os.fsync(file.fileno())
        digest = hashlib.file_digest(file, "sha256")
    return {"merged_size": path.stat().st_size, "merged_sha256": digest.hexdigest()}


def _as_json(report: AttachReport) -> dict[str, object]:
    return {**asdict(report), "unmatched": report.unmatched}


def _end(attachment: Attachment, owner: str, **changes: object) -> bool:
    """False if the matching is not ours any more."""
    ours = Attachment.objects.filter(pk=attachment.pk, state=State.MATCHING, owner=owner)
    return bool(ours.update(owner="", lease_until=None, **changes))


class _Progress:
    """Notes how far the matching is, renews the lease, and ends it when it is no longer wanted."""

    def __init__(self, attachment: Attachment, owner: str, stop: threading.Event) -> None:
        self.ours = Attachment.objects.filter(pk=attachment.pk, state=State.MATCHING, owner=owner)
        self.owner = owner
        self.stop = stop
        self.looked_up = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        if self._renewed(done=done, total=total):
            worker.give_way(self.owner, self.stop)

    def renew(self) -> None:
        """While files are brought or sent: nothing else is begun in the midst of that."""
        self._renewed()

    def _renewed(self, **changes: int) -> bool:
        if self.stop.is_set():
            raise MatchingStopped
        if time.monotonic() - self.looked_up < LOOK_UP_SECONDS:
            return False
        self.looked_up = time.monotonic()
        if not self.ours.update(lease_until=timezone.now() + LEASE, **changes):
            raise MatchingStopped
        return True


def attachment_use(*, attachment: Attachment, user: User | None) -> Version | None:
    """Make the merged rows a new version, which is then read like any upload. None if somebody decided before."""
    version = attachment.version
    with transaction.atomic():
        ours = Attachment.objects.filter(pk=attachment.pk, state=State.MATCHED)
        if not attachment.report.get("matched") or not ours.update(state=State.USED):
            return None
        made = Version(
            dataset=version.dataset,
            origin="attach",
            parent=version,
            stopped_by=version.stopped_by,
            file_name=f"{uploads.name_from(version.file_name)}.jsonl",
            stored_as=attachment.merged_as,
            size=attachment.report["merged_size"],
            sha256=attachment.report["merged_sha256"],
            chosen_format="judge_only",
        )
        services.version_add(made, Action.DATASET_ANSWERS, user)
        Attachment.objects.filter(pk=attachment.pk).update(made=made)
    return made


def attachment_discard(*, attachment: Attachment) -> bool:
    """Throw a matched or waiting file away; the version stays as it is. False if it was decided before."""
    undecided = Attachment.objects.filter(pk=attachment.pk).exclude(state__in=(State.USED, State.DISCARDED))
    if not undecided.update(state=State.DISCARDED, owner="", lease_until=None):
        return False
    attachment.refresh_from_db(fields=["merged_as", "unmatched_as"])
    made = (name for name in (attachment.merged_as, attachment.unmatched_as) if name)
    files.delete(attachment.stored_as, *made)
    return True


def reconcile() -> None:
    """Have answers matched again whose worker is gone, wake for all that wait, and forget what nobody decided on."""
    for attachment in Attachment.objects.filter(state=State.MATCHING):
        expired = attachment.lease_until is None or attachment.lease_until < timezone.now()
        if expired or not workers.is_held(attachment.owner, Attachment, attachment.pk):
            held = Attachment.objects.filter(pk=attachment.pk, state=State.MATCHING, owner=attachment.owner)
            held.update(state=State.WAITING, owner="", lease_until=None, done=0)
    for attachment_id in Attachment.objects.filter(state=State.WAITING).values_list("pk", flat=True):
        workers.wake(match_answers, attachment_id=attachment_id)
    temp_files.sweep(WORK, set(Attachment.objects.filter(state=State.MATCHING).values_list("pk", flat=True)))
    old = Attachment.objects.filter(created_at__lt=timezone.now() - KEPT_FOR, state=State.MATCHED)
    for attachment in old.select_related("version")[:10]:
        attachment_discard(attachment=attachment)
