"""Measure a gallery metric with a judge of the project: what its card shows, and the actions there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from evalsite import access
from evalsite.access import May, signed_in
from evalsite.accounts.models import Project
from evalsite.models import Job
from evalsite.names import join_sentences
from evalsite.tasks import jobs
from evalsite.web.numbers import whole
from judging.core.gallery import Card, gallery
from judging.core.gallery.record import Record, read_record
from judging.messages import reason_sentence
from judging.metrics.gallery.page import CardPage
from judging.trust.gallery.labelled import MOST_ANSWERS, LabelledData, labelled_data
from judging.trust.gallery.measurements import (
    JOB,
    measurement_start,
    measurement_stop,
    measurements_of,
    usual_budget,
)
from judging.trust.models import Measurement

MOST_CALLS = 20_000


@dataclass(frozen=True)
class ShownMeasurement:
    """A measurement in the list; `job` while it goes on."""

    measurement: Measurement
    job: Job | None

    @property
    def record(self) -> Record:
        return read_record(self.measurement.record)

    @property
    def tokens(self) -> int:
        return self.measurement.prompt_tokens + self.measurement.completion_tokens

    @property
    def problem(self) -> str:
        row = self.measurement
        if row.problem == "stopped":
            return _("Stopped")
        if row.problem == "budget_calls":
            return _("Stopped at its budget of requests.")
        return reason_sentence(row.problem, row.problem_detail) if row.problem else ""

    @property
    def goes_on(self) -> bool:
        return self.measurement.finished_at is None

    @property
    def obstacle(self) -> str:
        """Why no worker does it; see jobs.obstacle."""
        return jobs.obstacle(self.job) if self.goes_on else ""


def measuring_context(project: Project, card: Card) -> dict[str, Any]:
    """What the page of a card shows of its measurements, and what can be measured on."""
    rows = measurements_of(project, card)
    shown = [ShownMeasurement(row, jobs.of(JOB, row.pk) if row.finished_at is None else None) for row in rows]
    sources = labelled_data(project, card) if card.asks_judge else []
    return {
        "measurements": shown,
        "measuring": any(entry.goes_on for entry in shown),
        "labelled": sources,
        "most_answers": MOST_ANSWERS,
        "usual_budget": usual_budget(card, len(card.examples) or MOST_ANSWERS),
        "most_calls": MOST_CALLS,
    }


def newest_records(project: Project) -> dict[str, Record]:
    """{card: what the project's newest measurement of it says}."""
    rows = Measurement.objects.filter(project=project).exclude(record={}).order_by("pk")
    return {card: read_record(record) for card, record in rows.values_list("card", "record")}


def _card(name: str) -> Card:
    card = gallery().get(name)
    if card is None:
        raise Http404
    return card


@login_required
@require_GET
def measurements(request: HttpRequest, slug: str, card: str) -> HttpResponse:
    """The list of measurements, which is fetched again while one goes on."""
    project = access.get_project(request, slug, May.USE_ENDPOINTS)
    chosen = _card(card)
    return render(
        request, "gallery/_measurements.html", {"card": chosen, **measuring_context(project, chosen)}
    )


@login_required
@require_POST
def measure(request: HttpRequest, slug: str, card: str) -> HttpResponse:
    """Start a measurement with the judge and the language that are chosen on the card; `measured_on`: the examples
    (''), or the number of a labelled criterion; `most_calls`: its budget."""
    project = access.get_project(request, slug, May.USE_ENDPOINTS)
    page = CardPage(request, project, _card(card), request.POST)
    try:
        if page.card.asks_judge and page.endpoint is None:
            raise ValidationError(_("Choose a judge endpoint first."))
        measurement_start(
            project=project,
            card=page.card,
            language=page.start.language,
            endpoint=page.endpoint,
            labels=_chosen_labels(project, page.card, request.POST.get("measured_on", "")),
            most_calls=_budget(request.POST.get("most_calls", "")),
            user=signed_in(request),
        )
    except ValidationError as error:
        messages.error(request, join_sentences(error.messages))
    return redirect(f"{reverse('metrics:gallery', args=[slug, card])}#measured")


def _chosen_labels(project: Project, card: Card, typed: str) -> LabelledData | None:
    if not typed:
        return None
    for data in labelled_data(project, card):
        if data.key == typed:
            return data
    raise ValidationError(_("These labels can't be used for this metric any more. Choose others."))


def _budget(typed: str) -> int | None:
    if not typed.strip():
        return None
    number = whole(typed)
    if not number or number > MOST_CALLS:
        raise ValidationError(
            _("The most requests must be a whole number from 1 to %(most)s.") % {"most": MOST_CALLS}
        )
    return number


@login_required
@require_POST
def stop(request: HttpRequest, slug: str, measurement: int) -> HttpResponse:
    """Stop a measurement; what was judged so far stays listed."""
    project = access.get_project(request, slug, May.USE_ENDPOINTS)
    row = get_object_or_404(Measurement, project=project, pk=measurement)
    measurement_stop(measurement=row)
    return redirect(f"{reverse('metrics:gallery', args=[slug, row.card])}#measured")
