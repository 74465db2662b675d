"""Comparison of runs: a table of any number of them; for two runs also why their scores differ, and item by item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_GET, require_http_methods
from django_htmx.http import HttpResponseClientRefresh

from datasets.models import Row
from evalsite.tasks import workers
from evalsite.text_diff import sides
from evalsite.web.headers import part_wanted
from evalsite.web.numbers import whole
from evalsite.web.paging import paged
from judging.comparison.kept import KeptChange, ask, changes_of, comparison_of, items_of
from judging.comparison.models import Comparison
from judging.comparison.services import ComparedItem, definitions_by_name
from judging.core.charts.inline import trend
from judging.core.charts.series import mark
from judging.metrics.version_diff import PartView, parts_of_definitions
from judging.people.access import hidden_among
from judging.reports.figures import for_page
from judging.reports.pairing import OUTCOMES
from judging.reports.selectors import series_of
from judging.runs.access import get_judgement, get_run
from judging.runs.export.records import data_of
from judging.runs.models import JudgeReply, Run

ITEMS_PER_PAGE = 50
OFFERED = 100  # runs to choose from
QUESTION_CHARACTERS = 200


@login_required
@require_http_methods(["GET", "POST"])
def compare(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Compare this run with those in `with`; without any, show a list to choose from. POST: retry a failed
    comparison. With `progress`, return only the fragment that shows a comparison's progress."""
    run = get_run(request, slug, pk)
    others = _chosen(request, run)
    hidden = hidden_among(request, [run, *others])
    if hidden:
        return render(request, "reports/hidden.html", {"run": hidden[0]})
    runs = sorted([*others, run], key=lambda one: one.pk)
    before, after = runs[0], runs[-1]  # the newer run is compared with the older one
    if len(others) == 1 and "progress" in request.GET:
        return _progress(request, before, after)
    context: dict[str, Any] = {"run": run, "others": others, "offered": _offered(run)}
    if len(others) == 1:
        comparison = comparison_of(before, after)
        if request.method == "POST":
            ask(comparison)
            return redirect(request.get_full_path())
        context |= _two_runs(request, comparison)
    elif others:
        context |= {"table": _figures_table(runs)}
    return render(request, "comparison/compare.html", context)


def _chosen(request: HttpRequest, run: Run) -> list[Run]:
    """The runs in `with`, oldest first. Raises Http404 for an invalid number, or a run of another project."""
    named = [whole(text) for text in request.GET.getlist("with")]
    numbers = {number for number in named if number is not None} - {run.pk}
    if None in named or len(numbers) > OFFERED:
        raise Http404
    found = Run.objects.select_related("version__dataset").filter(project=run.project_id, pk__in=numbers)
    others = list(found.order_by("pk"))
    if len(others) < len(numbers):
        raise Http404
    for one in others:
        one.project = run.project
    return others


def _offered(run: Run) -> list[Run]:
    """The project's other runs with scores: those over the same data set first, then newest first."""
    found = Run.objects.filter(project=run.project_id, archived_at=None, scored__gt=0).exclude(pk=run.pk)
    runs = list(found.select_related("version__dataset").order_by("-pk")[:OFFERED])
    return sorted(runs, key=lambda one: one.version.dataset_id != run.version.dataset_id)


def _progress(request: HttpRequest, before: Run, after: Run) -> HttpResponse:
    comparison = Comparison.objects.filter(before=before, after=after).first()
    if comparison is None or not comparison.under_way:
        return HttpResponseClientRefresh()
    return render(request, "comparison/_progress.html", {"comparison": comparison, **_worker(comparison)})


def _worker(comparison: Comparison) -> dict[str, str]:
    return {"unattended": workers.obstacle(workers.DATA) if comparison.under_way else ""}


def _two_runs(request: HttpRequest, comparison: Comparison) -> dict[str, Any]:
    before, after = comparison.before, comparison.after
    context = {"before": before, "after": after, "comparison": comparison, **_worker(comparison)}
    changes = changes_of(comparison)
    if not changes:
        return context | {"nothing_shared": changes is not None}
    asked = (request.GET.get("metric") or changes[0].metric, request.GET.get("candidate", ""))
    names = [(one.metric, one.candidate) for one in changes]
    number = next((place for place, one in enumerate(names) if asked in (one, (one[0], ""))), None)
    if number is None:
        raise Http404
    chosen = changes[number]
    return context | {
        "settings": settings_between(before, after),
        "metrics": list(dict.fromkeys(metric for metric, _candidate in names)),
        "changes": [(one, shares_of(one)) for one in changes if one.metric == chosen.metric],
        **_items(request, chosen, items_of(comparison, number)),
    }


@dataclass(frozen=True, slots=True)
class ShareRow:
    """A share with its name and its bar, on a scale from −50 to 50 common to all shares of the cell."""

    cause: str
    name: str
    difference: float
    items: int
    left: str
    width: str


def shares_of(kept: KeptChange) -> list[ShareRow]:
    """The shares of a cell, largest first."""
    shares = sorted(kept.shares, key=lambda one: -abs(one.difference))
    most = max((abs(one.difference) for one in shares), default=0) or 1
    return [
        ShareRow(
            one.cause,
            cause_name(one.cause),
            one.difference,
            one.items,
            f"{50 + min(0.0, 50 * one.difference / most):.1f}",
            f"{max(0.5, 50 * abs(one.difference) / most):.1f}",
        )
        for one in shares
    ]


def settings_between(before: Run, after: Run) -> list[tuple[str, list[PartView]]]:
    """The settings that differ, by metric that both runs have."""
    first, second = definitions_by_name(before), definitions_by_name(after)
    parts = [
        (name, parts_of_definitions(after.project_id, first[name], metric))
        for name, metric in second.items()
        if name in first
    ]
    return [(name, differing) for name, differing in parts if differing]


def _items(request: HttpRequest, chosen: KeptChange, items: list[ComparedItem]) -> dict[str, Any]:
    outcome, cause = request.GET.get("outcome", ""), request.GET.get("cause", "")
    causes = [share.cause for share in chosen.shares]
    if outcome not in ("", *OUTCOMES) or cause not in ("", *causes):
        raise Http404
    if outcome or cause:
        items = [one for one in items if outcome in ("", one.outcome) and (not cause or cause in one.causes)]
    here, page = paged(request.GET, items, ITEMS_PER_PAGE)
    return {
        **page,
        "chosen": chosen,
        "outcome": outcome,
        "cause": cause,
        "counts": {one: chosen.counts.get(one, 0) for one in OUTCOMES},
        "causes": [(one, cause_name(one)) for one in causes],
        "items": _with_questions(here),
    }


def _with_questions(found: Sequence[ComparedItem]) -> list[tuple[ComparedItem, int, str, str]]:
    """Each item with its row's line, the beginning of its question and the cause's name."""
    rows = Row.objects.select_related("version").in_bulk([one.row for one in found])
    return [
        (
            one,
            row.line,
            (data_of(row.raw, row.version.format)["question"] or "")[:QUESTION_CHARACTERS],
            ", ".join(cause_name(cause) for cause in one.causes),
        )
        for one, row in ((one, rows[one.row]) for one in found)
    ]


@login_required
@require_GET
def compare_item(
    request: HttpRequest, slug: str, pk: int, other: int, first: int, second: int
) -> HttpResponse:
    """The replies to two judgements side by side with differences marked, as a fragment or a page."""
    after, before = get_judgement(request, slug, pk, second), get_judgement(request, slug, other, first)
    if hidden_among(request, [after.run, before.run]):
        raise PermissionDenied
    replies = [_replies(one.asked_by_id or one.pk) for one in (before, after)]
    places = sorted({*replies[0], *replies[1]})
    pairs = [sides(replies[0].get(place, ""), replies[1].get(place, "")) for place in places]
    answers = [one.response.raw for one in (before, after)]
    context = {
        "before": before,
        "after": after,
        "pairs": pairs,
        "answers_differ": answers[0] != answers[1],
    }
    template = "comparison/_item.html" if part_wanted(request) else "comparison/item.html"
    return render(request, template, context)


def _replies(judgement: int) -> dict[tuple[int, int, bool], str]:
    """Each judge's reply, reasoning first, by (judge, repeat, order)."""
    found = JudgeReply.objects.filter(judgement=judgement)
    return {
        (one.judge, one.repeat, one.swapped): "\n\n".join(filter(None, (one.reasoning, one.content)))
        for one in found
    }


def _figures_table(runs: list[Run]) -> list[dict[str, Any]]:
    """A row for each metric and candidate of the runs, with its cell in each of them, in their order."""
    reports = [kept.figures.report["candidates"] if (kept := for_page(run)) else {} for run in runs]
    names = dict.fromkeys(
        (metric, candidate) for report in reports for candidate, cells in report.items() for metric in cells
    )
    series = series_of([runs[0].project_id])[runs[0].project_id]
    table = []
    for metric, candidate in sorted(names):
        cells = [report.get(candidate, {}).get(metric) for report in reports]
        means = [cell and cell["mean"] for cell in cells]
        if all(mean is None for mean in means):
            continue  # a metric without numbers
        table.append(
            {
                "metric": metric,
                "candidate": candidate,
                "cells": list(zip(runs, cells, strict=True)),
                "mark": mark(series.get(candidate, 1)),
                "trend": trend(series.get(candidate, 1), means, f"{candidate}, {metric}"),
            }
        )
    return table


CAUSES: dict[str, Promise] = {
    "rows": pgettext_lazy("cause of a change", "rows"),
    "answers": pgettext_lazy("cause of a change", "answers"),
    "judge": pgettext_lazy("cause of a change", "judge model"),
    "prompt": pgettext_lazy("cause of a change", "prompt"),
    "scripts": pgettext_lazy("cause of a change", "scripts"),
    "parser": pgettext_lazy("cause of a change", "parser"),
    "overrides": pgettext_lazy("cause of a change", "overrides"),
    "missing": pgettext_lazy("cause of a change", "scored in one run only"),
    "noise": gettext_lazy("nothing changed (noise)"),
}


def cause_name(cause: str) -> str:
    """Causes that cannot be separated are joined with +."""
    return " + ".join(str(CAUSES[one]) for one in cause.split("+"))
