"""The page of a project's thresholds for licences."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evalsite import access
from evalsite.access import May, signed_in
from judging.core.statistics.uses import Thresholds
from judging.trust.services import fingerprints_suspend, thresholds_change, thresholds_of


def _field(label: Any, help_text: Any) -> forms.FloatField:
    return forms.FloatField(label=label, min_value=0, max_value=1, help_text=help_text)


class ThresholdsForm(forms.Form):
    """The least lower ends, on 0…1."""

    trends_rate = _field(gettext_lazy("Trends: rates"), gettext_lazy("Of passes and of failures, 0 to 1."))
    trends_kappa = _field(
        gettext_lazy("Trends: kappa"), gettext_lazy("Of scores, comparisons and categories.")
    )
    gates_rate = _field(gettext_lazy("Gates: rates"), gettext_lazy("At least that of trends."))
    gates_kappa = _field(gettext_lazy("Gates: kappa"), gettext_lazy("At least that of trends."))
    fingerprints_suspend = forms.BooleanField(
        label=gettext_lazy("A server fingerprint that was not seen in the test suspends a licence"),
        required=False,
    )


@login_required
def thresholds(request: HttpRequest, slug: str) -> HttpResponse:
    """Change the thresholds of later openings."""
    project = access.get_project(request, slug, May.MANAGE)
    initial = asdict(thresholds_of(project)) | {"fingerprints_suspend": fingerprints_suspend(project)}
    form = ThresholdsForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        suspend = form.cleaned_data.pop("fingerprints_suspend")
        try:
            thresholds_change(
                project=project,
                thresholds=Thresholds(**form.cleaned_data),
                fingerprints=suspend,
                user=signed_in(request),
            )
        except ValidationError as error:
            form.add_error(None, error)
        else:
            messages.success(request, _("Saved. Licences that were given keep their thresholds."))
            return redirect("trust:judges", slug)
    return render(request, "trust/thresholds.html", {"form": form}, status=422 if form.errors else 200)
