"""Attaching answers: a file is kept, matched in the background, shown, and on agreement made into a new version."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from datasets import files, importing, services, tasks
from datasets.core.answerfile import MATCH_BY, ModelNameWanted, NoAnswers
from datasets.core.attaching import Report, Work, attach
from datasets.models import Attachment, Version
from datasets.selectors import format_of
from evalsite import engine
from evalsite.accounts.models import User

log = logging.getLogger("datasets.attaching")

LEASE = timedelta(minutes=10)
LOOK_UP_SECONDS = 0.5
KEPT_FOR = timedelta(days=14)  # until then one may decide about a matched file
MODEL_NAME_WANTED, UNEXPECTED, GONE = "model_name_wanted", "unexpected", "gone"
State = Attachment.State
OPEN = (State.WAITING, State.MATCHING)


class Stopped(Exception):
    """The worker was asked to end, or the matching is not ours any more."""


def answers_upload(
    *,
    version: Version,
    file: files.Incoming,
    file_name: str,
    model_name: str,
    match_by: str,
    user: User | None,
) -> Attachment:
    """Keep a file of answers and have it matched to a version. Raises ValidationError if it cannot be kept."""
    stored = services.store(file)
    with transaction.atomic():
        made = Attachment.objects.create(
            version=version,
            file_name=files.shown_name(file_name),
            stored_as=stored.stored_as,
            size=stored.size,
            model_name=model_name.strip(),
            match_by=match_by,
            created_by=user,
        )
        engine.wake(tasks.match_answers, attachment_id=made.pk)
    return made


def match(attachment_id: int, owner: str, stop: threading.Event | None = None) -> bool:
    """Match a waiting file; it is then matched or failed. False if somebody else does it or has done it."""
    waiting = Attachment.objects.filter(pk=attachment_id, state=State.WAITING)
    if not waiting.update(state=State.MATCHING, owner=owner, lease_until=timezone.now() + LEASE):
        return False
    attachment = Attachment.objects.select_related("version").get(pk=attachment_id)
    work = _work(attachment)
    try:
        report = attach(work, _Progress(attachment, owner, stop or threading.Event()))
        found = _as_json(report) | _measured(work.target)
        _end(attachment, owner, state=State.MATCHED, report=found, **_kept(work))
        return True
    except Stopped:
        _end(attachment, owner, state=State.WAITING, done=0)
    except ModelNameWanted:
        _end(attachment, owner, state=State.FAILED, problem={"code": MODEL_NAME_WANTED})
    except NoAnswers as unread:
        problem = {"code": "file", "finding": asdict(unread.found[0])}
        _end(attachment, owner, state=State.FAILED, problem=problem)
    except FileNotFoundError:
        _end(attachment, owner, state=State.FAILED, problem={"code": GONE})
    except Exception:  # whatever it was, it must not stay half done
        log.exception("The answers %s could not be matched.", attachment_id)
        _end(attachment, owner, state=State.FAILED, problem={"code": UNEXPECTED})
    _forget(work.target, work.unmatched)
    return True


def _work(attachment: Attachment) -> Work:
    data = Path(settings.DATA_DIR)
    stored = data / attachment.stored_as
    return Work(
        base=attachment.version.path,
        format=format_of(attachment.version),
        answers=stored,
        target=stored.with_name(f"{stored.name}.merged"),
        unmatched=stored.with_name(f"{stored.name}.unmatched"),
        model_name=attachment.model_name,
        match_by=next((by for by in MATCH_BY if by == attachment.match_by), ""),
        limits=importing.limits(),
    )


def _kept(work: Work) -> dict[str, str]:
    return {
        "merged_as": f"{files.FOLDER}/{work.target.name}",
        "unmatched_as": f"{files.FOLDER}/{work.unmatched.name}",
    }


def _measured(path: Path) -> dict[str, object]:
    """Size and SHA-256 of the merged file, which is on the disk afterwards."""
    path.chmod(0o600)
    with path.open("rb") as file:
        os.fsync(file.fileno())
        digest = hashlib.file_digest(file, "sha256")
    return {"merged_size": path.stat().st_size, "merged_sha256": digest.hexdigest()}


def _as_json(report: Report) -> dict[str, object]:
    return {**asdict(report), "unmatched": report.unmatched}


def _end(attachment: Attachment, owner: str, **changes: object) -> None:
    ours = Attachment.objects.filter(pk=attachment.pk, state=State.MATCHING, owner=owner)
    if not ours.update(owner="", lease_until=None, **changes) and changes.get("state") == State.MATCHED:
        _forget(*(Path(settings.DATA_DIR) / str(changes[name]) for name in ("merged_as", "unmatched_as")))


def _forget(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


class _Progress:
    """Notes how far the matching is, renews the lease, and ends it when it is no longer wanted."""

    def __init__(self, attachment: Attachment, owner: str, stop: threading.Event) -> None:
        self.ours = Attachment.objects.filter(pk=attachment.pk, state=State.MATCHING, owner=owner)
        self.stop = stop
        self.looked_up = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        if self.stop.is_set():
            raise Stopped
        if time.monotonic() - self.looked_up < LOOK_UP_SECONDS:
            return
        self.looked_up = time.monotonic()
        if not self.ours.update(done=done, total=total, lease_until=timezone.now() + LEASE):
            raise Stopped


def attachment_use(*, attachment: Attachment, user: User | None) -> Version | None:
    """Make the merged rows a new version, which is then read like any upload. None if somebody decided before."""
    version = attachment.version
    with transaction.atomic():
        ours = Attachment.objects.filter(pk=attachment.pk, state=State.MATCHED)
        if not attachment.report.get("matched") or not ours.update(state=State.USED):
            return None
        made = Version.objects.create(
            dataset=version.dataset,
            number=services.next_number(version.dataset),
            origin="attach",
            parent=version,
            file_name=f"{files.name_from(version.file_name)}.jsonl",
            stored_as=attachment.merged_as,
            size=attachment.report["merged_size"],
            sha256=attachment.report["merged_sha256"],
            chosen_format="judge_only",
            created_by=user,
        )
        Attachment.objects.filter(pk=attachment.pk).update(made=made)
        engine.wake(tasks.read_version, version_id=made.pk)
    return made


def attachment_discard(*, attachment: Attachment) -> bool:
    """Throw a matched or waiting file away; the version stays as it is. False if it was decided before."""
    undecided = Attachment.objects.filter(pk=attachment.pk).exclude(state__in=(State.USED, State.DISCARDED))
    if not undecided.update(state=State.DISCARDED, owner="", lease_until=None):
        return False
    work = _work(attachment)
    _forget(work.answers, work.target, work.unmatched)
    return True


def reconcile() -> None:
    """Have answers matched again whose worker is gone, wake for all that wait, and forget what nobody decided on."""
    for attachment in Attachment.objects.filter(state=State.MATCHING):
        expired = attachment.lease_until is None or attachment.lease_until < timezone.now()
        if expired or not engine.is_alive(attachment.owner):
            held = Attachment.objects.filter(pk=attachment.pk, state=State.MATCHING, owner=attachment.owner)
            held.update(state=State.WAITING, owner="", lease_until=None, done=0)
    for attachment_id in Attachment.objects.filter(state=State.WAITING).values_list("pk", flat=True):
        engine.wake(tasks.match_answers, attachment_id=attachment_id)
    old = Attachment.objects.filter(created_at__lt=timezone.now() - KEPT_FOR, state=State.MATCHED)
    for attachment in old.select_related("version")[:10]:
        attachment_discard(attachment=attachment)
