"""Importing verdicts from elsewhere through the API."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from ninja import Router, Schema

from datasets.selectors import usable_versions
from datasets.uploads import limit_bytes, too_large_sentence
from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project
from evalsite.api.errors import form_refused
from evalsite.api.lists import Id
from evalsite.api.uploads import answer_upload, multipart, one_file_of
from evalsite.api.waiting import Wait, wait_until
from judging.core.results_file.records import RefusedLine
from judging.messages import refused_sentence
from judging.transfer.results_import.access import get_results_import
from judging.transfer.results_import.forms import ResultsForm
from judging.transfer.results_import.models import ResultsImport
from judging.transfer.results_import.services import file_problem, import_begin, import_confirm

router = Router()
URL_NAME = "results_import"


class RefusedOut(Schema):
    line: int
    code: str
    message: str


class ImportOut(Schema):
    """`state`: `checking`, `checked` (with `dry`; nothing was stored), `importing`, `done` or `failed`. `run`: its id,
    once it exists. `new` verdicts, `same` ones that the run has already, `refused` lines, the first of them in
    `lines`."""

    id: int
    name: str
    state: str
    run: int | None
    new: int
    same: int
    refused: int
    lines: list[RefusedOut]
    problem: str
    url: str


@router.post(
    "projects/{slug}/runs/import",
    response={202: ImportOut},
    url_name=URL_NAME,
    summary="Import results",
    openapi_extra=multipart(
        version={"type": "string", "required": True, "description": "The id of the version that was judged."},
        name={"type": "string", "maxLength": 200, "description": "Of the run; empty: the file's."},
    ),
)
def import_results(
    request: HttpRequest, slug: str, dry: bool = False, strict: bool = False, wait: Wait = 0
) -> HttpResponseBase:
    """A results file, or a file of another tool, becomes a run, or adds to the imported run of that name; the same file
    changes nothing. Lines that don't fit are left out and told; with `strict=1`, nothing is imported then. `dry=1` only
    checks, until `…/confirm`. `wait`: seconds for the result."""
    project = access.get_project(request, slug, May.RUN)
    return answer_upload(
        request, limit_bytes(), too_large_sentence(), lambda: _import(request, project, dry, strict, wait)
    )


def _import(request: HttpRequest, project: Project, dry: bool, strict: bool, wait: int) -> HttpResponseBase:
    file = one_file_of(request)
    form = ResultsForm(
        request.POST, request.FILES, project=project, versions=usable_versions(project), version=""
    )
    if not form.is_valid():
        raise form_refused(form)
    begun = import_begin(
        **form.cleaned_data, file_name=file.name or "", by=access.signed_in(request), check=dry, strict=strict
    )
    _wait(request, begun, wait)
    return JsonResponse(import_out(begun), status=202)


@router.get(
    "projects/{slug}/runs/import/{results_import}", response=ImportOut, summary="An import of results"
)
def results_import(request: HttpRequest, slug: str, results_import: Id) -> dict[str, Any]:
    """How far it is, and what was left out."""
    return import_out(get_results_import(request, slug, results_import))


@router.post(
    "projects/{slug}/runs/import/{results_import}/confirm",
    response={202: ImportOut},
    summary="Confirm an import of results",
)
def confirm(request: HttpRequest, slug: str, results_import: Id, wait: Wait = 0) -> HttpResponseBase:
    """Take the lines that fit of a file that was checked with `dry=1`."""
    checked = get_results_import(request, slug, results_import)
    import_confirm(checked)
    _wait(request, checked, wait)
    return JsonResponse(import_out(checked), status=202)


def _wait(request: HttpRequest, results_import: ResultsImport, seconds: int) -> None:
    def has_ended() -> bool:
        results_import.refresh_from_db()
        return not results_import.under_way

    has_ended()
    wait_until(request, has_ended, seconds)


def import_out(results_import: ResultsImport) -> dict[str, Any]:
    """An import as the API shows it."""
    refused = [RefusedLine(line, code, params) for line, code, params in results_import.listed]
    return {
        "id": results_import.pk,
        "name": results_import.name,
        "state": results_import.state,
        "run": results_import.run_id,
        "new": results_import.new,
        "same": results_import.same,
        "refused": results_import.refused,
        "lines": [
            {"line": entry.line, "code": entry.code, "message": refused_sentence(entry)} for entry in refused
        ],
        "problem": file_problem(results_import.problem, results_import.problem_params),
        "url": reverse("runs:results_import", args=[results_import.project.slug, results_import.pk]),
    }
