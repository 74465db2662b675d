"""New versions from old ones: repairs, and answers of further models."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from ninja import Field, Schema

from datasets import uploads
from datasets.access import get_attachment, get_ready_version, get_version
from datasets.api.routes import router
from datasets.api.uploading import UploadOut, made
from datasets.core.attach import PROBLEMS
from datasets.core.repair.apply import Repair
from datasets.forms import AnswersForm
from datasets.messages import translated
from datasets.models import Attachment, Version
from datasets.versions import attach
from datasets.versions.repair import LONGEST_NAME, version_repair
from evalsite import access
from evalsite.access import May
from evalsite.api.errors import form_refused
from evalsite.api.lists import Id
from evalsite.api.uploads import answer_upload, multipart, one_file_of
from evalsite.api.waiting import Wait, wait_until

VERSION = "projects/{slug}/datasets/{dataset}/versions/{number}"
ANSWERS = "version_answers"


class RepairIn(Schema):
    """A repair of the names that findings give. `unify_model_names` takes the name to use as `value`, in place of
    `replaces`."""

    name: str = Field(max_length=100)
    value: str = Field("", max_length=LONGEST_NAME)
    replaces: str = Field("", max_length=LONGEST_NAME)


class RepairsIn(Schema):
    repairs: list[str | RepairIn] = Field(min_length=1, max_length=100)


class AnswersOut(Schema):
    """A file of answers that is matched to a version's rows. `state`: `waiting`, `matched` (nothing became a version:
    see `matched` and `confirm_turns`), `used`, `discarded` or `failed`. `version`: the new one's number. `unmatched`:
    {reason: number}. `confirm_turns`: answers without earlier turns although their rows have some; send them again
    with `same_turns=1`."""

    id: int
    state: str
    version: int | None
    lines: int
    matched: int
    unmatched: dict[str, int]
    reasons: dict[str, str]
    models: dict[str, int]
    confirm_turns: int
    problem: str


@router.post(f"{VERSION}/repairs", response={202: UploadOut, 200: UploadOut}, summary="Repair a version")
def repairs(
    request: HttpRequest, slug: str, dataset: Id, number: Id, body: RepairsIn, wait: Wait = 0
) -> HttpResponseBase:
    """A new version with these repairs; this one stays as it is. 200: that version exists already."""
    version = get_version(request, slug, dataset, number, May.UPLOAD)
    wanted = [
        Repair(repair) if isinstance(repair, str) else Repair(repair.name, repair.value, repair.replaces)
        for repair in body.repairs
    ]
    repaired, is_new = version_repair(version=version, repairs=wanted, user=access.signed_in(request))
    return made(request, repaired, wait, 202 if is_new else 200)


@router.post(
    f"{VERSION}/answers",
    response={202: AnswersOut},
    url_name=ANSWERS,
    summary="Add answers of a model",
    openapi_extra=multipart(
        match_by={"type": "string", "enum": ["", "id", "line", "prompt"]},
        model_name={"type": "string", "description": "Of a legacy file: who wrote its responses."},
        same_turns={
            "type": "string",
            "description": "Take answers that come without their rows' earlier turns.",
        },
    ),
)
def answers(request: HttpRequest, slug: str, dataset: Id, number: Id, wait: Wait = 0) -> HttpResponseBase:
    """What matches becomes a new version; this one stays as it is. Matched in the background: `GET …/answers/{id}`
    tells how far it is. `wait`: seconds for it."""
    version = get_ready_version(request, slug, dataset, number, May.UPLOAD)
    if not version.valid_rows:
        raise Http404
    return answer_upload(
        request, uploads.limit_bytes(), uploads.too_large_sentence(), lambda: _attach(request, version, wait)
    )


def _attach(request: HttpRequest, version: Version, wait: int) -> HttpResponseBase:
    one_file_of(request)
    form = AnswersForm(request.POST, request.FILES)
    if not form.is_valid():
        raise form_refused(form)
    attachment = attach.answers_upload(
        version=version,
        file_name=form.cleaned_data["file"].name or "",
        user=access.signed_in(request),
        take=attach.Take.ALWAYS if request.POST.get("same_turns") else attach.Take.MATCHED,
        **form.cleaned_data,
    )

    def is_matched() -> bool:
        attachment.refresh_from_db()
        return attachment.state != attach.State.WAITING

    wait_until(request, is_matched, wait)
    return JsonResponse(answers_out(attachment), status=202)


@router.get(f"{VERSION}/answers/{{attachment}}", response=AnswersOut, summary="Answers that are being added")
def added_answers(request: HttpRequest, slug: str, dataset: Id, number: Id, attachment: Id) -> dict[str, Any]:
    """What matched, what did not, and the version that was made."""
    return answers_out(get_attachment(request, slug, dataset, number, attachment))


def answers_out(attachment: Attachment) -> dict[str, Any]:
    """A file of answers as the API shows it."""
    report, new_version = attachment.report, attachment.new_version
    problems: dict[str, int] = report.get("problems", {})
    return {
        "id": attachment.pk,
        "state": attachment.state,
        "version": new_version.number if new_version else None,
        "lines": report.get("lines", 0),
        "matched": report.get("matched", 0),
        "unmatched": problems,
        "reasons": {code: translated(PROBLEMS[code]) for code in problems},
        "models": report.get("models", {}),
        "confirm_turns": report.get("last_only", 0) if attachment.state == attach.State.MATCHED else 0,
        "problem": attach.problem_sentence(attachment),
    }
