"""The page "Which answers next?" of a run."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from evalsite import access
from evalsite.access import May
from judging.people.asking.draws import answers_draw, receiving, unrated_items
from judging.people.asking.forms import AskForm
from judging.people.asking.meter import meter_of
from judging.people.asking.models import AnswerDraw
from judging.people.asking.pool import UNCORRECTED, pool_of, why_not_asked
from judging.people.presets import criteria_of_run
from judging.records.access import get_run
from judging.records.definitions import definitions_now
from judging.records.models import Run, RunMetric


@login_required
def ask(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Draw the answers that people rate next: what that buys, and the form."""
    access.get_project(request, slug, May.RUN)
    run = get_run(request, slug, pk)
    offered = metrics_to_ask(run)
    metric = next((each for each in offered if str(each.pk) == request.GET.get("metric")), None)
    metric = metric or next(iter(offered), None)
    context: dict[str, Any] = {"run": run, "metrics": offered, "metric": metric, "left_out": _left_out(run)}
    if metric is None:
        context["why"] = _why(run)
        return render(request, "people/ask.html", context)
    evaluations = receiving(run, metric.name)
    form = AskForm(request.POST if request.method == "POST" else None, run, evaluations)
    if request.method == "POST" and form.is_valid():
        response = _draw(request, run, metric, form)
        if response is not None:
            return response
    pool = pool_of(run, metric)
    meter = meter_of(run, pool, evaluations[0].overlap if evaluations else 1)
    context |= {
        "form": form,
        "meter": meter,
        "hours_by_doubt": meter.hours(meter.by_doubt),
        "hours_evenly": meter.hours(meter.evenly),
        "answers": pool.responses.size,
        "left": pool.frame.size,
        "unrated": unrated_items(run),
        "draws": AnswerDraw.objects.filter(about_run=run)
        .select_related("evaluation__run")
        .order_by("-number"),
    }
    return render(request, "people/ask.html", context, status=422 if form.errors else 200)


def metrics_to_ask(run: Run) -> list[RunMetric]:
    """The metrics of a run whose judge people can check by further ratings."""
    definitions, rated = definitions_now(run), {criterion.name for criterion in criteria_of_run(run)}
    metrics = run.metrics.order_by("number")
    return [each for each in metrics if each.name in rated and not why_not_asked(run, definitions[each.pk])]


def _left_out(run: Run) -> str:
    """The names of the metrics whose verdicts have no corrected score: comparisons and categories."""
    definitions = definitions_now(run)
    return _(", ").join(
        metric.name
        for metric in run.metrics.order_by("number")
        if why_not_asked(run, definitions[metric.pk]) in UNCORRECTED
    )


def _why(run: Run) -> str:
    if run.by_workers and not run.complete:
        return _("The run has not ended. Answers can be drawn for people when it has.")
    return _(
        "No metric of this run has scores by a judge that people can rate on the same scale. Comparisons and "
        "categories have no corrected score, so no further answers are drawn for them."
    )


def _draw(request: HttpRequest, run: Run, metric: RunMetric, form: AskForm) -> HttpResponse | None:
    try:
        draw = answers_draw(
            run=run,
            run_metric=metric,
            size=form.cleaned_data["size"],
            into=form.study,
            user=access.signed_in(request),
        )
    except ValidationError as error:
        form.add_error(None, error)
        return None
    messages.success(request, _("Answers drawn: %(n)s.") % {"n": draw.drawn})
    return redirect("people:detail", run.project.slug, draw.evaluation.run_id)
