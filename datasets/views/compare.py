"""Differences between two versions of a data set."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRefresh

from datasets import selectors
from datasets.access import get_ready_version
from datasets.importing import queue_status
from datasets.models import Difference, DifferenceKind, Version
from datasets.versions import compare, row_diff
from datasets.views import number_asked
from evalsite.models import Job
from evalsite.tasks import workers
from evalsite.web.headers import part_wanted
from evalsite.web.numbers import whole


@login_required
@require_POST
def choose(request: HttpRequest, slug: str, dataset: int, number: int) -> HttpResponse:
    """Start a comparison with the version named in the form."""
    new = get_ready_version(request, slug, dataset, number)
    old = get_ready_version(request, slug, dataset, whole(request.POST.get("since", "")) or 0)
    if old.pk == new.pk:
        raise Http404
    compare.difference_ask(old=old, new=new)
    return redirect("datasets:changes_since", slug, dataset, number, old.number)


@login_required
def changes(request: HttpRequest, slug: str, dataset: int, number: int, old: int) -> HttpResponse:
    """The progress of the comparison, then the differences in pages."""
    new_version = get_ready_version(request, slug, dataset, number)
    old_version = get_ready_version(request, slug, dataset, old)
    if old_version.pk == new_version.pk:
        raise Http404
    difference = Difference.objects.filter(old=old_version, new=new_version).first()
    context = _context(difference, old_version, new_version)
    if difference is not None and difference.ready:
        if part_wanted(request):
            return HttpResponseClientRefresh()
        context |= _page(request, difference, old_version, new_version)
    template = "datasets/_difference_progress.html" if part_wanted(request) else "datasets/differences.html"
    return render(request, template, context)


def _context(difference: Difference | None, old: Version, new: Version) -> dict[str, Any]:
    job = compare.job_of(difference) if difference else None
    return {
        "difference": difference,
        "job": job,
        "version": new,
        "old": old,
        "others": selectors.other_ready_versions(new),
        "all_rows": old.rows + new.rows,
        "unfinished": job is not None and job.state != Job.State.FAILED,
        "first": queue_status.for_further_work(new.dataset.project),
        "unattended": workers.obstacle(workers.DATA),
    }


def _page(request: HttpRequest, difference: Difference, old: Version, new: Version) -> dict[str, Any]:
    kind = request.GET.get("kind", "")
    kind = kind if kind in DifferenceKind.values else ""
    after, before = number_asked(request, "after"), number_asked(request, "before")
    page = compare.page(difference, kind=kind, after=after, before=before)
    counts = {"changed": difference.changed, "added": difference.added, "removed": difference.removed}
    return {
        "page": page,
        "kind": kind,
        "kinds": [(name, DifferenceKind(name).label, number) for name, number in counts.items() if number],
        "total": sum(counts.values()),
        "row_diffs": row_diff.row_diffs(page.rows, old, new),
    }
