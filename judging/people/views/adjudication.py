"""The disagreement inbox: items where raters differ, the anonymous verdicts on one, and the form for a decision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evalsite import access
from evalsite.access import May
from judging.core.people.criteria import Criterion, ValuesRefused
from judging.core.people.parts import Part, joined, parts_of
from judging.people.access import get_evaluation, get_item, rates_here
from judging.people.adjudication import (
    LEAST,
    ClosedTest,
    adjudicate,
    differing,
    verdicts,
    with_choices,
    with_questions,
)
from judging.people.item_criteria import criteria_for
from judging.people.item_view import shown_in
from judging.people.labels import (
    CriterionChoice,
    choices_of,
    labelled_values,
    problems_of,
    value_label,
    values_of,
)
from judging.people.marked_spans import marked_in
from judging.people.models import Evaluation, Item

SHOWN = 200


class DifferenceForm(forms.Form):
    """How far apart scores must be to be listed, in per cent of their scale's width."""

    least = forms.FloatField(
        label=gettext_lazy("Scores apart by at least, % of the scale"),
        min_value=0,
        max_value=100,
        help_text=gettext_lazy(
            "The width of 1–5 is 4: 25 % is one step. Labels are listed whenever they differ."
        ),
    )


def _least(request: HttpRequest) -> float:
    """The threshold in the address; the usual one if there is none or it is invalid."""
    form = DifferenceForm(request.GET)
    return form.cleaned_data["least"] / 100 if form.is_valid() else LEAST


def _within(request: HttpRequest, address: str) -> str:
    """An address of these pages that keeps the threshold."""
    return f"{address}?{urlencode({'least': request.GET['least']})}" if "least" in request.GET else address


class DecisionForm(forms.Form):
    """The decided value of each criterion, and the reason."""

    def __init__(self, data: Any, criteria: dict[int, Criterion]) -> None:
        super().__init__(data)
        self.criteria, self.parts = criteria, parts_of(criteria)
        for part in self.parts:
            self.fields[f"value_{part.key}"] = _field(part.criterion)
        self.fields["reason"] = forms.CharField(
            label=gettext_lazy("Reason"),
            max_length=20_000,
            error_messages={"required": gettext_lazy("Write the reason.")},
            widget=forms.Textarea(
                attrs={
                    "rows": 1,
                    "class": "input",
                    "placeholder": gettext_lazy("Reason (C)"),
                    "aria-label": gettext_lazy("Reason"),
                }
            ),
        )

    def rows(self) -> Iterator[tuple[Part, forms.BoundField, list[tuple[CriterionChoice, bool]]]]:
        """Each part with its form field, and choices as (choice, whether it is chosen)."""
        for part in self.parts:
            field = self[f"value_{part.key}"]
            chosen = str(field.value() or "")
            choices = [(choice, str(choice.place) == chosen) for choice in choices_of(part.criterion)]
            yield part, field, choices

    def values(self) -> dict[int, Any]:
        """{criterion number: value}. Call after is_valid."""
        by_key = {
            part.key: _value(part.criterion, self.cleaned_data[f"value_{part.key}"]) for part in self.parts
        }
        return joined(self.criteria, by_key)


def _field(criterion: Criterion) -> forms.Field:
    if criterion.scale == "text":
        area = forms.Textarea(attrs={"rows": 2})
        return forms.CharField(label=criterion.name, required=criterion.required, widget=area)
    choices = [(str(place), value_label(criterion, value)) for place, value in enumerate(criterion.choices)]
    return forms.ChoiceField(
        label=criterion.name,
        choices=choices if criterion.required else [("", "–"), *choices],
        required=criterion.required,
        widget=forms.RadioSelect,
    )


def _value(criterion: Criterion, sent: str) -> Any:
    if criterion.scale == "text":
        return sent
    return criterion.choices[int(sent)] if sent else None


@login_required
def inbox(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Items where raters differ, largest difference first."""
    evaluation = get_evaluation(request, slug, pk, May.REVIEW)
    if rates_here(request, evaluation.run):
        return render(request, "reports/hidden.html", {"run": evaluation.run})
    least = _least(request)
    entries = differing(evaluation, least)
    waiting = [entry for entry in entries if not entry.decided]
    decided = [entry for entry in entries if entry.decided]
    context = {"evaluation": evaluation, "waiting": with_questions(evaluation, waiting[:SHOWN])}
    context["decided"] = with_questions(evaluation, decided[:SHOWN])
    context |= {"waiting_count": len(waiting), "decided_count": len(decided)}
    percent = round(100 * least, 4)
    form = DifferenceForm(initial={"least": percent})
    context |= {"threshold": form, "percent": percent, "query": _within(request, "")}
    return render(request, "people/inbox.html", context)


@login_required
def item(request: HttpRequest, slug: str, pk: int, number: int) -> HttpResponse:
    """One item with all verdicts and comments, anonymous, and the decision form."""
    evaluation = get_evaluation(request, slug, pk, May.REVIEW)
    if rates_here(request, evaluation.run):
        return render(request, "reports/hidden.html", {"run": evaluation.run})
    item = get_item(evaluation, number)
    criteria = with_choices(criteria_for(evaluation, item), verdicts(item))
    form = DecisionForm(request.POST or None, criteria)
    if request.method == "POST" and form.is_valid() and _decide(request, item, form):
        messages.success(request, _("Decided. The original ratings are unchanged."))
        return redirect(_within(request, _following(evaluation, slug, number, _least(request))))
    said = [
        (labelled_values(criteria, values), comment, marked_in(criteria, item, values))
        for values, comment in verdicts(item)
    ]
    before = item.adjudications.select_related("by").order_by("-pk")
    earlier = [
        (labelled_values(criteria, values_of(adjudication.values)), adjudication) for adjudication in before
    ]
    context = {
        "evaluation": evaluation,
        "item": item,
        "shown": shown_in(evaluation, item, 1, with_reference=evaluation.shows_reference),
        "said": said,
        "earlier": earlier,
        "form": form,
        "later_url": _within(request, _following(evaluation, slug, number, _least(request))),
        "query": _within(request, ""),
    }
    return render(request, "people/adjudicate.html", context, status=422 if form.errors else 200)


def _following(evaluation: Evaluation, slug: str, number: int, least: float) -> str:
    """URL of the next undecided item: after this one, else from the beginning; else the inbox."""
    waiting = [
        entry.number for entry in differing(evaluation, least) if not entry.decided or entry.number == number
    ]
    at = waiting.index(number) if number in waiting else -1
    others = [other for other in (*waiting[at + 1 :], *waiting[: max(at, 0)]) if other != number]
    if not others:
        return reverse("people:inbox", args=(slug, evaluation.run_id))
    return reverse("people:adjudicate", args=(slug, evaluation.run_id, others[0]))


def _decide(request: HttpRequest, item: Item, form: DecisionForm) -> bool:
    try:
        adjudicate(
            item=item, values=form.values(), reason=form.cleaned_data["reason"], by=access.signed_in(request)
        )
    except ClosedTest:
        form.add_error(
            None,
            _(
                "This item is in a judge's test that was closed. Its labels count as they stood, until it is opened."
            ),
        )
        return False
    except ValuesRefused as refused:
        for number, why in problems_of(refused).items():
            part = next(part for part in form.parts if part.number == number)
            form.add_error(f"value_{part.key}", why)
        return False
    return True
