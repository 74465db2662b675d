"""Align: a metric's tests with their next steps, the draw, and closing and opening a test."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from evalsite.access import May, permissions, signed_in
from evalsite.web.headers import part_wanted
from judging.core.metric_definition import MetricDefinition
from judging.metrics.models import Metric, MetricVersion
from judging.metrics.selectors import newest_version
from judging.trust.access import ACT, get_judge, get_test
from judging.trust.dev import agreeing_on_dev, labels_in, rate_by_rows
from judging.trust.drawing import (
    criterion_of,
    guideline_of,
    has_doubted_rows,
    reads_reference,
    rows_of_draw,
    sealed_test_draw,
)
from judging.trust.forms import DrawForm, FurtherForm, OpenForm
from judging.trust.further import free_rows, further_draw, rows_of_further_draw
from judging.trust.models import SealedTest
from judging.trust.progress import SplitProgress, candidates_to_open, progress_of, tests_of
from judging.trust.promise import promise_of
from judging.trust.services import sealed_test_close, sealed_test_open, thresholds_of
from judging.trust.sources import Source, sources_in, sources_of


@login_required
def align(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """The metric's tests with what comes next, and the form for a draw; a POST draws."""
    judge = get_judge(request, slug, metric, ACT if request.method == "POST" else May.READ_JUDGEMENTS)
    newest = newest_version(judge)
    definition = MetricDefinition.from_json(newest.definition)
    context: dict[str, Any] = {"metric": judge, "newest": newest, "tests": _tests(judge)}
    context["rates"] = criterion_of(judge.name, definition) is not None and definition.judges
    if ACT not in permissions(request, judge.project) or not context["rates"]:
        return render(request, "trust/align.html", context)
    return _draw(request, judge, definition, context)


def _tests(judge: Metric) -> list[SplitProgress]:
    return [progress_of(test) for test in tests_of(judge)]


def _draw(
    request: HttpRequest, judge: Metric, definition: MetricDefinition, context: dict[str, Any]
) -> HttpResponse:
    sources = sources_of(judge)
    source = _chosen(request, sources)
    if source is None:
        return render(request, "trust/align.html", context)
    doubted = has_doubted_rows(judge, definition, source)
    form = DrawForm(
        _sent(request),
        metric=judge,
        definition=definition,
        source=source,
        guideline=guideline_of(definition),
        doubted=doubted,
        reads_reference=reads_reference(definition),
    )
    form.is_valid()
    counts = rows_of_draw(form.sizes(), source, judge)
    context |= {
        "sources": sources,
        "source": source,
        "form": form,
        "alone": _rates_own(request, form, context["newest"]),
        "promise": promise_of(judge, definition, source, counts, form.chosen_overlap),
    }
    return _drawn_or_shown(
        request,
        "trust/align.html",
        context,
        partial(_store_draw, request, judge, definition, source, form),
        _("Drawn. The test is sealed until you open it."),
    )


@login_required
def further(request: HttpRequest, slug: str, split: int) -> HttpResponse:
    """More rows for a split, with what they buy; a POST draws them."""
    test = get_test(request, slug, split, ACT)
    metric = test.split.metric
    newest = newest_version(metric)
    definition = MetricDefinition.from_json(newest.definition)
    sources = sources_in(test.split)
    source = _chosen(request, sources)
    context = {"metric": metric, "test": test, "sources": sources, "source": source}
    if source is None or criterion_of(metric.name, definition) is None:
        return render(request, "trust/further.html", context)
    free = free_rows(test, source)
    form = FurtherForm(
        _sent(request),
        test=test,
        free=free,
        metric=metric,
        definition=definition,
        source=source,
        guideline=guideline_of(definition),
    )
    form.is_valid()
    counts = rows_of_further_draw(test, free, form.sizes())
    promise = promise_of(metric, definition, source, counts, form.chosen_overlap)
    context |= {"form": form, "free": free, "promise": promise, "alone": _rates_own(request, form, newest)}
    return _drawn_or_shown(
        request,
        "trust/further.html",
        context,
        lambda: further_draw(
            test=test,
            definition=definition,
            source=source,
            sizes=form.sizes(),
            asking=form.asking(),
            user=signed_in(request),
        ),
        _("Drawn. The raters find the new rows in an evaluation of their own."),
    )


def _sent(request: HttpRequest) -> QueryDict | None:
    """The form as it was sent, or as the page asks what it buys; None on the first visit."""
    if request.method == "POST":
        return request.POST
    return request.GET if "test" in request.GET else None


def _drawn_or_shown(
    request: HttpRequest, template: str, context: dict[str, Any], draw: Callable[[], object], success: str
) -> HttpResponse:
    """Draw if the context's form was posted and is valid; otherwise the page, or of it what the draw buys."""
    form, metric = context["form"], context["metric"]
    if part_wanted(request) and "part" in request.GET:
        return render(request, "trust/_promise.html", context)
    if request.method == "POST" and form.is_valid():
        try:
            draw()
        except ValidationError as error:
            form.add_error(None, error)
        else:
            messages.success(request, success)
            return redirect("trust:align", metric.project.slug, metric.pk)
    return render(request, template, context, status=422 if request.method == "POST" else 200)


def _rates_own(request: HttpRequest, form: DrawForm, newest: MetricVersion) -> bool:
    """Whether nobody can rate but the user, who wrote the judge."""
    user = signed_in(request)
    return newest.created_by_id == user.pk and form.possible_raters == [user]


def _chosen(request: HttpRequest, sources: list[Source]) -> Source | None:
    sent = request.POST if request.method == "POST" else request.GET
    code = sent.get("source", "")
    return next((source for source in sources if source.code == code), sources[0] if sources else None)


def _store_draw(
    request: HttpRequest, judge: Metric, definition: MetricDefinition, source: Source, form: DrawForm
) -> None:
    values = form.cleaned_data
    sealed_test_draw(
        metric=judge,
        definition=definition,
        source=source,
        sizes=form.sizes(),
        user=signed_in(request),
        asking=form.asking(),
        labels=values.get("labels"),
        weighted=values.get("weighted", False),
    )


@login_required
def close(request: HttpRequest, slug: str, split: int) -> HttpResponse:
    """What closing a test means; a POST closes it."""
    test = get_test(request, slug, split, ACT)
    if not test.open:
        messages.info(request, _("This test is already closed."))
        return redirect("trust:align", slug, test.split.metric_id)
    problem = ""
    if request.method == "POST":
        try:
            run = next(iter(test.labelled_runs), None)
            if run is None:
                raise ValidationError(_("The evaluation in which people rated this test was deleted."))
            sealed_test_close(test=test, run=run, user=signed_in(request))
        except ValidationError as error:
            problem = error.messages[0]
        else:
            messages.success(request, _("Closed. No rating of this test can change any more."))
            return redirect("trust:align", slug, test.split.metric_id)
    context = {"progress": progress_of(test), "test": test, "metric": test.split.metric, "problem": problem}
    return render(request, "trust/close.html", context, status=422 if problem else 200)


@login_required
def open_test(request: HttpRequest, slug: str, split: int) -> HttpResponse:
    """What opening a test spends; a POST opens it for the version in the chosen run."""
    test = get_test(request, slug, split, ACT)
    offered = candidates_to_open(test)
    form = OpenForm(request.POST or None, [each.run_metric for each in offered])
    problem = ""
    if request.method == "POST":
        if not form.is_valid():
            problem = _("Choose a run of the version first.")
        else:
            try:
                licence = _open(request, test, form)
            except ValidationError as error:
                problem = error.messages[0]
            else:
                return redirect("trust:licence", slug, licence.pk)
    context = {
        "test": test,
        "metric": test.split.metric,
        "newest": newest_version(test.split.metric),
        "progress": progress_of(test),
        "offered": offered,
        "number": test.openings.count() + 1,
        "level": 1 - 0.05 / 2 ** test.openings.count(),
        "thresholds": thresholds_of(test.split.metric.project),
        "problem": problem,
    }
    return render(request, "trust/open.html", context, status=422 if problem else 200)


def _open(request: HttpRequest, test: SealedTest, form: OpenForm) -> Any:
    run_metric = form.cleaned_data["run_metric"]
    agrees = agreeing_on_dev(test.split, run_metric, labels_in(test.split, "dev"))
    dev = rate_by_rows(agrees) if agrees and not test.split.weighted else None
    return sealed_test_open(test=test, run_metric=run_metric, dev=dev, user=signed_in(request))
