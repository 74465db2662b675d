"""Uploading files, and the sample files."""

from __future__ import annotations

from typing import Any, BinaryIO, cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import TooManyFilesSent, ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.csrf import csrf_protect

from datasets import services, uploads
from datasets.access import LOOK
from datasets.core.imports.batches import are_joined
from datasets.forms import UploadForm
from datasets.models import Dataset, FileImport, Version
from datasets.versions import file_import, parts
from datasets.versions.uploaded_files import source_files_of
from datasets.views import file_import as file_import_page
from datasets.views import format_guide, upload_refused, uploaded
from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project
from evalsite.templatetags.show import number
from evalsite.web.numbers import whole
from evalsite.web.request_limits import RequestTooLarge, allow, upload_page

DRAFTS = 10  # unconfirmed imports listed on the upload page


@upload_page
@login_required
def upload(request: HttpRequest, slug: str) -> HttpResponse:
    """Check permission and size before the body is read, so that a rejected upload fills no disk."""
    project = access.get_project(request, slug, May.UPLOAD)
    allow(request, uploads.limit_bytes(), uploads.too_large_sentence())
    try:
        return _upload(request, project)
    except TooManyFilesSent:
        raise RequestTooLarge(_too_many_sentence()) from None


@csrf_protect
def _upload(request: HttpRequest, project: Project) -> HttpResponse:
    if request.method != "POST":
        name = _further_version_of(request, project)
        form = UploadForm(initial={"name": name, "together": "parts" if name else "each"})
        return render(request, "datasets/upload.html", _context(project, form))
    form = UploadForm(request.POST, request.FILES)
    if form.is_valid():
        sent_files = form.cleaned_data["files"]
        name, chosen_format = form.cleaned_data["name"], form.cleaned_data["chosen_format"]
        common = {"project": project, "user": access.signed_in(request), "chosen_format": chosen_format}
        try:
            if len(sent_files) > 1:
                return uploaded(request, _store_several(request, form.cleaned_data, common))
            (file,) = sent_files
            draft = _of_another_tool(sent_files, name, common)
            if draft is not None:
                return uploaded(request, file_import_page.address(draft))
            version = services.dataset_upload(name=name, file=file, file_name=file.name or "", **common)
            return uploaded(request, _address(project, version))
        except ValidationError as error:
            form.add_error(None, error)
    return upload_refused(request, form, "datasets/upload.html", _context(project, form))


def _store_several(request: HttpRequest, wanted: dict[str, Any], common: dict[str, Any]) -> str:
    """Store several files and return the URL to redirect to; ValidationError if none could be stored."""
    sent_files, project = wanted["files"], common["project"]
    are_parts = wanted["together"] == "parts"
    draft = _of_another_tool(sent_files, wanted["name"], common, tables=are_parts)
    if draft is not None:
        return file_import_page.address(draft)
    if not are_parts:
        to_confirm = _store_each(request, sent_files, common)
        return reverse("datasets:upload" if to_confirm else "datasets:list", args=[project.slug])
    named = [(cast(BinaryIO, file), file.name or "") for file in sent_files]
    version = parts.dataset_upload_parts(name=wanted["name"], named_files=named, **common)
    text = _("%(count)s files were joined into one data set.")
    messages.success(request, text % {"count": number(len(sent_files))})
    return _address(project, version)


def _of_another_tool(
    sent: list[UploadedFile[bytes]], name: str, common: dict[str, Any], *, tables: bool = True
) -> FileImport | None:
    """A draft if the files are one tool's, a table or, with `tables`, parts of one; else None."""
    if common["chosen_format"]:
        return None
    files = source_files_of(sent)
    source = file_import.recognised(files)
    if source is None or (source.name == file_import.TABLE and not tables and not are_joined(files)):
        return None
    named_files = [(cast(BinaryIO, file), file.name or "") for file in sent]
    return file_import.draft_of_files(
        project=common["project"], name=name, named_files=named_files, source=source, user=common["user"]
    )


def _store_each(
    request: HttpRequest, sent_files: list[UploadedFile[bytes]], common: dict[str, Any]
) -> list[FileImport]:
    """Store each file separately; return the imports to confirm. A rejected file does not affect the others."""
    drafts = {file: draft for file in sent_files if (draft := _of_another_tool([file], "", common))}
    others = [(file, file.name or "") for file in sent_files if file not in drafts]
    taken, refused = services.datasets_upload(named_files=others, **common)
    sentences = [
        _("“%(name)s” was not uploaded: %(problem)s") % {"name": name, "problem": problem}
        for name, problem in refused
    ]
    if not taken and not drafts:
        raise ValidationError(sentences)
    if taken:
        text = ngettext(
            "%(count)s file uploaded: %(names)s.", "%(count)s files uploaded: %(names)s.", len(taken)
        )
        messages.success(request, text % _counted([version.file_name for version in taken]))
    if drafts:
        text = ngettext(
            "%(count)s file is an import to confirm: %(names)s.",
            "%(count)s files are imports to confirm: %(names)s.",
            len(drafts),
        )
        messages.info(request, text % _counted([draft.files[0]["name"] for draft in drafts.values()]))
    for sentence in sentences:
        messages.error(request, sentence)
    return list(drafts.values())


def _counted(names: list[str]) -> dict[str, str]:
    return {"count": number(len(names)), "names": _(", ").join(names)}


def _too_many_sentence() -> str:
    text = _("An upload can have at most %(most)s files. Nothing was saved. Upload fewer at a time.")
    return text % {"most": settings.DATA_UPLOAD_MAX_NUMBER_FILES}


def _address(project: Project, version: Version) -> str:
    return reverse("datasets:version", args=[project.slug, version.dataset_id, version.number])


def _context(project: Project, form: UploadForm) -> dict[str, Any]:
    drafts = FileImport.objects.filter(project=project, new_version=None).select_related("created_by")
    return {
        "form": form,
        "formats": format_guide.formats(),
        "most_files": settings.DATA_UPLOAD_MAX_NUMBER_FILES,
        "drafts": drafts.order_by("-pk")[:DRAFTS],
        "limits": uploads.limits(),
    }


@login_required
def formats(request: HttpRequest, slug: str) -> HttpResponse:
    """The format guide."""
    access.get_project(request, slug, LOOK)
    context = {
        "formats": format_guide.formats(),
        "kinds": format_guide.kinds(),
        "limits": uploads.limits(),
    }
    return render(request, "datasets/guide.html", context)


def _further_version_of(request: HttpRequest, project: Project) -> str:
    """The name of the data set in ?dataset=, if it belongs to the project."""
    named = Dataset.objects.filter(project=project, pk=whole(request.GET.get("dataset", "")) or 0)
    return named.values_list("name", flat=True).first() or ""


@login_required
def sample(request: HttpRequest, slug: str, name: str) -> FileResponse:
    """One of the sample files."""
    access.get_project(request, slug, LOOK)
    path = next((path for path in uploads.sample_files().values() if path.name == name), None)
    if path is None:
        raise Http404
    return FileResponse(path.open("rb"), as_attachment=True, filename=name)
