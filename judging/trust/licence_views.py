"""The page of a licence, its date of expiry, and the end of a suspension."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import signed_in
from judging.trust.access import MANAGE, get_licence
from judging.trust.forms import ExpiryForm, LiftForm
from judging.trust.licence_page import licence_page
from judging.trust.models import Licence, Suspension
from judging.trust.services import licence_expire, licence_lift


@login_required
@require_GET
def licence(request: HttpRequest, slug: str, licence: int) -> HttpResponse:
    """What a judge may be used for, and the figures behind it."""
    return _page(request, get_licence(request, slug, licence))


def _page(request: HttpRequest, row: Licence, status: int = 200, **more: Any) -> HttpResponse:
    context = {
        "metric": row.metric_version.metric,
        "licence": row,
        "page": licence_page(row),
        "suspensions": row.suspensions.select_related("lifted_by").order_by("-pk"),
        "watches": row.watches.order_by("-pk"),
        "lift_form": LiftForm(),
        "expiry_form": ExpiryForm(
            initial={"expires_on": row.expires_at and timezone.localtime(row.expires_at).date()}
        ),
        **more,
    }
    return render(request, "trust/licence.html", context, status=status)


@login_required
@require_POST
def lift(request: HttpRequest, slug: str, licence: int, suspension: int) -> HttpResponse:
    """End a suspension with a reason."""
    row = get_licence(request, slug, licence, MANAGE)
    form = LiftForm(request.POST)
    if not form.is_valid():
        return _page(request, row, 422, lift_form=form)
    try:
        licence_lift(
            suspension=get_object_or_404(Suspension, licence=row, pk=suspension),
            reason=form.cleaned_data["reason"],
            user=signed_in(request),
        )
    except ValidationError as error:
        messages.error(request, error.messages[0])
    else:
        messages.success(request, _("The licence holds again."))
    return redirect("trust:licence", slug, row.pk)


@login_required
@require_POST
def expire(request: HttpRequest, slug: str, licence: int) -> HttpResponse:
    """Set the day on which a licence lapses, or none."""
    row = get_licence(request, slug, licence, MANAGE)
    form = ExpiryForm(request.POST)
    if not form.is_valid():
        return _page(request, row, 422, expiry_form=form)
    try:
        licence_expire(licence=row, day=form.cleaned_data["expires_on"], user=signed_in(request))
    except ValidationError as error:
        messages.error(request, error.messages[0])
    else:
        messages.success(request, _("Date saved."))
    return redirect("trust:licence", slug, row.pk)
