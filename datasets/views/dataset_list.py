"""The list of data sets, and archiving."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from datasets import selectors, services
from datasets.access import LOOK, get_dataset
from datasets.models import Dataset
from evalsite import access, archiving
from evalsite.access import May
from evalsite.accounts.models import Project
from evalsite.audit import Action
from evalsite.tasks import workers
from evalsite.web.numbers import whole


@login_required
def datasets(request: HttpRequest, slug: str) -> HttpResponse:
    """The project's data sets, active or archived."""
    project = access.get_project(request, slug, LOOK)
    archived = request.GET.get("archived") == "1"
    before = request.GET.get("before", "")
    lines, further = selectors.datasets_page(project, archived=archived, before=whole(before))
    unread = any(line.version.state in services.OPEN_STATES for line in lines)
    context = {
        "unattended": workers.obstacle(workers.DATA) if unread else "",
        "lines": lines,
        "further": further,
        "archived": archived,
        "just_archived": _just_archived(request, project),
    }
    return render(request, "datasets/list.html", context)


def _just_archived(request: HttpRequest, project: Project) -> Dataset | None:
    """The data set that was just archived, for the notice with undo."""
    wanted = whole(request.GET.get("undo", ""))
    if wanted is None or May.UPLOAD not in access.permissions(request, project):
        return None
    return Dataset.objects.filter(project=project, pk=wanted, archived_at__isnull=False).first()


@login_required
def dataset(request: HttpRequest, slug: str, dataset: int) -> HttpResponse:
    """Redirect to the newest version."""
    dataset_row = get_dataset(request, slug, dataset)
    newest = selectors.versions_of(dataset_row).first()
    if newest is None:
        return redirect("datasets:list", slug)
    return redirect("datasets:version", slug, dataset_row.pk, newest.number)


@login_required
@require_POST
def archive(request: HttpRequest, slug: str, dataset: int) -> HttpResponse:
    """Archive: hide from the list without deleting anything."""
    dataset_row = get_dataset(request, slug, dataset, May.UPLOAD)
    archiving.archive(dataset_row, Action.DATASET_ARCHIVED, dataset_row.project)
    return redirect(f"{reverse('datasets:list', args=[slug])}?undo={dataset_row.pk}")


@login_required
@require_POST
def restore(request: HttpRequest, slug: str, dataset: int) -> HttpResponse:
    """Restore an archived data set."""
    dataset_row = get_dataset(request, slug, dataset, May.UPLOAD)
    archiving.restore(dataset_row, Action.DATASET_RESTORED, dataset_row.project)
    messages.success(request, _("“%(name)s” was restored.") % {"name": dataset_row.name})
    return redirect("datasets:dataset", slug, dataset_row.pk)
