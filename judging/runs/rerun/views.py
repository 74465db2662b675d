"""Views to re-judge (new API calls) and re-parse (no API calls): estimate or preview, then start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.db.models import Avg
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsite import access
from evalsite.access import May, signed_in
from evalsite.names import join_sentences
from evalsite.web.numbers import whole
from judging.core.metric_definition import MetricDefinition
from judging.engine.budget import MILLION
from judging.engine.candidates import generating_candidates
from judging.engine.rubric_rows import mean_criteria
from judging.filters.addresses import filters_in, items_url, judgement_url, query_in
from judging.filters.counts import count_text, reads_judgements
from judging.filters.page_limits import LIMITS, Limits
from judging.metrics.models import MetricVersion
from judging.metrics.version_diff import parts_of_definitions
from judging.records.access import get_run, get_run_metric
from judging.records.definitions import definition_now
from judging.records.models import Run, RunMetric, RunState
from judging.runs.rerun import reparse
from judging.runs.rerun.forms import ReparseForm
from judging.runs.rerun.parser_trial import TriedReply, try_on_run
from judging.runs.rerun.preview import count_readable, preview_reading, readable
from judging.runs.rerun.rejudge import REJUDGEABLE, other_versions, run_rejudge
from judging.runs.rerun.rerun_batches import rejudge_begin, reparse_begin, too_many_at_once
from judging.runs.rerun.selection import Selection
from judging.runs.views import queued_text


@login_required
def judge_again(request: HttpRequest, slug: str, pk: int, limits: Limits = LIMITS) -> HttpResponse:
    """Re-judge the matches of the filter in the query string, or one item (`only`)."""
    access.get_project(request, slug, May.RUN)
    run = get_run(request, slug, pk)
    if not run.by_workers:
        return render(request, "runs/cannot_rejudge.html", {"run": run}, status=409)
    only = whole(request.GET.get("only", ""))
    selection = Selection(filters_in(request, run), only)
    metrics = selection.metrics(run)
    versions = other_versions(metrics[0]) if len(metrics) == 1 else []
    wanted = (request.POST if request.method == "POST" else request.GET).get("version", "")
    chosen = next((version for version in versions if str(version.number) == wanted), None)
    if request.method == "POST":
        try:
            if wanted and chosen is None:
                raise ValidationError(_("This metric version can't be used here. Select another one."))
            if too_many_at_once(run, selection, limits):
                return _rejudge_by_worker(request, run, selection, chosen)
            created = run_rejudge(run=run, selection=selection, user=signed_in(request), version=chosen)
        except ValidationError as error:
            messages.error(request, join_sentences(error.messages))
        else:
            _report_queued(request, run, created)
            return redirect(_afterwards(request, run, only))
    context: dict[str, Any] = {
        "run": run,
        "several_metrics": len(metrics) > 1,
        "metric": metrics[0] if len(metrics) == 1 else None,
        "versions": versions,
        "under_way": run.state not in REJUDGEABLE,
        "back": _back(request, run, only),
        "only": only,
        "same": selection.filters.query(only=only),
        "parameters": [pair for pair in request.GET.items() if pair[0] != "version"],
        **_rejudge_preview(run, selection, metrics, chosen, limits),
    }
    return render(request, "runs/judge_again.html", context)


def _rejudge_by_worker(
    request: HttpRequest, run: Run, selection: Selection, version: MetricVersion | None
) -> HttpResponse:
    if not rejudge_begin(run=run, selection=selection, user=signed_in(request), version=version):
        _report_queued(request, run, 0)
    return redirect("runs:actions", run.project.slug, run.pk)


def _rejudge_preview(
    run: Run,
    selection: Selection,
    metrics: list[RunMetric],
    chosen: MetricVersion | None,
    limits: Limits,
) -> dict[str, Any]:
    """The number of judgements, an estimate of calls and cost, and the differences of the chosen version. Without
    numbers (no `counted`) if too many judgements would have to be read."""
    now = [definition_now(run_metric) for run_metric in metrics]
    later = MetricDefinition.from_json(chosen.definition) if chosen else None
    shown = {
        "readable": any(definition.judges or definition.rules for definition in now),
        "chosen": chosen,
        "parts": parts_of_definitions(run.project_id, now[0], later) if later else [],
    }
    if selection.only is None and reads_judgements(run, selection.filters, limits):
        return shown
    selected = selection.of(run)
    count = selected.count()
    return shown | {
        "counted": True,
        "count": count,
        "overridden": selected.filter(override_value__isnull=False).count(),
        "mean": selected.order_by().aggregate(mean=Avg("score_in_force"))["mean"]
        if len(metrics) == 1
        else None,
        **_estimate_calls(run, [later] if later else now, count),
    }


def _estimate_calls(run: Run, definitions: list[MetricDefinition], count: int) -> dict[str, Any]:
    """Calls, and tokens and cost estimated from the mean of this run's judge calls so far."""
    by_criteria = any(definition.asks_by_criterion for definition in definitions)
    criteria = mean_criteria(run.version) if by_criteria else 1
    each = [definition.calls_over(1, criteria) for definition in definitions]
    calls = round(count * sum(each) / len(each)) if each else 0
    candidates = generating_candidates(run)
    judge_calls = (
        run.calls
        - run.calls_failed
        - sum(candidate.counts.calls - candidate.counts.failed for candidate in candidates)
    )
    tokens = run.prompt_tokens + run.completion_tokens
    tokens -= sum(
        candidate.counts.prompt_tokens + candidate.counts.completion_tokens for candidate in candidates
    )
    money = run.spent / MILLION - sum(candidate.money or 0.0 for candidate in candidates)
    share = calls / max(1, judge_calls)
    return {
        "calls": calls,
        "tokens": round(max(0, tokens) * share),
        "cost": max(0.0, money) * share if run.currency else None,
    }


def _back(request: HttpRequest, run: Run, only: int | None) -> str:
    """The URL that the user came from: the judgement, or the list."""
    if only is not None:
        return judgement_url(run, only, query_in(request, run))
    return items_url(request, run, filters_in(request, run).query())


def _afterwards(request: HttpRequest, run: Run, only: int | None) -> str:
    """The URL that shows the result: the item's page, which keeps the place in the list, or the run's page."""
    return (
        _back(request, run, only)
        if only is not None
        else reverse("runs:detail", args=(run.project.slug, run.pk))
    )


def _report_queued(request: HttpRequest, run: Run, created: int) -> None:
    if not created:
        messages.info(request, _("Nothing to re-judge, or the run is still in progress."))
        return
    messages.success(request, queued_text(created))
    if run.state == RunState.PAUSED:
        messages.info(request, _("The run is paused. Resume it to start re-judging."))


@login_required
def read_again(
    request: HttpRequest, slug: str, pk: int, metric: int, limits: Limits = LIMITS
) -> HttpResponse:
    """Re-parse the matches of the filter in the query string, or one item (`only`). Submitting shows a preview; with
    `begin` it creates new attempts."""
    run_metric = get_run_metric(request, slug, pk, metric, May.RUN)
    only = whole(request.GET.get("only", ""))
    selection = Selection(replace(filters_in(request, run_metric.run), metric=run_metric.name), only)
    now = definition_now(run_metric)
    versions = reparse.fitting_versions(run_metric)
    by_version = "version" in request.POST
    sent = request.POST if request.method == "POST" and not by_version and not now.rules else None
    form = ReparseForm(sent, now=now)
    chosen = next((pair for pair in versions if str(pair[0].number) == request.POST.get("version")), None)
    definition = chosen[1] if chosen else form.result() if sent is not None and form.is_valid() else None
    if definition and not selection.whole and reparse.scale_of(definition) != reparse.scale_of(now):
        messages.error(request, _("A different scale can only be applied to all judgements of the metric."))
        definition = None
    if definition and "begin" in request.POST:
        return _start_reparse(
            request, run_metric, definition, selection, chosen[0] if chosen else None, limits
        )
    count = count_readable(run_metric, selection, limits)
    context: dict[str, Any] = {
        "run": run_metric.run,
        "run_metric": run_metric,
        "now": now,
        "versions": versions,
        "form": form,
        "chosen": chosen[0] if chosen else None,
        "count": count,
        "count_shown": "" if count is None else count_text(count),
        "part": not selection.whole,
        "back": _back(request, run_metric.run, only),
        "only": only,
        "may_read": run_metric.run.state in reparse.REPARSEABLE,
        "rest": run_metric.run.not_run if run_metric.run.state in reparse.REPARSEABLE else 0,
        "overridden": 0
        if count is None
        else readable(run_metric, selection).filter(override_value__isnull=False).count(),
    }
    if definition:
        context |= _reparse_preview(
            request, run_metric, definition, selection, form if sent is not None else None
        )
    return render(request, "runs/read_again.html", context, status=422 if sent and not definition else 200)


def _reparse_preview(
    request: HttpRequest,
    run_metric: RunMetric,
    definition: MetricDefinition,
    selection: Selection,
    form: ReparseForm | None,
) -> dict[str, Any]:
    """The preview before and after; with a form, also its parsers' results on some replies."""
    tried: list[tuple[str, list[TriedReply]]] = []
    if form is not None:
        tried = [
            (judge.name, try_on_run(run_metric, number, form.parser(number)))
            for number, judge in enumerate(definition.judges)
        ]
    sent = [pair for pair in request.POST.items() if pair[0] not in ("csrfmiddlewaretoken", "try")]
    return {
        "previewed": True,
        "preview": preview_reading(run_metric, definition, selection),
        "sent": sent,
        "tried": tried,
    }


def _start_reparse(
    request: HttpRequest,
    run_metric: RunMetric,
    definition: MetricDefinition,
    selection: Selection,
    version: MetricVersion | None,
    limits: Limits,
) -> HttpResponse:
    arguments: dict[str, Any] = {
        "run": run_metric.run,
        "run_metric": run_metric,
        "definition": definition,
        "user": signed_in(request),
        "version": version,
        "selection": selection,
    }
    many = too_many_at_once(run_metric.run, selection, limits)
    if many and reparse_begin(**arguments):
        return redirect("runs:actions", run_metric.run.project.slug, run_metric.run.pk)
    created = 0 if many else reparse.run_reparse(**arguments)
    if created:
        text = ngettext(
            "Re-parsing %(n)s judgement. No API calls are made, and the earlier attempt is kept.",
            "Re-parsing %(n)s judgements. No API calls are made, and earlier attempts are kept.",
            created,
        )
        messages.success(request, text % {"n": created})
    else:
        messages.info(
            request,
            _("No replies to re-parse, or some calls are still in progress. Try again in a moment."),
        )
    return redirect(_afterwards(request, run_metric.run, selection.only))
