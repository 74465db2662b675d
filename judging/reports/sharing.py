"""Shared reports: links for readers without an account, which show figures only, until a date or until revoked; and a
report as one file."""

from __future__ import annotations

from datetime import timedelta

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import User
from evalsite.audit import Action, record
from evalsite.links import link_to_copy
from evalsite.secrets import hashed, new_secret
from judging.records.access import get_run
from judging.records.models import Run
from judging.reports.figures import RunFigures, for_page
from judging.reports.links import Links
from judging.reports.models import ReportLink
from judging.reports.page.report_view import EACH_METRIC, PageOptions, view_of

SHEETS = ("tokens", "site", "charts")
DAYS = (7, 30, 90, 365)


class NoReportLink(Exception):
    """The link is unknown, expired or revoked, or its report can't be shared now; the response does not say which."""


def may_be_shared(run: Run) -> bool:
    """False for an open human evaluation: its raters must not learn whose answers they rate."""
    return run.ended or not run.by_people


@transaction.atomic
def report_link_create(*, run: Run, note: str, days: int, by: User) -> tuple[ReportLink, str]:
    """Create a link. Returns it with its secret, which is not stored."""
    secret = new_secret()
    link = ReportLink.objects.create(
        run=run,
        note=note,
        token_hash=hashed(secret),
        created_by=by,
        expires_at=timezone.now() + timedelta(days=days),
    )
    until = link.expires_at.isoformat(timespec="minutes")
    record(
        Action.REPORT_SHARED, project=run.project, thing=link, name=run.name, by=by, note=note, until=until
    )
    return link, secret


@transaction.atomic
def report_link_revoke(*, link: ReportLink) -> bool:
    """Revoke a link. False if it was revoked before."""
    if not ReportLink.objects.filter(pk=link.pk, revoked_at=None).update(revoked_at=timezone.now()):
        return False
    run = link.run
    record(Action.REPORT_UNSHARED, project=run.project, thing=link, name=run.name, note=link.note)
    return True


def report_links(run: Run) -> QuerySet[ReportLink]:
    """All links to a run's report, newest first."""
    return ReportLink.objects.filter(run=run).select_related("created_by").order_by("-pk")


def shared_run(*, secret: str) -> Run:
    """The run of a valid link. Raises NoReportLink."""
    link = (
        ReportLink.objects.filter(token_hash=hashed(secret), revoked_at=None, expires_at__gt=timezone.now())
        .filter(run__archived_at=None, run__project__archived_at=None)
        .select_related("run__project", "run__version__dataset")
        .first()
    )
    if link is None or not may_be_shared(link.run):
        raise NoReportLink
    return link.run


class LinkForm(forms.Form):
    """A link's note and its lifetime."""

    note = forms.CharField(label=gettext_lazy("Note"), max_length=200, required=False)
    days = forms.TypedChoiceField(label=gettext_lazy("Expires after"), coerce=int, initial=30)

    def __init__(self, data: object = None) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        self.fields["days"].choices = [(days, _("%(n)s days") % {"n": days}) for days in DAYS]  # type: ignore[attr-defined]


def _run_to_share(request: HttpRequest, slug: str, pk: int) -> Run:
    """A run whose report the user may share: requires permission to start runs. Raises Http404 or PermissionDenied."""
    run = get_run(request, slug, pk)
    if May.RUN not in access.permissions(request, run.project):
        raise PermissionDenied
    return run


@login_required
def links(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The links to a report, and a form for a new one, whose secret is shown once."""
    run = _run_to_share(request, slug, pk)
    form = LinkForm(request.POST if request.method == "POST" else None)
    address = ""
    if request.method == "POST" and may_be_shared(run) and form.is_valid():
        by = access.signed_in(request)
        _link, secret = report_link_create(run=run, by=by, **form.cleaned_data)
        address = link_to_copy(request, "shared_report", secret)
        form = LinkForm()
    context = {"run": run, "form": form, "links": report_links(run), "address": address}
    context["may_be_shared"] = may_be_shared(run)
    return render(request, "reports/links.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def revoke(request: HttpRequest, slug: str, pk: int, link_pk: int) -> HttpResponse:
    """Revoke a link."""
    run = _run_to_share(request, slug, pk)
    link = get_object_or_404(ReportLink.objects.select_related("run__project"), run=run, pk=link_pk)
    if report_link_revoke(link=link):
        messages.success(request, _("The link no longer opens the report."))
    return redirect("runs:report_links", slug, pk)


@require_safe
def shared(request: HttpRequest, secret: str) -> HttpResponse:
    """The report behind a link: figures, no items."""
    try:
        run = shared_run(secret=secret)
    except NoReportLink:
        raise Http404 from None
    stored = for_page(run)
    columns, difference = tuple(request.GET.getlist("column")), request.GET.get("difference", "")
    options = PageOptions(request.GET.get("metric", ""), columns, by="", difference=difference)
    report = stored and view_of(run, stored, Links.none(), options)
    response = render(request, "reports/shared.html", {"run": run, "report": report, "options": options})
    response["X-Robots-Tag"] = "noindex, nofollow"
    response["Referrer-Policy"] = "no-referrer"
    return response


def report_html(run: Run, stored: RunFigures) -> bytes:
    """The whole report as one standalone file: all metrics, inline styles, no links to items."""
    report = view_of(run, stored, Links.none(), PageOptions(metric=EACH_METRIC, by=""))
    folder = settings.BASE_DIR / "static" / "css"
    styles = "\n".join((folder / f"{name}.css").read_text(encoding="utf-8") for name in SHEETS)
    return render_to_string("reports/file.html", {"run": run, "report": report, "styles": styles}).encode()
