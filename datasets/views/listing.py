"""The list of data sets, and taking one out of it."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from datasets import selectors, services
from datasets.access import LOOK, get_dataset
from evalsite import access
from evalsite.access import May


@login_required
def datasets(request: HttpRequest, slug: str) -> HttpResponse:
    """The project's data sets, or those that were archived."""
    project = access.get_project(request, slug, LOOK)
    archived = request.GET.get("archived") == "1"
    before = request.GET.get("before", "")
    lines, further = selectors.datasets_page(
        project, archived=archived, before=int(before) if before.isdecimal() else None
    )
    context = {"lines": lines, "further": further, "archived": archived}
    return render(request, "datasets/list.html", context)


@login_required
def dataset(request: HttpRequest, slug: str, dataset: int) -> HttpResponse:
    """To the newest version."""
    found = get_dataset(request, slug, dataset)
    newest = selectors.versions_of(found).first()
    return (
        redirect("datasets:version", slug, found.pk, newest.number)
        if newest
        else redirect("datasets:list", slug)
    )


@login_required
@require_POST
def archive(request: HttpRequest, slug: str, dataset: int) -> HttpResponse:
    """Out of the list; nothing is deleted."""
    found = get_dataset(request, slug, dataset, May.UPLOAD)
    services.dataset_archive(dataset=found)
    text = _(
        "“%(name)s” is archived. Nothing was deleted; runs keep it. It can be restored from the archive."
    )
    messages.success(request, text % {"name": found.name})
    return redirect("datasets:list", slug)


@login_required
@require_POST
def restore(request: HttpRequest, slug: str, dataset: int) -> HttpResponse:
    """Back into the list."""
    found = get_dataset(request, slug, dataset, May.UPLOAD)
    services.dataset_restore(dataset=found)
    messages.success(request, _("“%(name)s” is back in the list.") % {"name": found.name})
    return redirect("datasets:dataset", slug, found.pk)
