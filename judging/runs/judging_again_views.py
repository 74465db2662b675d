"""Judge again: what it will take, by which version of the metric, and the go-ahead."""

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
from judging.review.forms import FilterForm
from judging.runs.access import get_run
from judging.runs.budget import MILLION
from judging.runs.inferring import asked_of
from judging.runs.judging_again import MAY_AGAIN, Meant, other_versions, run_judge_again
from judging.runs.models import Run, RunState
from judging.runs.rereading import definition_now


@login_required
def judge_again(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The filter, or the one item, stands in the address as on the list."""
    access.get_project(request, slug, May.RUN)
    run = get_run(request, slug, pk)
    if run.by_people:
        return render(request, "runs/judged_by_people.html", {"run": run}, status=409)
    only = whole(request.GET.get("only", ""))
    meant = Meant(FilterForm(request.GET, run).filters, only)
    metrics = meant.metrics(run)
    versions = other_versions(metrics[0]) if len(metrics) == 1 else []
    if request.method == "POST":
        wanted = request.POST.get("version", "")
        chosen = next((one for one in versions if str(one.number) == wanted), None)
        try:
            if wanted and chosen is None:
                raise ValidationError(_("This metric version can't be used here. Select another one."))
            made = run_judge_again(run=run, meant=meant, user=signed_in(request), version=chosen)
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
        else:
            _tell(request, run, made)
            return redirect("runs:detail", slug, pk)
    found = meant.of(run)
    count = found.count()
    context: dict[str, Any] = {
        "run": run,
        "count": count,
        "overridden": found.filter(override_value__isnull=False).count(),
        "several_metrics": len(metrics) > 1,
        "metric": metrics[0] if len(metrics) == 1 else None,
        "versions": versions,
        "under_way": run.state not in MAY_AGAIN,
        "back": FilterForm(request.GET, run).filters.query(),
        **_takes(run, meant, count),
    }
    return render(request, "runs/judge_again.html", context)


def _takes(run: Run, meant: Meant, count: int) -> dict[str, Any]:
    """Calls, and tokens and money by the mean of what this run's calls to judges took so far."""
    each = [definition_now(one).calls for one in meant.metrics(run)]
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
