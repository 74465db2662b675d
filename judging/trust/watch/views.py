"""Pages of a watch: beginning it, what it found, its schedule and ceilings, and its end."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import signed_in
from judging.core.statistics.watch import BASELINE, FEWEST_SENTINELS, USUAL_SENTINELS
from judging.engine.budget import MILLION
from judging.trust.access import ACT, MANAGE, get_licence
from judging.trust.models import Licence
from judging.trust.selectors import licence_state
from judging.trust.watch.access import get_watch
from judging.trust.watch.forms import BeginForm, CeilingsForm, ScheduleForm
from judging.trust.watch.models import Watch
from judging.trust.watch.page import watch_page
from judging.trust.watch.services import (
    price_of,
    usual_ceiling,
    watch_begin,
    watch_ceilings,
    watch_end,
    watch_schedule,
)


@login_required
def begin(request: HttpRequest, slug: str, licence: int) -> HttpResponse:
    """What a watch of a licensed judge costs; a POST begins it."""
    row = get_licence(request, slug, licence, ACT)
    if watched := row.watches.filter(ended_at=None).first():
        return redirect("trust:watch", slug, watched.pk)
    usual = min(USUAL_SENTINELS, max(FEWEST_SENTINELS, len(row.answers)))
    sent = request.POST if request.method == "POST" else request.GET if "sentinels" in request.GET else None
    form = BeginForm(sent, initial={"sentinels": usual})
    number = form.cleaned_data["sentinels"] if form.is_bound and form.is_valid() else usual
    if request.method == "POST" and form.is_valid():
        try:
            watch = watch_begin(
                licence=row, sentinels=number, schedule=form.cleaned_data["schedule"], user=signed_in(request)
            )
        except ValidationError as error:
            form.add_error(None, error)
        else:
            messages.success(
                request, _("The watch has begun. It learns what the judge says now before it tests anything.")
            )
            return redirect("trust:watch", slug, watch.pk)
    return render(
        request,
        "trust/watch/begin.html",
        _begin_context(row, form, number),
        status=422 if form.errors else 200,
    )


def _begin_context(licence: Licence, form: BeginForm, number: int) -> dict[str, Any]:
    price = price_of(licence, number)
    return {
        "metric": licence.metric_version.metric,
        "licence": licence,
        "state": licence_state(licence),
        "form": form,
        "number": number,
        "too_few": len(licence.answers) < FEWEST_SENTINELS,
        "sitting": price,
        "baseline": price.times(BASELINE) if price else None,
        "ceiling": usual_ceiling(price) if price else None,
    }


@login_required
@require_GET
def watch(request: HttpRequest, slug: str, watch: int) -> HttpResponse:
    """The state of a watch, its checks and what it can see."""
    return _page(request, get_watch(request, slug, watch))


def _page(request: HttpRequest, row: Watch, status: int = 200, **more: Any) -> HttpResponse:
    page = watch_page(row)
    context = {
        "metric": row.licence.metric_version.metric,
        "licence": row.licence,
        "watch": row,
        "page": page,
        "schedule_form": ScheduleForm(initial={"schedule": row.schedule}),
        "ceilings_form": _ceilings_form(row, None),
        **more,
    }
    return render(request, "trust/watch/watch.html", context, status=status)


def _ceilings_form(row: Watch, data: Any) -> CeilingsForm:
    price = price_of(row.licence, len(row.sentinels))
    money = None if row.ceiling_money is None else row.ceiling_money / MILLION
    initial = {"calls": row.ceiling_calls, "money": money}
    return CeilingsForm(data, initial=initial, currency=price.currency if price else "")


@login_required
@require_POST
def schedule(request: HttpRequest, slug: str, watch: int) -> HttpResponse:
    """Change when checks are made."""
    row = get_watch(request, slug, watch, ACT)
    form = ScheduleForm(request.POST)
    if form.is_valid():
        try:
            watch_schedule(watch=row, schedule=form.cleaned_data["schedule"], user=signed_in(request))
        except ValidationError as error:
            form.add_error(None, error)
        else:
            messages.success(request, _("Schedule saved."))
            return redirect("trust:watch", slug, row.pk)
    return _page(request, row, 422, schedule_form=form)


@login_required
@require_POST
def ceilings(request: HttpRequest, slug: str, watch: int) -> HttpResponse:
    """Change what a month may cost."""
    row = get_watch(request, slug, watch, MANAGE)
    form = _ceilings_form(row, request.POST)
    if form.is_valid():
        try:
            watch_ceilings(
                watch=row, calls=form.cleaned_data["calls"], money=form.millionths, user=signed_in(request)
            )
        except ValidationError as error:
            form.add_error(None, error)
        else:
            messages.success(request, _("Ceilings saved."))
            return redirect("trust:watch", slug, row.pk)
    return _page(request, row, 422, ceilings_form=form)


@login_required
@require_POST
def end(request: HttpRequest, slug: str, watch: int) -> HttpResponse:
    """Make no more checks."""
    row = get_watch(request, slug, watch, ACT)
    watch_end(watch=row, user=signed_in(request))
    messages.success(request, _("The watch has ended. What it measured stays."))
    return redirect("trust:watch", slug, row.pk)
