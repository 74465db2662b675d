"""The home page and the project pages."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from datasets.selectors import listed_datasets
from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project
from evalsite.web.headers import part_wanted
from judging import guides
from judging.overview import search as searching
from judging.overview.selectors import RUNS_ON_A_CARD, latest_runs, project_steps, samples_in_other_languages
from judging.people.inviting.offers import offers_to
from judging.people.selectors import evaluations_page, rating_tasks
from judging.review.teamwork.inbox import queue_of, unread_notices
from judging.rule_messages import reader_language
from judging.runs.selectors import workers_missing

RUNS_ON_THE_PROJECT_PAGE = 10
EVALUATIONS_SHOWN = 5
NOTICES_SHOWN = 5
HITS_IN_THE_PALETTE = 5  # per kind
HITS_ON_THE_PAGE = 50


@login_required
def home(request: HttpRequest) -> HttpResponse:
    """The user's projects, each with its latest runs if the user may read them."""
    projects = list(access.open_projects_of(request.user))
    elsewhere = samples_in_other_languages([project.slug for project in projects], reader_language())
    readable = access.projects_where(request, May.READ_JUDGEMENTS).exclude(slug__in=elsewhere)
    runs = latest_runs(readable, RUNS_ON_A_CARD)
    readable_ids = set(readable.values_list("pk", flat=True))
    cards = [
        (project, runs.get(project.pk, []) if project.pk in readable_ids else None)
        for project in projects
        if project.slug not in elsewhere
    ]
    finished = next((run for some in runs.values() for run in some if run.state == "finished"), None)
    rated = access.projects_where(request, May.RATE).exclude(slug__in=elsewhere)
    mine = rating_tasks(access.signed_in(request), rated)
    archived = access.projects_where(request, May.MANAGE).exclude(archived_at=None)
    rates_only = bool(cards) and all(runs is None for _, runs in cards)
    context = {"cards": cards, "rates_only": rates_only, "archived": archived, "finished_run": finished}
    context |= _waits(
        duties=[duty for duty in mine if duty.left],
        offers=offers_to(access.signed_in(request), rated),
        notices=list(unread_notices(request)[:NOTICES_SHOWN]),
        queue=queue_of(access.signed_in(request), access.projects_where(request, May.REVIEW)),
    )
    return render(request, "home.html", context)


def _waits(**waiting: list[Any]) -> dict[str, Any]:
    """The user's pending work, and whether there is any."""
    return {**waiting, "waits": any(waiting.values())}


@login_required
def project(request: HttpRequest, slug: str) -> HttpResponse:
    """The project's progress and latest runs."""
    project = access.get_project(request, slug, May.SEE)
    may = access.permissions(request, project)
    only_this = Project.objects.filter(pk=project.pk)
    reads = May.READ_JUDGEMENTS in may
    runs = latest_runs(only_this, RUNS_ON_THE_PROJECT_PAGE).get(project.pk, []) if reads else []
    steps = project_steps(project) if May.RUN in may else []
    counts = {step.code: step.count for step in steps}
    if counts:
        counts["dataset"] = listed_datasets(
            project
        ).count()  # as many as their list; steps count the usable ones
    if all(step.state == "done" for step in steps):
        steps = []  # done: newcomers' steps are no longer needed
    rates = May.RATE in may
    mine = rating_tasks(access.signed_in(request), only_this) if rates else []
    context = _waits(
        duties=[duty for duty in mine if duty.left],
        offers=offers_to(access.signed_in(request), only_this) if rates else [],
        queue=queue_of(access.signed_in(request), only_this) if reads else [],
    )
    if reads:
        context["evaluations"] = evaluations_page(project)[0][:EVALUATIONS_SHOWN]
    finished = next((run for run in runs if run.state == "finished"), None)
    waiting = workers_missing(run for run in runs if not run.only_worker)
    context |= {
        "runs": runs,
        "steps": steps,
        "counts": counts,
        "finished_run": finished,
        "worker_missing": waiting,
    }
    return render(request, "project.html", context)


@login_required
def search(request: HttpRequest) -> HttpResponse:
    """Everything that the user may open, by name: as a page, and as the list of the Ctrl+K palette."""
    wanted, slug = request.GET.get("q", ""), request.GET.get("project", "")
    here = access.open_projects_of(request.user).filter(slug=slug).first() if slug else None
    palette = part_wanted(request)
    most = HITS_IN_THE_PALETTE if palette else HITS_ON_THE_PAGE
    context = {"q": wanted, "groups": searching.search(request, wanted, here, most)}
    if palette:
        return render(request, "overview/_hits.html", context)
    request.project = here  # type: ignore[attr-defined]  # the page's frame shows where one is
    return render(request, "search.html", context)


@login_required
def guide(request: HttpRequest, page: str) -> HttpResponse:
    """A page of the user guide, in the reader's language or that of `in`, next to the list of all pages."""
    if page not in guides.GUIDES:
        raise Http404
    title, html = guides.guide(page, request.GET.get("in", ""), lambda name: reverse("guide", args=[name]))
    groups = [
        (_("Guides"), guides.titles(guides.TASKS)),
        (_("Kinds of verdicts"), guides.titles(guides.KINDS)),
        (pgettext("documentation", "Reference"), guides.titles(guides.REFERENCE)),
        (_("Other tools"), guides.titles(guides.TOOLS)),
    ]
    context = {"title": title, "html": html, "here": page, "groups": groups}
    return render(request, "overview/guide.html", context)
