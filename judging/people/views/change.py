"""Change a running study after its effects were confirmed."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evalsite.access import May, signed_in
from judging.people.access import get_evaluation
from judging.people.change_effects import effects_of
from judging.people.changes import (
    MOST_OVERLAP,
    StudyChange,
    rows_left,
    rows_refused,
    study_change,
    study_change_check,
)
from judging.people.models import Evaluation


class ChangeForm(forms.Form):
    """Raters per item, share of gold, and rows to add."""

    overlap = forms.IntegerField(
        label=gettext_lazy("Raters for each item"), min_value=1, max_value=MOST_OVERLAP
    )
    gold_share = forms.IntegerField(
        label=gettext_lazy("Gold items, % of a rater's items"), min_value=0, max_value=50
    )
    rows = forms.IntegerField(
        label=gettext_lazy("Rows to add"),
        min_value=0,
        required=False,
        help_text=gettext_lazy("Drawn at random from the rows that are not in this evaluation yet."),
    )

    def __init__(self, data: Any, evaluation: Evaluation) -> None:
        initial = {"overlap": evaluation.overlap, "gold_share": round(100 * evaluation.gold_share), "rows": 0}
        super().__init__(data, initial=initial)
        self.evaluation = evaluation
        why, left = rows_refused(evaluation), rows_left(evaluation)
        if why or not left:
            del self.fields["rows"]
            self.without_rows = why or _("All rows are in this evaluation.")

    without_rows = ""

    def change(self) -> StudyChange:
        """Call after is_valid. An unchanged percentage keeps the exact share."""
        sent, share = self.cleaned_data, self.evaluation.gold_share
        if sent["gold_share"] != round(100 * share):
            share = sent["gold_share"] / 100
        return StudyChange(sent["overlap"], share, sent.get("rows") or 0)


@login_required
def change(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show what a change would do to the ratings so far, and apply it once that is confirmed."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    form = ChangeForm(request.POST if request.method == "POST" else None, evaluation)
    effects: list[str] = []
    if request.method == "POST" and form.is_valid():
        try:
            study_change_check(evaluation, form.change())
            effects = effects_of(evaluation, form.change())
            if not effects:
                messages.info(request, _("Nothing was changed."))
                return redirect("people:change", slug, pk)
            if "confirmed" in request.POST:
                study_change(evaluation=evaluation, change=form.change(), by=signed_in(request))
                messages.success(request, _("Changed."))
                return redirect("people:detail", slug, pk)
        except ValidationError as error:
            _add_errors(form, error)
    context = {"evaluation": evaluation, "form": form, "effects": [] if form.errors else effects}
    return render(request, "people/change.html", context, status=422 if form.errors else 200)


def _add_errors(form: ChangeForm, error: ValidationError) -> None:
    by_field = error.message_dict if hasattr(error, "error_dict") else {"": error.messages}
    for field, texts in by_field.items():
        form.add_error(field if field in form.fields else None, texts)
