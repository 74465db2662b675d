"""A reviewer's pending work: the queue of a project, and the inbox over all projects."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from evalsite import access
from evalsite.access import May, signed_in
from evalsite.accounts.models import Project, User
from evalsite.web.numbers import whole
from evalsite.web.paging import newest_first
from judging.records.models import Run
from judging.teamwork.inbox import mark_read, notices_of, unread_of
from judging.teamwork.models import Mark, Notice

PER_PAGE = 50


def queue_of(user: User, projects: QuerySet[Project]) -> list[Run]:
    """The runs in which judgements are assigned to the user, each with their number as `waiting`."""
    marks = Mark.objects.current().filter(user=user, run__project__in=projects, run__archived_at=None)
    counts = dict(marks.values_list("run").annotate(count=Count("*")).order_by())
    runs = list(Run.objects.filter(pk__in=counts).select_related("project").order_by("project", "-pk"))
    for run in runs:
        run.waiting = counts[run.pk]  # type: ignore[attr-defined]
    return runs


def unread_notices(request: HttpRequest) -> QuerySet[Notice]:
    """The user's unread notices."""
    return unread_of(signed_in(request), access.projects_where(request, May.READ_JUDGEMENTS))


@login_required
def mine(request: HttpRequest, slug: str) -> HttpResponse:
    """Everything in the project that is assigned to the user, by run."""
    project = access.get_project(request, slug, May.READ_JUDGEMENTS)
    runs = queue_of(signed_in(request), Project.objects.filter(pk=project.pk))
    return render(request, "review/mine.html", {"queue": runs})


@login_required
def inbox(request: HttpRequest) -> HttpResponse:
    """Mentions and assignments, newest first."""
    user = signed_in(request)
    notices = notices_of(user, access.projects_where(request, May.READ_JUDGEMENTS))
    before = whole(request.GET.get("before", ""))
    page, further = newest_first(notices, PER_PAGE, before)
    context = {"notices": page, "further": further, "paged": before is not None}
    return render(request, "review/inbox.html", context)


@login_required
@require_POST
def read(request: HttpRequest) -> HttpResponse:
    """Mark one notice or all as read; then redirect to its target, if requested."""
    mark_read(signed_in(request), whole(request.POST.get("only", "")))
    there = request.POST.get("next", "")
    here = url_has_allowed_host_and_scheme(there, allowed_hosts={request.get_host()})
    return redirect(there if here else reverse("inbox"))
