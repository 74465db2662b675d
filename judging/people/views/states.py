"""The page of a study's dates and pilot."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evalsite import access
from evalsite.access import May
from judging.people.access import get_evaluation
from judging.people.change_effects import end_effects
from judging.people.models import Evaluation
from judging.people.states import Schedule, schedule_change, schedule_check


def _moment_field(label: Any, help_text: Any) -> forms.DateTimeField:
    widget = forms.DateTimeInput(format="%Y-%m-%dT%H:%M", attrs={"type": "datetime-local", "class": "input"})
    return forms.DateTimeField(label=label, required=False, widget=widget, help_text=help_text)


class RaterNames(forms.MultipleChoiceField):
    """Raters of the evaluation, by id."""

    widget = forms.CheckboxSelectMultiple


class ScheduleForm(forms.Form):
    """The dates of a study; while it is a draft also its start and its pilot."""

    starts_at = _moment_field(gettext_lazy("Opens at"), gettext_lazy("A draft then opens by itself."))
    ends_at = _moment_field(
        gettext_lazy("Closes at"),
        gettext_lazy("It then closes by itself; unsubmitted ratings are kept as drafts."),
    )
    pilot_items = forms.IntegerField(
        label=gettext_lazy("Items of the pilot"),
        min_value=1,
        max_value=2**31 - 1,
        required=False,
        help_text=gettext_lazy("Only these are rated first, by the raters below. Leave empty for no pilot."),
    )
    pilot_raters = RaterNames(label=gettext_lazy("Raters of the pilot"), required=False)

    def __init__(self, data: Any, evaluation: Evaluation) -> None:
        raters = evaluation.raters.filter(left_at=None).select_related("user").order_by("pk")
        initial = {name: getattr(evaluation, name) for name in ("starts_at", "ends_at", "pilot_items")}
        super().__init__(data, initial={**initial, "pilot_raters": [str(r.pk) for r in raters if r.in_pilot]})
        names = [(str(rater.pk), f"{rater.pseudonym} · {rater.user.username}") for rater in raters]
        self.fields["pilot_raters"].choices = names  # type: ignore[attr-defined]
        if evaluation.state != "draft":
            for name in ("starts_at", "pilot_items", "pilot_raters"):
                del self.fields[name]
        elif not names:
            del self.fields["pilot_raters"]

    def schedule(self, evaluation: Evaluation) -> Schedule:
        """Call after is_valid."""
        sent = self.cleaned_data
        return Schedule(
            starts_at=sent.get("starts_at", evaluation.starts_at),
            ends_at=sent["ends_at"],
            pilot_items=sent.get("pilot_items"),
            pilot_raters=[int(pk) for pk in sent.get("pilot_raters", ())],
        )


@login_required
def schedule(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Change a study's dates, and the pilot of a draft; the end of a running one after what it does was confirmed."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    form = ScheduleForm(request.POST if request.method == "POST" else None, evaluation)
    effects: list[str] = []
    if request.method == "POST" and form.is_valid():
        try:
            schedule_check(evaluation, form.schedule(evaluation))
            effects = end_effects(evaluation, form.cleaned_data["ends_at"])
            if not effects or "confirmed" in request.POST:
                by = access.signed_in(request)
                schedule_change(evaluation=evaluation, schedule=form.schedule(evaluation), by=by)
                messages.success(request, _("Saved."))
                return redirect("people:detail", slug, pk)
        except ValidationError as error:
            for field, texts in error.message_dict.items():
                form.add_error(field if field in form.fields else None, texts)
    context = {"evaluation": evaluation, "form": form, "zone": settings.TIME_ZONE}
    context["effects"] = [] if form.errors else effects
    return render(request, "people/schedule.html", context, status=422 if form.errors else 200)
