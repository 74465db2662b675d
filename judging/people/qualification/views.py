"""The organiser's page of training and qualification: what stands before the queue, whom it lets through, who waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from evalsite.access import May, signed_in
from evalsite.names import join_sentences, labelled
from evalsite.templatetags.show import number
from judging.core.people.qualification import (
    MOST_QUALIFICATION_ITEMS,
    OFTEN,
    SELDOM,
    let_through,
    needed_right,
)
from judging.people.access import get_evaluation
from judging.people.labels import labelled_gold, values_of
from judging.people.models import Evaluation, EvaluationRater, Item
from judging.people.qualification.models import Qualification, QualificationTry
from judging.people.qualification.selectors import Entry, entry_of, gold_in_use, has_entry
from judging.people.qualification.services import (
    qualification_change,
    rater_let_in,
    rater_try_again,
)

MOST_LISTED = 200  # gold items to choose for training


class TrainingItems(forms.MultipleChoiceField):
    """Gold items of the evaluation, by id."""

    widget = forms.CheckboxSelectMultiple


class QualificationForm(forms.Form):
    """The gold items of the training, and the qualification's number of items and pass mark."""

    items = forms.IntegerField(
        label=gettext_lazy("Items of the qualification"),
        min_value=0,
        max_value=MOST_QUALIFICATION_ITEMS,
        help_text=gettext_lazy(
            "Gold items, drawn for each rater, without those of the training. 0: no qualification."
        ),
    )
    mark = forms.IntegerField(label=gettext_lazy("Pass mark, % of its items"), min_value=1, max_value=100)
    training = TrainingItems(
        label=gettext_lazy("Training items"),
        required=False,
        help_text=gettext_lazy(
            "Raters see the expected answer and its reason after rating; it counts nowhere."
        ),
    )

    def __init__(self, data: Any, evaluation: Evaluation, gold: Sequence[Item]) -> None:
        settings = Qualification.objects.filter(evaluation=evaluation).first()
        initial: dict[str, Any] = {
            "items": settings.items if settings else 0,
            "mark": round(100 * settings.mark) if settings else 80,
            "training": [str(item.pk) for item in gold if hasattr(item, "training")],
        }
        super().__init__(data, initial=initial)
        self.fields["training"].choices = [  # type: ignore[attr-defined]
            (str(item.pk), _gold_label(evaluation, item)) for item in gold
        ]
        if not gold:
            del self.fields["training"]


def _gold_label(evaluation: Evaluation, item: Item) -> str:
    names = item.candidate_names
    values = labelled_gold(evaluation.criteria, values_of(item.gold), names)
    known = " · ".join(starmap(labelled, values))
    return _("Item %(n)s (row %(row)s): %(known)s") % {"n": item.number, "row": item.row.line, "known": known}


@dataclass(frozen=True, slots=True)
class RaterStage:
    """A rater before the real queue; `entry` None: through. `last`: the newest try."""

    rater: EvaluationRater
    entry: Entry | None
    last: QualificationTry | None


def stages_of(evaluation: Evaluation) -> list[RaterStage]:
    """Where each active rater stands; empty without a training and a qualification."""
    if not has_entry(evaluation):
        return []
    tries = QualificationTry.objects.filter(rater__evaluation=evaluation).order_by("number")
    last = {entry.rater_id: entry for entry in tries}
    raters = evaluation.raters.filter(left_at=None).select_related("user").order_by("pk")
    return [RaterStage(rater, entry_of(evaluation, rater), last.get(rater.pk)) for rater in raters]


def whom_it_lets_through(items: int, mark: float) -> str:
    """“right 9 in 10: 93 of 100; 7 in 10: 38”, exact binomial."""
    counts = [round(100 * let_through(items, mark, right)) for right in (OFTEN, SELDOM)]
    return _(
        "%(needed)s of %(items)s must be right. That lets through, of 100 raters who are right 9 times in 10: "
        "%(often)s; 7 times in 10: %(seldom)s."
    ) % {"needed": needed_right(items, mark), "items": items, "often": counts[0], "seldom": counts[1]}


@login_required
def qualification(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show and change what stands before the queue."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    parts = ("row", "training", "response__candidate", "other_response__candidate")
    gold = list(gold_in_use(evaluation).select_related(*parts).order_by("number")[:MOST_LISTED])
    form = QualificationForm(request.POST if request.method == "POST" else None, evaluation, gold)
    if request.method == "POST" and form.is_valid():
        sent = form.cleaned_data
        try:
            qualification_change(
                evaluation=evaluation,
                training=[int(number) for number in sent.get("training", ())],
                items=sent["items"],
                mark=sent["mark"] / 100,
                by=signed_in(request),
            )
        except ValidationError as error:
            form.add_error(None, error)
        else:
            messages.success(request, _("Saved."))
            return redirect("people:qualification", slug, pk)
    settings = Qualification.objects.filter(evaluation=evaluation).first()
    others = gold_in_use(evaluation).filter(training=None).count()
    context: dict[str, Any] = {
        "evaluation": evaluation,
        "form": form,
        "gold": bool(gold),
        "settings": settings,
        "through": whom_it_lets_through(settings.items, settings.mark) if settings else "",
        "missing": max(0, settings.items - others) if settings else 0,
        "others": number(others),
        "stages": stages_of(evaluation),
    }
    return render(request, "people/qualification.html", context, status=422 if form.errors else 200)


def _decide(
    request: HttpRequest, slug: str, pk: int, rater: int, service: Callable[..., None], text: str
) -> HttpResponse:
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    row = get_object_or_404(EvaluationRater.objects.select_related("user"), evaluation=evaluation, pk=rater)
    try:
        service(rater=row, by=signed_in(request))
    except ValidationError as error:
        messages.error(request, join_sentences(error.messages))
    else:
        messages.success(request, text % {"name": row.pseudonym})
    return redirect("people:qualification", slug, pk)


@login_required
@require_POST
def let_in(request: HttpRequest, slug: str, pk: int, rater: int) -> HttpResponse:
    """Let a rater in who has not passed."""
    return _decide(request, slug, pk, rater, rater_let_in, _("%(name)s can rate now."))


@login_required
@require_POST
def try_again(request: HttpRequest, slug: str, pk: int, rater: int) -> HttpResponse:
    """Give a rater who has not passed another try."""
    return _decide(
        request, slug, pk, rater, rater_try_again, _("%(name)s can try again, with other gold items.")
    )
