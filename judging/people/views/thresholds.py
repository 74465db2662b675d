"""The page on which thresholds of raters' figures are set."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evalsite.access import May, signed_in
from evalsite.rounding import shortest
from judging.people.access import get_evaluation
from judging.people.models import Evaluation
from judging.people.thresholds import SET, thresholds_change, thresholds_of, thresholds_refused

FACTORS = {name: 1.0 if name == "deviation" else 100.0 for name in SET}
"""Those that are shares are shown in percent."""


def _field(label: Any, help_text: Any = "") -> forms.FloatField:
    return forms.FloatField(label=label, help_text=help_text, widget=forms.NumberInput(attrs={"step": "any"}))


class ThresholdsForm(forms.Form):
    """Shares in percent, the deviation in steps of 1–5."""

    time = _field(gettext_lazy("Median time under, in % of the others' median"))
    side = _field(gettext_lazy("One side over, in %"), gettext_lazy("Comparisons only."))
    value = _field(gettext_lazy("One value over, in %"))
    agreement = _field(gettext_lazy("Agreement below the others' mean by, in points"))
    deviation = _field(
        gettext_lazy("Deviation from the others' mean over, in steps"),
        gettext_lazy("On 1–5; scaled to other scales."),
    )
    repeats = _field(gettext_lazy("Same on repeat under, in %"))

    def clean(self) -> dict[str, float]:
        """Refuse what is out of range."""
        for name, text in thresholds_refused(self.cleaned_data, FACTORS).items():
            self.add_error(name, text)
        return self.cleaned_data

    def values(self) -> dict[str, float]:
        """By name, shares as 0…1. Call after is_valid."""
        return {name: self.cleaned_data[name] / FACTORS[name] for name in SET}


@login_required
def thresholds(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show and change them."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    form = ThresholdsForm(request.POST or None, initial=_initial(evaluation))
    if request.method == "POST" and form.is_valid():
        thresholds_change(evaluation=evaluation, values=form.values(), by=signed_in(request))
        messages.success(request, _("Thresholds saved. Flags follow them."))
        return redirect("people:detail", slug, pk)
    context = {"evaluation": evaluation, "form": form}
    return render(request, "people/thresholds.html", context, status=422 if form.errors else 200)


def _initial(evaluation: Evaluation) -> dict[str, str]:
    now = thresholds_of(evaluation)
    return {name: shortest(getattr(now, name) * FACTORS[name], 2) for name in SET}
