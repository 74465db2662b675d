"""Access to imports of results."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project
from judging.transfer.results_import.models import ResultsImport


def get_results_import(request: HttpRequest, slug: str, pk: int) -> ResultsImport:
    """An import of the project `slug`. Requires May.RUN; raises Http404 or PermissionDenied."""
    project = access.get_project(request, slug, May.RUN)
    joined = ("version__dataset", "run", "created_by")
    return get_object_or_404(imports_of(project).select_related(*joined), pk=pk)


def imports_of(project: Project) -> QuerySet[ResultsImport]:
    """The project's imports, without those of deleted runs and versions."""
    imports = ResultsImport.objects.filter(project=project, version__deleted_at=None)
    return imports.exclude(run__deleted_at__isnull=False)
