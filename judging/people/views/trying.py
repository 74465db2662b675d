"""An organiser tries an item as its raters will have it, in a draft already: nothing is stored."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from evalsite.access import May
from judging.core.people.criteria import ValuesRefused, accepted, canonical
from judging.people.access import get_evaluation, get_item
from judging.people.assignments import order_shown
from judging.people.guidelines.reading import guideline_texts
from judging.people.item_criteria import criteria_for, marks_spans
from judging.people.item_view import DeskItem, desk_item
from judging.people.labels import labelled_values, problems_of
from judging.people.models import Assignment, Evaluation, Item
from judging.people.qualification.feedback import TrainingFeedback, feedback_on
from judging.people.views.desk import parts_shown, values_from


@login_required
def try_item(request: HttpRequest, slug: str, pk: int, number: int) -> HttpResponse:
    """The item as on the desk, without a rater; a verdict is checked, and with known answers compared with them."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    item = get_item(evaluation, number)
    show = desk_item(_unsaved(evaluation, item), criteria_for(evaluation, item))
    sent = values_from(request, show.criteria) if request.method == "POST" else {}
    context: dict[str, Any] = {
        "evaluation": evaluation,
        "item": item,
        "show": show,
        "texts": guideline_texts(evaluation),
        "compares": any(criterion.compares and not criterion.ranks for criterion in show.criteria.values()),
        "marks_spans": marks_spans(evaluation),
        "next": evaluation.items.filter(number__gt=number).order_by("number").first(),
    }
    errors: dict[int, str] = {}
    if request.method == "POST":
        try:
            values = accepted(show.criteria, sent)
        except ValuesRefused as refused:
            errors = problems_of(refused)
        else:
            context["verdict"] = labelled_values(show.criteria, values)
            context["feedback"] = _feedback(show, item, values)
    context["parts"] = parts_shown(show.criteria, sent, errors)
    return render(request, "people/try.html", context, status=422 if errors else 200)


def _unsaved(evaluation: Evaluation, item: Item) -> Assignment:
    """The item as its first rater gets it."""
    order = ",".join(map(str, order_shown(evaluation, item)))
    return Assignment(evaluation=evaluation, item=item, shown_first=item.first_side, shown_order=order)


def _feedback(show: DeskItem, item: Item, values: dict[int, Any]) -> TrainingFeedback | None:
    if not item.gold:
        return None
    held = show.assignment
    return feedback_on(held, show.criteria, canonical(show.criteria, values, held.shown_first, held.order))
