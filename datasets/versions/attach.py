"""Attaching answers: a file is stored, matched in the background, reviewed, and on confirmation made a new version."""

from __future__ import annotations

import logging
import threading
import uuid
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils import timezone
from django_tasks import task

from datasets import services, uploads
from datasets.core.answer_file import MATCH_BY, ModelNameWanted, NoAnswers
from datasets.core.attach import AttachWork, attach
from datasets.importing import worker
from datasets.importing.leases import Hold, Leases
from datasets.models import Attachment, Version
from datasets.selectors import format_of
from datasets.versions import temp_files
from evalsite.accounts.models import User
from evalsite.audit import Action
from evalsite.storage import files
from evalsite.storage.errors import StorageUnreachable
from evalsite.tasks import workers

log = logging.getLogger("datasets.versions.attach")

KEPT_FOR = timedelta(days=14)  # how long a matched file waits for a decision
MODEL_NAME_WANTED, UNEXPECTED, GONE, AWAY = "model_name_wanted", "unexpected", "gone", "away"
WORK = "answers"
State = Attachment.State
OPEN = (State.WAITING, State.MATCHING)
MATCHING = Leases(Attachment, State.WAITING, State.MATCHING, begun=("done",))


def answers_upload(
    *,
    version: Version,
    file: uploads.Incoming,
    file_name: str,
    model_name: str,
    match_by: str,
    user: User | None,
) -> Attachment:
    """Store a file of answers and have it matched to a version. Raises ValidationError if it cannot be stored."""
    stored = services.store(file)
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
    """Set the model of a legacy file and have it matched. False if the file was not waiting for a model name."""
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
    """Match a waiting file; it is then matched or failed. False if done by another worker."""
    return MATCHING.work(attachment_id, owner, stop, _match, partial(_failed, attachment_id))


def _failed(attachment_id: int, error: Exception) -> dict[str, Any]:
    problem: dict[str, Any] = {"code": UNEXPECTED}
    if isinstance(error, ModelNameWanted):
        problem = {"code": MODEL_NAME_WANTED}
    elif isinstance(error, NoAnswers):
        problem = {"code": "file", "finding": asdict(error.found[0])}
    elif isinstance(error, FileNotFoundError):
        problem = {"code": GONE}
    elif isinstance(error, StorageUnreachable):
        log.warning("Matching attached answers %s failed: %s", attachment_id, error)
        problem = {"code": AWAY}
    else:
        log.error("Matching attached answers %s failed.", attachment_id, exc_info=error)
    return {"state": State.FAILED, "problem": problem}


def _match(hold: Hold) -> None:
    """Match the file and store the results under names of this attempt, placed in the transaction that records them."""
    attachment = Attachment.objects.select_related("version").get(pk=hold.pk)
    with temp_files.work_folder(WORK, hold.pk) as folder:
        work = _work(attachment, folder, hold)
        report = attach(work, partial(_advance, hold))
        found = {**asdict(report), "unmatched": report.unmatched}
        found["merged_size"], found["merged_sha256"] = temp_files.written_out(work.target)
        attempt = f"{attachment.stored_as}.{uuid.uuid4().hex[:8]}"
        made = {work.target: f"{attempt}.merged", work.unmatched: f"{attempt}.unmatched"}
        merged_as, unmatched_as = made.values()
        with files.deleted_on_error(merged_as, unmatched_as):
            for path, name in made.items():
                files.send(path, name, hold.renew_at_times)
            with transaction.atomic():
                hold.end(State.MATCHED, report=found, merged_as=merged_as, unmatched_as=unmatched_as)
                for path, name in made.items():
                    files.place(path, name)


def _advance(hold: Hold, done: int, total: int) -> None:
    if hold.renew_at_times(done=done, total=total):
        worker.give_way(hold.owner, hold.stop)


def _work(attachment: Attachment, folder: Path, hold: Hold) -> AttachWork:
    return AttachWork(
        base=files.local(attachment.version.stored_as, hold.renew_at_times),
        format=format_of(attachment.version),
        answers=files.local(attachment.stored_as, hold.renew_at_times),
        target=folder / "merged",
        unmatched=folder / "unmatched",
        model_name=attachment.model_name,
        match_by=next((by for by in MATCH_BY if by == attachment.match_by), ""),
        limits=uploads.limits_of_kept(),
    )


def attachment_use(*, attachment: Attachment, user: User | None) -> Version | None:
    """Make the merged rows a new version, which is read like an upload. None if a decision was made before."""
    version = attachment.version
    with transaction.atomic():
        ours = Attachment.objects.filter(pk=attachment.pk, state=State.MATCHED)
        if not attachment.report.get("matched") or not ours.update(state=State.USED):
            return None
        made = services.version_from(
            version,
            "attach",
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
    """Delete an undecided file and its results; the version stays unchanged. False if a decision was made before."""
    undecided = Attachment.objects.filter(pk=attachment.pk).exclude(state__in=(State.USED, State.DISCARDED))
    if not undecided.update(state=State.DISCARDED, owner="", lease_until=None):
        return False
    attachment.refresh_from_db(fields=["merged_as", "unmatched_as"])
    names = (attachment.stored_as, attachment.merged_as, attachment.unmatched_as)
    files.delete(*filter(None, names))
    return True


def reconcile() -> None:
    """Restart matching whose worker is gone, wake a worker for waiting files, and delete old undecided ones."""
    MATCHING.reconcile(lambda pk: workers.wake(match_answers, attachment_id=pk))
    temp_files.sweep(WORK, MATCHING.ids_busy)
    old = Attachment.objects.filter(created_at__lt=timezone.now() - KEPT_FOR, state=State.MATCHED)
    for attachment in old.select_related("version")[:10]:
        attachment_discard(attachment=attachment)
