"""The first page and each project's own."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project
from judging.overview.selectors import RUNS_ON_A_CARD, latest_runs, project_steps

RUNS_ON_THE_PROJECT_PAGE = 10


@login_required
def home(request: HttpRequest) -> HttpResponse:
    """The visitor's projects, each with its latest runs where the visitor may read them."""
    runs = latest_runs(access.projects_where(request, May.READ_JUDGEMENTS), RUNS_ON_A_CARD)
    cards = [(project, runs.get(project.pk, [])) for project in access.projects_of(request.user)]
    return render(request, "home.html", {"cards": cards})


@login_required
def project(request: HttpRequest, slug: str) -> HttpResponse:
    """How far the project has come and what ran last."""
    found = access.get_project(request, slug, May.SEE)
    may = access.permissions(request, found)
    runs = []
    if May.READ_JUDGEMENTS in may:
        only_this = Project.objects.filter(pk=found.pk)
        runs = latest_runs(only_this, RUNS_ON_THE_PROJECT_PAGE).get(found.pk, [])
    steps = project_steps(found) if May.RUN in may else []
    finished = next((run for run in runs if run.state == "finished"), None)
    return render(request, "project.html", {"runs": runs, "steps": steps, "finished_run": finished})
