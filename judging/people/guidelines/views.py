"""The page of an evaluation's guideline: its versions, and the form that changes it after a confirmation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evalsite.access import May, signed_in
from evalsite.templatetags.show import percent, score
from judging.core.people.criteria import Criterion
from judging.core.people.guideline_shift import Shift
from judging.markdown import html_of
from judging.people.access import get_evaluation
from judging.people.change_effects import version_effects
from judging.people.guidelines.models import GuidelineVersion
from judging.people.guidelines.reading import readings_of
from judging.people.guidelines.selectors import VersionLine, version_lines
from judging.people.guidelines.services import (
    LONGEST_GUIDELINE,
    GuidelineTexts,
    guideline_change,
    guideline_check,
)
from judging.people.models import Evaluation


def _text_field(label: Any, rows: int) -> forms.CharField:
    widget = forms.Textarea(attrs={"rows": rows, "class": "input"})
    return forms.CharField(label=label, required=False, max_length=LONGEST_GUIDELINE, widget=widget)


class GuidelineForm(forms.Form):
    """The guideline for all criteria and each criterion's definition, with the version that the person sees."""

    seen = forms.IntegerField(widget=forms.HiddenInput)
    guideline = _text_field(gettext_lazy("Guideline for all criteria"), 8)

    def __init__(self, data: Any, evaluation: Evaluation) -> None:
        texts = GuidelineTexts.of(evaluation)
        initial = {"seen": evaluation.guideline_version, "guideline": texts.guideline}
        own = {f"criterion_{place}": text for place, text in texts.criteria.items()}
        super().__init__(data, initial={**initial, **own})
        self.criteria = evaluation.criteria
        for place, criterion in self.criteria.items():
            label = _("Definition of %(name)s") % {"name": criterion.name}
            self.fields[f"criterion_{place}"] = _text_field(label, 4)

    def texts(self) -> GuidelineTexts:
        """Call after is_valid."""
        own = {place: self.cleaned_data[f"criterion_{place}"] for place in self.criteria}
        return GuidelineTexts(self.cleaned_data["guideline"], own)


@dataclass(frozen=True, slots=True)
class VersionShown:
    """A version on the page. `shifts`: [(criterion name, shift as text)]; `texts`: [(heading, HTML)]."""

    line: VersionLine
    shifts: Sequence[tuple[str, str]]
    texts: Sequence[tuple[str, SafeString]]


@login_required
def guideline(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show the versions and change the guideline; a running evaluation's only after its effects were confirmed."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    form = GuidelineForm(request.POST if request.method == "POST" else None, evaluation)
    context: dict[str, Any] = {"evaluation": evaluation, "form": form}
    if request.method == "POST" and form.is_valid():
        try:
            done = _change(request, evaluation, form)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            if done:
                return redirect("people:guideline", slug, pk)
            context["effects"] = version_effects(evaluation)
    context["readings"] = [] if evaluation.state == "draft" else readings_of(evaluation)
    context["versions"] = [_shown(evaluation, line) for line in version_lines(evaluation)]
    return render(request, "people/guideline.html", context, status=422 if form.errors else 200)


def _change(request: HttpRequest, evaluation: Evaluation, form: GuidelineForm) -> bool:
    """Whether it is done; False if the person must confirm it first. Raises ValidationError."""
    texts, seen = form.texts(), form.cleaned_data["seen"]
    if not guideline_check(evaluation=evaluation, texts=texts, seen=seen):
        messages.info(request, _("Nothing was changed."))
        return True
    if version_effects(evaluation) and "confirmed" not in request.POST:
        return False
    change = guideline_change(evaluation=evaluation, texts=texts, seen=seen, by=signed_in(request))
    if change is not None and change.version is not None:
        messages.success(request, _("Version %(n)s begins.") % {"n": change.version.number})
    else:
        messages.success(request, _("Saved."))
    return True


def _shown(evaluation: Evaluation, line: VersionLine) -> VersionShown:
    shifts = [
        (criterion.name, shift_text(criterion, shift))
        for criterion, shift in line.shifts
        if shift.estimate.mean is not None
    ]
    return VersionShown(line, shifts, texts_of(evaluation, line.version))


def texts_of(evaluation: Evaluation, version: GuidelineVersion) -> list[tuple[str, SafeString]]:
    """The texts of a version: [(criterion name, or '' for all, HTML)]."""
    own = [
        (criterion.name, version.criteria.get(str(place), ""))
        for place, criterion in evaluation.criteria.items()
    ]
    return [(name, html_of(text)) for name, text in (("", version.guideline), *own) if text]


def shift_text(criterion: Criterion, shift: Shift) -> str:
    """A shift with its interval: “+0.4 (0.1 to 0.7)” or “20 % changed (8 % to 40 %)”."""
    estimate = shift.estimate
    if shift.is_mean:
        figures = [score(value, 2) for value in (estimate.mean, estimate.low, estimate.high)]
        if estimate.mean is not None and estimate.mean > 0:
            figures[0] = f"+{figures[0]}"
    else:
        figures = [percent(value, 0) for value in (estimate.mean, estimate.low, estimate.high)]
        figures[0] = _("%(share)s changed") % {"share": figures[0]}
    if estimate.low is None:
        return figures[0]
    return _("%(mean)s (%(low)s to %(high)s)") % dict(zip(("mean", "low", "high"), figures, strict=True))
