"""Score again, free: choose another way to read a run's replies, see what it would read, and have it done."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsite.access import May, signed_in
from judging.core.pipeline import MetricDefinition
from judging.metrics.models import MetricVersion
from judging.runs import rereading
from judging.runs.access import get_run_metric
from judging.runs.models import RunMetric
from judging.runs.overrides import overridden_of
from judging.runs.past_replies import PastReply, tried_on_run
from judging.runs.reading_forms import ReadingForm


@login_required
def read_again(request: HttpRequest, slug: str, pk: int, metric: int) -> HttpResponse:
    """The form; «try» shows what would be read, the others make new attempts."""
    found = get_run_metric(request, slug, pk, metric, May.RUN)
    now = rereading.definition_now(found)
    versions = rereading.fitting_versions(found)
    sent = request.POST if request.method == "POST" and "version" not in request.POST else None
    form = ReadingForm(sent, now=now)
    tried: list[tuple[str, list[PastReply]]] | None = None
    if request.method == "POST":
        if "version" in request.POST:
            chosen = [pair for pair in versions if str(pair[0].number) == request.POST["version"]]
            if chosen:
                version, definition = chosen[0]
                return _begin(request, found, definition, version)
        elif now.rules:  # which only another version reads differently
            pass
        elif form.is_valid() and "try" in request.POST:
            tried = [
                (judge.name, tried_on_run(found, number, form.parser(number)))
                for number, judge in enumerate(now.judges)
            ]
        elif form.is_valid():
            return _begin(request, found, form.result())
    context: dict[str, Any] = {
        "run": found.run,
        "run_metric": found,
        "now": now,
        "versions": versions,
        "form": form,
        "tried": tried,
        "may_read": found.run.state in rereading.MAY_READ,
        "rest": found.run.not_run if found.run.state in rereading.MAY_READ else 0,
        "overridden": overridden_of(found).count(),
    }
    status = 422 if sent is not None and tried is None else 200
    return render(request, "runs/read_again.html", context, status=status)


def _begin(
    request: HttpRequest, found: RunMetric, definition: MetricDefinition, version: MetricVersion | None = None
) -> HttpResponse:
    made = rereading.run_read_again(
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
