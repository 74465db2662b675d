"""The first page and each project's own."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project
from judging.overview.selectors import RUNS_ON_A_CARD, latest_runs, project_steps
from judging.people.selectors import duties, evaluations_page
from judging.runs.selectors import workers_missing

RUNS_ON_THE_PROJECT_PAGE = 10
EVALUATIONS_SHOWN = 5


@login_required
def home(request: HttpRequest) -> HttpResponse:
    """The visitor's projects, each with its latest runs where the visitor may read them."""
    runs = latest_runs(access.projects_where(request, May.READ_JUDGEMENTS), RUNS_ON_A_CARD)
    cards = [(project, runs.get(project.pk, [])) for project in access.open_projects_of(request.user)]
    mine = duties(access.signed_in(request), access.projects_where(request, May.RATE))
    archived = access.projects_where(request, May.MANAGE).exclude(archived_at=None)
    context = {"cards": cards, "archived": archived, "duties": [one for one in mine if one.left]}
    return render(request, "home.html", context)


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
    mine = duties(access.signed_in(request), Project.objects.filter(pk=found.pk)) if May.RATE in may else []
    context: dict[str, Any] = {"duties": [one for one in mine if one.left]}
    if May.READ_JUDGEMENTS in may:
        context["evaluations"] = evaluations_page(found)[0][:EVALUATIONS_SHOWN]
    finished = next((run for run in runs if run.state == "finished"), None)
    waiting = workers_missing(run for run in runs if not run.only_worker)
    context |= {"runs": runs, "steps": steps, "finished_run": finished, "worker_missing": waiting}
    return render(request, "project.html", context)
