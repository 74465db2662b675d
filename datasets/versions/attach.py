"""Attaching answers: a file is stored, matched in the background, reviewed, and on confirmation made a new version."""

from __future__ import annotations

import uuid
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils import timezone

from datasets import services, uploads
from datasets.core.answer_file import MATCH_BY, ModelNameWanted, NoAnswers
from datasets.core.attach import AttachWork, attach
from datasets.core.findings import Finding
from datasets.core.texts import Text, gettext_noop
from datasets.importing import worker
from datasets.messages import message, translated
from datasets.models import Attachment, Version
from datasets.selectors import format_of
from datasets.versions import temp_files
from evalsite.accounts.models import User
from evalsite.audit import Action
from evalsite.storage import files
from evalsite.tasks import jobs
from evalsite.tasks.jobs import AWAY, GONE, UNEXPECTED, Hold

KEPT_FOR = timedelta(days=14)  # how long a matched file waits for a decision
MODEL_NAME_WANTED = "model_name_wanted"
JOB = "match_answers"
PROBLEMS: dict[str, Text] = {
    MODEL_NAME_WANTED: gettext_noop("Legacy file: name the model its responses come from."),
    GONE: gettext_noop("A stored file is missing. Upload the answers again."),
    AWAY: gettext_noop(
        "The file storage did not respond. The version is unchanged. Upload the answers again later."
    ),
    UNEXPECTED: gettext_noop("Matching failed unexpectedly; see the server's log. The version is unchanged."),
}
State, Take = Attachment.State, Attachment.Take


def answers_upload(
    *,
    version: Version,
    file: uploads.Incoming,
    file_name: str,
    model_name: str,
    match_by: str,
    user: User | None,
    take: str = "",
) -> Attachment:
    """Store a file of answers and have it matched to a version. `take`: an Attachment.Take, if what matches becomes a
    version without a decision. Raises ValidationError if it cannot be stored."""
    stored = services.store(file)
    with transaction.atomic():
        attachment = Attachment.objects.create(
            version=version,
            file_name=uploads.shown_name(file_name),
            stored_as=stored.stored_as,
            size=stored.size,
            model_name=model_name.strip(),
            match_by=match_by,
            take=take,
            created_by=user,
        )
        jobs.request(JOB, attachment.pk)
    return attachment


@transaction.atomic
def attachment_name(*, attachment: Attachment, model_name: str) -> bool:
    """Set the model of a legacy file and have it matched. False if the file was not waiting for a model name."""
    nameless = Attachment.objects.filter(
        pk=attachment.pk, state=State.FAILED, problem__code=MODEL_NAME_WANTED
    )
    if not nameless.update(state=State.WAITING, model_name=model_name.strip(), problem={}):
        return False
    jobs.request(JOB, attachment.pk)
    return True


def _failed(hold: Hold, attachment: Attachment, error: Exception) -> None:
    if isinstance(error, ModelNameWanted):
        problem: dict[str, Any] = {"code": MODEL_NAME_WANTED}
    elif isinstance(error, NoAnswers):
        problem = {"code": "file", "finding": asdict(error.findings[0])}
    else:
        problem = {"code": hold.problem(error)}
    _finish(hold, state=State.FAILED, problem=problem)


@transaction.atomic
def _finish(hold: Hold, **changes: object) -> None:
    hold.finish()
    Attachment.objects.filter(pk=hold.pk).update(**changes)


@jobs.job(JOB, Attachment, failed=_failed)
def match_answers(hold: Hold, attachment: Attachment) -> None:
    """Match the file and store the results under names of this attempt, placed in the transaction that records them."""
    with temp_files.work_folder(JOB, hold.pk) as folder:
        work = _work(attachment, folder, hold)
        report = attach(work, partial(_advance, hold))
        report_data = {**asdict(report), "unmatched": report.unmatched}
        report_data["merged_size"], report_data["merged_sha256"] = temp_files.written_out(work.target)
        attempt = f"{attachment.stored_as}.{uuid.uuid4().hex[:8]}"
        names = {work.target: f"{attempt}.merged", work.unmatched: f"{attempt}.unmatched"}
        merged_as, unmatched_as = names.values()
        with files.deleted_on_error(merged_as, unmatched_as):
            for path, name in names.items():
                files.send(path, name, hold.renew_at_times)
            with transaction.atomic():
                _finish(
                    hold,
                    state=State.MATCHED,
                    report=report_data,
                    merged_as=merged_as,
                    unmatched_as=unmatched_as,
                )
                for path, name in names.items():
                    files.place(path, name)
                _take(attachment)


def _take(attachment: Attachment) -> None:
    """Make the matched answers a version if that was decided at the upload."""
    attachment.refresh_from_db()
    last_only = attachment.report["last_only"] > 0
    if attachment.take == Take.ALWAYS or (attachment.take == Take.MATCHED and not last_only):
        attachment_use(attachment=attachment, user=attachment.created_by)


def _advance(hold: Hold, done: int, total: int) -> None:
    if hold.renew_at_times(done=done, total=total):
        worker.do_urgent_work(hold.stop)


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


def problem_sentence(attachment: Attachment) -> str:
    """Why a file could not be matched at all; '' if it could."""
    code = str(attachment.problem.get("code"))
    if code == "file":
        return message(Finding(**attachment.problem["finding"]))
    return translated(PROBLEMS[code]) if code in PROBLEMS else ""


def attachment_use(*, attachment: Attachment, user: User | None) -> Version | None:
    """Make the merged rows a new version, which is read like an upload. None if a decision was made before."""
    version = attachment.version
    with transaction.atomic():
        ours = Attachment.objects.filter(pk=attachment.pk, state=State.MATCHED)
        if not attachment.report.get("matched") or not ours.update(state=State.USED):
            return None
        new_version = services.version_from(
            version,
            "attach",
            file_name=f"{uploads.name_from(version.file_name)}.jsonl",
            stored_as=attachment.merged_as,
            size=attachment.report["merged_size"],
            sha256=attachment.report["merged_sha256"],
            chosen_format="judge_only",
        )
        services.version_add(new_version, Action.DATASET_ANSWERS, user)
        Attachment.objects.filter(pk=attachment.pk).update(new_version=new_version)
    return new_version


def attachment_discard(*, attachment: Attachment) -> bool:
    """Delete an undecided file and its results; the version stays unchanged. False if a decision was made before."""
    undecided = Attachment.objects.filter(pk=attachment.pk).exclude(state__in=(State.USED, State.DISCARDED))
    if not undecided.update(state=State.DISCARDED):
        return False
    jobs.cancel(JOB, attachment.pk)
    attachment.refresh_from_db(fields=["merged_as", "unmatched_as"])
    names = (attachment.stored_as, attachment.merged_as, attachment.unmatched_as)
    files.delete(*filter(None, names))
    return True


def delete_old() -> None:
    """Discard matched files for which nobody has decided."""
    old = Attachment.objects.filter(created_at__lt=timezone.now() - KEPT_FOR, state=State.MATCHED)
    for attachment in old.select_related("version")[:10]:
        attachment_discard(attachment=attachment)
