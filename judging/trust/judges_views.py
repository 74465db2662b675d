"""The page of a project's judges."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from evalsite import access
from evalsite.access import May
from judging.trust.judges import RUNS_SHOWN, judges_of


@login_required
@require_GET
def judges(request: HttpRequest, slug: str) -> HttpResponse:
    """Every version of a metric with a judge model: agreement with people, licence, and the runs that rest on it."""
    project = access.get_project(request, slug, May.READ_JUDGEMENTS)
    after = request.GET.get("after", "")
    page, further = judges_of(project, after)
    context = {"judges": page, "after": after, "further": further, "runs_shown": f":{RUNS_SHOWN}"}
    return render(request, "trust/judges.html", context)
