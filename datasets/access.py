"""Access checks for data sets and their versions: a function here returns the object or raises."""

from __future__ import annotations

from django.db.models import Q
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from datasets.models import Attachment, Dataset, FileImport, Version, VersionState
from evalsite import access
from evalsite.access import May

# Not May.SEE: raters of a blind evaluation must not see here which model wrote which answer.
LOOK = May.READ_JUDGEMENTS


def get_dataset(request: HttpRequest, slug: str, dataset_id: int, may: May = LOOK) -> Dataset:
    """A data set of the project called `slug`. Raises Http404 or PermissionDenied."""
    project = access.get_project(request, slug, may)
    dataset = get_object_or_404(Dataset, project=project, pk=dataset_id)
    dataset.project = project
    return access.loaded(request, dataset)


def get_version(request: HttpRequest, slug: str, dataset_id: int, number: int, may: May = LOOK) -> Version:
    """Version `number` of a data set of the project called `slug`. Raises Http404 or PermissionDenied."""
    project = access.get_project(request, slug, may)
    versions = Version.objects.select_related("dataset", "left_out_by", "created_by", "parent")
    shown = versions.filter(dataset__project=project, number__gt=0)
    version = get_object_or_404(shown, dataset=dataset_id, number=number)
    version.dataset.project = project
    return access.loaded(request, version)


def get_ready_version(
    request: HttpRequest, slug: str, dataset_id: int, number: int, may: May = LOOK
) -> Version:
    """Like `get_version`, but raises Http404 unless the version has been read completely."""
    version = get_version(request, slug, dataset_id, number, may)
    if version.state != VersionState.READY:
        raise Http404
    return version


def get_attachment(
    request: HttpRequest, slug: str, dataset_id: int, number: int, attachment_id: int
) -> Attachment:
    """Uploaded answers to be attached to a version. Requires May.UPLOAD; raises Http404 or PermissionDenied."""
    version = get_ready_version(request, slug, dataset_id, number, May.UPLOAD)
    attachments = Attachment.objects.filter(version=version).select_related("new_version", "created_by")
    attachment = get_object_or_404(attachments, pk=attachment_id)
    attachment.version = version
    return access.loaded(request, attachment)


def get_file_import(request: HttpRequest, slug: str, draft_id: int) -> FileImport:
    """An import of another tool's files. Requires May.UPLOAD; raises Http404 or PermissionDenied."""
    project = access.get_project(request, slug, May.UPLOAD)
    drafts = FileImport.objects.filter(project=project).select_related("new_version", "version")
    drafts = drafts.exclude(Q(version__deleted_at__isnull=False) | Q(new_version__deleted_at__isnull=False))
    draft = get_object_or_404(drafts, pk=draft_id)
    draft.project = project
    return access.loaded(request, draft)
