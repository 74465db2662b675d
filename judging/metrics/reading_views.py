"""How replies are read: a page where a pasted reply is read as a metric would read it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from datasets.core.kinds import CATEGORY, COMPARISON, PASS_FAIL, SCORE
from datasets.messages import translated
from evalsite import access
from evalsite.access import May
from judging.core.reading.forms import FORMS
from judging.core.reading.gives import Gives
from judging.core.reading.reader import Reading, read_reply
from judging.markdown import marked_as_written
from judging.messages import reason_sentence, verdict_text

MOST_REPLY = 50_000  # characters
MOST_LABELS = 5_000


class ReplyForm(forms.Form):
    reply = forms.CharField(
        label=gettext_lazy("The judge's reply"),
        max_length=MOST_REPLY,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 8}),
    )
    gives = forms.ChoiceField(
        label=gettext_lazy("What does the judge give?"),
        initial=SCORE,
        choices=[
            (PASS_FAIL, gettext_lazy("Pass or fail")),
            (SCORE, gettext_lazy("Score")),
            (CATEGORY, gettext_lazy("Category")),
            (COMPARISON, gettext_lazy("Comparison")),
        ],
    )
    name = forms.CharField(label=gettext_lazy("The metric's name"), required=False, max_length=200)
    min_score = forms.FloatField(label=gettext_lazy("Lowest score"), initial=1, min_value=-1e9, max_value=1e9)
    max_score = forms.FloatField(
        label=gettext_lazy("Highest score"), initial=10, min_value=-1e9, max_value=1e9
    )
    whole = forms.BooleanField(label=gettext_lazy("Whole numbers only"), required=False)
    labels = forms.CharField(
        label=gettext_lazy("Labels of a category, one per line"),
        required=False,
        max_length=MOST_LABELS,
        widget=forms.Textarea(attrs={"rows": 3}),
    )

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if values.get("min_score", 0) >= values.get("max_score", 10**10):
            self.add_error("max_score", _("The highest score must be above the lowest."))
        return values

    def gives_of(self) -> Gives:
        values = self.cleaned_data
        labels = tuple(label.strip() for label in values["labels"].splitlines() if label.strip())
        return Gives(
            values["gives"],
            values["name"],
            values["min_score"],
            values["max_score"],
            whole=values["whole"],
            labels=labels,
        )


@login_required
@require_http_methods(["GET", "POST"])
def reading(request: HttpRequest, slug: str) -> HttpResponse:
    """The table of forms, and a pasted reply with what is read from it. Nothing is stored."""
    access.get_project(request, slug, May.METRICS)
    form = ReplyForm(request.POST or None, label_suffix="")
    context: dict[str, Any] = {"form": form, "forms": _forms()}
    if form.is_bound and form.is_valid():
        reply = form.cleaned_data["reply"].replace("\r\n", "\n")
        context["read"] = _shown(reply, read_reply(reply, form.gives_of()))
    return render(request, "metrics/reading.html", context)


def _forms() -> list[tuple[str, str, str]]:
    """(name, where it is read, example) of each form."""
    return [(translated(kind.name), translated(kind.rule), kind.example) for kind in FORMS.values()]


def _shown(reply: str, read: Reading) -> dict[str, Any]:
    marks = [candidate.evidence for candidate in read.candidates]
    if read.value is not None and read.evidence:
        marks = [read.evidence]
    return {
        "value": verdict_text(read.value),
        "why": reason_sentence(read.reason, read.detail) if read.reason else "",
        "reason": read.reason,
        "form": translated(FORMS[read.form].name) if read.form else "",
        "reply": marked_as_written(reply, marks),
    }
