"""Uploading a file, and the sample files to start from."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.csrf import csrf_protect

from datasets import files, guide, services
from datasets.access import LOOK
from datasets.forms import UploadForm
from datasets.models import Dataset, Version
from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project
from evalsite.request_limits import allow, upload_page


@upload_page
@login_required
def upload(request: HttpRequest, slug: str) -> HttpResponse:
    """The guard stands before the body is read: who may not upload fills no disk, nor does a file beyond the limit."""
    project = access.get_project(request, slug, May.UPLOAD)
    allow(request, files.limit_bytes(), services.too_large_sentence())
    return _upload(request, project)


@csrf_protect
def _upload(request: HttpRequest, project: Project) -> HttpResponse:
    if request.method != "POST":
        form = UploadForm(initial={"name": _further_version_of(request, project)})
        return render(request, "datasets/upload.html", _context(form))
    form = UploadForm(request.POST, request.FILES)
    if not form.is_valid():
        return _answer_invalid(request, form)
    try:
        version = _keep(request, project, form.cleaned_data)
    except ValidationError as error:
        form.add_error(None, error)
        return _answer_invalid(request, form)
    if _wants_json(request):
        return JsonResponse({"address": _address(project, version)})
    return redirect(_address(project, version))


def _keep(request: HttpRequest, project: Project, wanted: dict[str, Any]) -> Version:
    return services.dataset_upload(
        project=project,
        name=wanted["name"],
        file=wanted["file"],
        file_name=wanted["file"].name or "",
        user=access.signed_in(request),
        chosen_format=wanted["chosen_format"],
    )


def _wants_json(request: HttpRequest) -> bool:
    """Sent by static/js/upload.js, which shows the progress; the plain form works too."""
    return request.headers.get("Accept") == "application/json"


def _answer_invalid(request: HttpRequest, form: UploadForm) -> HttpResponse:
    if _wants_json(request):
        sentences = [text for errors in form.errors.values() for text in errors]
        return JsonResponse({"errors": sentences}, status=422)
    return render(request, "datasets/upload.html", _context(form), status=422)


def _address(project: Project, version: Version) -> str:
    return reverse("datasets:version", args=[project.slug, version.dataset_id, version.number])


def _context(form: UploadForm) -> dict[str, Any]:
    return {"form": form, "formats": guide.formats(), **_limits()}


def _limits() -> dict[str, Any]:
    config = settings.CONFIG
    return {
        "max_bytes": files.limit_bytes(),
        "unpacked_max_bytes": config.unpacked_max_mb * 1024 * 1024,
        "row_max_bytes": config.row_max_kb * 1024,
        "row_values_max": config.row_values_max,
        "rows_max": config.rows_max,
    }


@login_required
def formats(request: HttpRequest, slug: str) -> HttpResponse:
    """The format guide."""
    access.get_project(request, slug, LOOK)
    context = {"formats": guide.formats(), "kinds": guide.kinds(), **_limits()}
    return render(request, "datasets/guide.html", context)


def _further_version_of(request: HttpRequest, project: Project) -> str:
    """The name of the data set that ?dataset= names, if it is one of the project's."""
    wanted = request.GET.get("dataset", "")
    found = (
        Dataset.objects.filter(project=project, pk=int(wanted[:18])).first() if wanted.isdecimal() else None
    )
    return found.name if found else ""


@login_required
def sample(request: HttpRequest, slug: str, name: str) -> FileResponse:
    """One of the sample files."""
    access.get_project(request, slug, LOOK)
    path = next((path for path in files.sample_files().values() if path.name == name), None)
    if path is None:
        raise Http404
    return FileResponse(path.open("rb"), as_attachment=True, filename=name)
