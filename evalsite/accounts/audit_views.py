"""Audit log pages: of a project for its administrators, of the whole site for site administrators."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render

from evalsite import access
from evalsite.accounts import audit_log
from evalsite.accounts.audit_log import LogFilter, csv_lines, entries_of
from evalsite.accounts.models import Project
from evalsite.web.numbers import whole


@login_required
def project_log(request: HttpRequest, slug: str) -> HttpResponse:
    """The changes in a project."""
    return _log(request, access.get_project(request, slug, access.May.MANAGE))


@login_required
def project_log_csv(request: HttpRequest, slug: str) -> HttpResponseBase:
    """The same entries as CSV."""
    project = access.get_project(request, slug, access.May.MANAGE)
    return _csv(request, project, f"log-{project.slug}.csv")


@login_required
def site_log(request: HttpRequest) -> HttpResponse:
    """All changes on the site; superusers only."""
    _refuse_others(request)
    return _log(request, None)


@login_required
def site_log_csv(request: HttpRequest) -> HttpResponseBase:
    """The same entries as CSV."""
    _refuse_others(request)
    return _csv(request, None, "log.csv")


def _refuse_others(request: HttpRequest) -> None:
    if not access.manages_site(request):
        raise PermissionDenied


def _log(request: HttpRequest, project: Project | None) -> HttpResponse:
    everything, chosen = entries_of(project), LogFilter.read(request.GET)
    shown = audit_log.page(
        chosen.of(everything),
        before=whole(request.GET.get("before", "")),
        after=whole(request.GET.get("after", "")),
    )
    context = {
        "page": shown,
        "chosen": chosen,
        "people": audit_log.people_in(everything),
        "actions": audit_log.actions_in(everything),
        "csv": f"{request.path}export.csv?{request.GET.urlencode()}",
    }
    return render(request, "accounts/log.html", context)


def _csv(request: HttpRequest, project: Project | None, name: str) -> StreamingHttpResponse:
    entries = LogFilter.read(request.GET).of(entries_of(project))
    answer = StreamingHttpResponse(csv_lines(entries), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer
