"""Re-judge (asks again) and re-parse (asks nobody): what it would take, a trial of the new parser, the go-ahead."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsite import access
from evalsite.access import May, signed_in
from evalsite.web.numbers import whole
from judging.core.metric_definition import MetricDefinition
from judging.metrics.models import MetricVersion
from judging.runs.access import get_run, get_run_metric
from judging.runs.budget import MILLION
from judging.runs.candidates import asked_of
from judging.runs.filter_form import FilterForm
from judging.runs.models import Run, RunMetric, RunState
from judging.runs.overrides import overridden_of
from judging.runs.rerun import reparse
from judging.runs.rerun.forms import ReparseForm
from judging.runs.rerun.parser_trial import TriedReply, try_on_run
from judging.runs.rerun.rejudge import REJUDGEABLE, Selection, other_versions, run_rejudge
from judging.runs.rerun.reparse import definition_now


@login_required
def judge_again(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The filter, or the one item, stands in the address as on the list."""
    access.get_project(request, slug, May.RUN)
    run = get_run(request, slug, pk)
    if not run.by_workers:
        return render(request, "runs/cannot_rejudge.html", {"run": run}, status=409)
    only = whole(request.GET.get("only", ""))
    selection = Selection(FilterForm(request.GET, run).filters, only)
    metrics = selection.metrics(run)
    versions = other_versions(metrics[0]) if len(metrics) == 1 else []
    if request.method == "POST":
        wanted = request.POST.get("version", "")
        chosen = next((one for one in versions if str(one.number) == wanted), None)
        try:
            if wanted and chosen is None:
                raise ValidationError(_("This metric version can't be used here. Select another one."))
            made = run_rejudge(run=run, selection=selection, user=signed_in(request), version=chosen)
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
        else:
            _tell(request, run, made)
            return redirect("runs:detail", slug, pk)
    found = selection.of(run)
    count = found.count()
    context: dict[str, Any] = {
        "run": run,
        "count": count,
        "overridden": found.filter(override_value__isnull=False).count(),
        "several_metrics": len(metrics) > 1,
        "metric": metrics[0] if len(metrics) == 1 else None,
        "versions": versions,
        "under_way": run.state not in REJUDGEABLE,
        "back": FilterForm(request.GET, run).filters.query(),
        **_takes(run, selection, count),
    }
    return render(request, "runs/judge_again.html", context)


def _takes(run: Run, selection: Selection, count: int) -> dict[str, Any]:
    """Calls, and tokens and money by the mean of what this run's calls to judges took so far."""
    each = [definition_now(one).calls for one in selection.metrics(run)]
    calls = round(count * sum(each) / len(each)) if each else 0
    so_far = asked_of(run)
    made = run.calls - run.calls_failed - sum(one.counts.calls - one.counts.failed for one in so_far)
    tokens = run.prompt_tokens + run.completion_tokens
    tokens -= sum(one.counts.prompt_tokens + one.counts.completion_tokens for one in so_far)
    money = run.spent / MILLION - sum(one.money or 0.0 for one in so_far)
    share = calls / max(1, made)
    return {
        "calls": calls,
        "tokens": round(max(0, tokens) * share),
        "cost": max(0.0, money) * share if run.currency else None,
    }


def _tell(request: HttpRequest, run: Run, made: int) -> None:
    if not made:
        messages.info(request, _("Nothing to re-judge, or the run is still in progress."))
        return
    text = ngettext(
        "%(n)s judgement queued for re-judging. The earlier attempt is kept.",
        "%(n)s judgements queued for re-judging. Earlier attempts are kept.",
        made,
    )
    messages.success(request, text % {"n": made})
    if run.state == RunState.PAUSED:
        messages.info(request, _("The run is paused. Resume it to start re-judging."))


@login_required
def read_again(request: HttpRequest, slug: str, pk: int, metric: int) -> HttpResponse:
    """The form; «try» shows what would be read, the others make new attempts."""
    found = get_run_metric(request, slug, pk, metric, May.RUN)
    now = reparse.definition_now(found)
    versions = reparse.fitting_versions(found)
    sent = request.POST if request.method == "POST" and "version" not in request.POST else None
    form = ReparseForm(sent, now=now)
    tried: list[tuple[str, list[TriedReply]]] | None = None
    if request.method == "POST":
        if "version" in request.POST:
            chosen = [pair for pair in versions if str(pair[0].number) == request.POST["version"]]
            if chosen:
                version, definition = chosen[0]
                return _start_reparse(request, found, definition, version)
        elif now.rules:  # which only another version reads differently
            pass
        elif form.is_valid() and "try" in request.POST:
            tried = [
                (judge.name, try_on_run(found, number, form.parser(number)))
                for number, judge in enumerate(now.judges)
            ]
        elif form.is_valid():
            return _start_reparse(request, found, form.result())
    context: dict[str, Any] = {
        "run": found.run,
        "run_metric": found,
        "now": now,
        "versions": versions,
        "form": form,
        "tried": tried,
        "may_read": found.run.state in reparse.REPARSEABLE,
        "rest": found.run.not_run if found.run.state in reparse.REPARSEABLE else 0,
        "overridden": overridden_of(found).count(),
    }
    status = 422 if sent is not None and tried is None else 200
    return render(request, "runs/read_again.html", context, status=status)


def _start_reparse(
    request: HttpRequest, found: RunMetric, definition: MetricDefinition, version: MetricVersion | None = None
) -> HttpResponse:
    made = reparse.run_reparse(
        run=found.run, run_metric=found, definition=definition, user=signed_in(request), version=version
    )
    if made:
        text = ngettext(
            "Re-parsing %(n)s judgement. No API calls are made, and the earlier attempt is kept.",
            "Re-parsing %(n)s judgements. No API calls are made, and earlier attempts are kept.",
            made,
        )
        messages.success(request, text % {"n": made})
    else:
        messages.info(
            request,
            _("No replies to re-parse, or some calls are still in progress. Try again in a moment."),
        )
    return redirect("runs:detail", found.run.project.slug, found.run_id)
