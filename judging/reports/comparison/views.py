"""Comparison of runs: a table of any number of them; for two runs also why their scores differ, and item by item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_GET, require_http_methods
from django_htmx.http import HttpResponseClientRefresh

from datasets.models import Row
from evalsite import access
from evalsite.tasks import workers
from evalsite.text_diff import sides
from evalsite.truncation import truncate
from evalsite.web.headers import part_wanted
from evalsite.web.numbers import whole
from evalsite.web.paging import paged
from judging.core.change import ASKING
from judging.core.charts.inline import trend
from judging.core.charts.series import mark
from judging.metrics.version_diff import PartView, parts_of_definitions
from judging.people.access import hidden_among
from judging.records.access import get_judgement, get_run
from judging.records.models import JudgeReply, Run, RunMetric
from judging.records.servers import changes_among
from judging.records.stored_judgement import data_of
from judging.reports.comparison.results import (
    Comparison,
    changes_of,
    comparison_of,
    items_of,
    request_again,
    stored_comparison,
)
from judging.reports.comparison.services import ComparedItem, definitions_by_name
from judging.reports.comparison.stored import StoredChange, StoredShare
from judging.reports.figures import for_page
from judging.reports.labels import ValueFormat, shares_signed
from judging.reports.outcomes import versions_of_metrics
from judging.reports.pairing import OUTCOMES
from judging.reports.selectors import metrics_of, series_of

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
    runs = sorted([*others, run], key=lambda run: run.pk)
    before, after = runs[0], runs[-1]  # the newer run is compared with the older one
    if len(others) == 1 and "progress" in request.GET:
        return _progress(request, before, after)
    context: dict[str, Any] = {"run": run, "others": others, "offered": _offered(run)}
    if len(others) == 1:
        comparison = comparison_of(before, after)
        if request.method == "POST":
            request_again(comparison)
            return redirect(request.get_full_path())
        context |= _two_runs(request, comparison)
    elif others:
        context |= {"table": _figures_table(runs)}
    context["server_changes"] = changes_among([run.pk for run in runs]) if others else []
    return render(request, "comparison/compare.html", context)


def _chosen(request: HttpRequest, run: Run) -> list[Run]:
    """The runs in `with`, oldest first. Raises Http404 for an invalid number, or a run of another project."""
    named = [whole(text) for text in request.GET.getlist("with")]
    numbers = {number for number in named if number is not None} - {run.pk}
    if None in named or len(numbers) > OFFERED:
        raise Http404
    rows = Run.objects.select_related("version__dataset").filter(project=run.project_id, pk__in=numbers)
    others = list(rows.order_by("pk"))
    if len(others) < len(numbers):
        raise Http404
    for other in others:
        access.loaded(request, other).project = run.project
    return others


def _offered(run: Run) -> list[Run]:
    """The project's other runs with scores: those over the same data set first, then newest first."""
    rows = Run.objects.with_verdicts().filter(project=run.project_id, archived_at=None).exclude(pk=run.pk)
    runs = list(rows.select_related("version__dataset").order_by("-pk")[:OFFERED])
    return sorted(runs, key=lambda other: other.version.dataset_id != run.version.dataset_id)


def _progress(request: HttpRequest, before: Run, after: Run) -> HttpResponse:
    comparison = stored_comparison(before, after)
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
    selection = (request.GET.get("metric") or changes[0].metric, request.GET.get("candidate", ""))
    names = [(change.metric, change.candidate) for change in changes]
    number = next((place for place, name in enumerate(names) if selection in (name, (name[0], ""))), None)
    if number is None:
        raise Http404
    chosen = changes[number]
    shown = [change for change in changes if change.metric == chosen.metric]
    values = values_under(after, chosen.metric)
    longest = max((abs(share.difference) for change in shown for share in change.shares), default=0.0)
    return context | {
        "settings": settings_between(before, after),
        "win_rates": compares_candidates(after, chosen.metric),
        "metrics": list(dict.fromkeys(metric for metric, _candidate in names)),
        "changes": [(change, shares_of(change, longest, values)) for change in shown],
        "judge_moved": any(judge_moved(share) for change in shown for share in change.shares),
        "values": values,
        **_items(request, chosen, items_of(comparison, chosen)),
    }


def compares_candidates(run: Run, metric: str) -> bool:
    """Whether a metric's verdicts compare answers of candidates with each other."""
    definition = definitions_by_name(run).get(metric)
    return definition is not None and definition.compares_candidates


def values_under(run: Run, metric: str) -> ValueFormat:
    """The format of a metric's values, which are numbers for comparisons of runs; win rates where candidates are
    compared."""
    if compares_candidates(run, metric):
        return ValueFormat(rate=True)
    scales = {scaled.name: scaled for scaled in metrics_of(run).values()}
    scale = scales.get(metric)
    return ValueFormat.of("number", scale.low, scale.high) if scale else ValueFormat()


@dataclass(frozen=True, slots=True)
class ShareRow:
    """A share with its name and its bar, on a scale from −50 to 50 common to all shares that the page shows."""

    cause: str
    name: str
    difference: float
    text: str
    ci_low: float | None
    ci_high: float | None
    items: int
    left: str
    width: str


def shares_of(change: StoredChange, longest: float, values: ValueFormat) -> list[ShareRow]:
    """The shares of a cell, largest first; `longest`: the share whose bar has the full length."""
    shares = sorted(change.shares, key=lambda share: -abs(share.difference))
    unit, places = (100, 1) if values.rate else (1, values.places)  # rates differ by percentage points
    differences = [unit * share.difference for share in shares]
    texts = shares_signed(differences, unit * (change.difference or 0.0), places)
    most = longest or 1.0
    return [
        ShareRow(
            share.cause,
            share_name(share),
            share.difference,
            text,
            share.ci_low,
            share.ci_high,
            share.items,
            f"{50 + min(0.0, 50 * share.difference / most):.1f}",
            f"{max(0.5, 50 * abs(share.difference) / most):.1f}",
        )
        for share, text in zip(shares, texts, strict=True)
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


def _items(request: HttpRequest, chosen: StoredChange, items: list[ComparedItem]) -> dict[str, Any]:
    outcome, cause = request.GET.get("outcome", ""), request.GET.get("cause", "")
    causes = [share.cause for share in chosen.shares]
    if outcome not in ("", *OUTCOMES) or cause not in ("", *causes):
        raise Http404
    if outcome or cause:
        items = [
            item for item in items if outcome in ("", item.outcome) and (not cause or cause in item.causes)
        ]
    here, page = paged(request.GET, items, ITEMS_PER_PAGE)
    return {
        **page,
        "chosen": chosen,
        "outcome": outcome,
        "cause": cause,
        "counts": {name: chosen.counts.get(name, 0) for name in OUTCOMES},
        "causes": [(name, cause_name(name)) for name in causes],
        "items": _with_questions(here),
    }


def _with_questions(items: Sequence[ComparedItem]) -> list[tuple[ComparedItem, int, str, str]]:
    """Each item with its row's line, the beginning of its question and the cause's name."""
    rows = Row.objects.select_related("version").in_bulk([item.row for item in items])
    return [
        (
            item,
            row.line,
            truncate(data_of(row.raw, row.version.format)["question"] or "", QUESTION_CHARACTERS),
            ", ".join(cause_name(cause) for cause in item.causes),
        )
        for item, row in ((item, rows[item.row]) for item in items)
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
    replies = [_replies(judgement.replies_from_id or judgement.pk) for judgement in (before, after)]
    places = sorted({*replies[0], *replies[1]})
    pairs = [sides(replies[0].get(place, ""), replies[1].get(place, "")) for place in places]
    answers = [
        [answer.raw for answer in (judgement.response, judgement.other_response) if answer]
        for judgement in (before, after)
    ]
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
    replies = JudgeReply.objects.filter(judgement=judgement)
    return {
        (reply.judge, reply.repeat, reply.swapped): "\n\n".join(
            filter(None, (reply.reasoning, reply.content))
        )
        for reply in replies
    }


def _figures_table(runs: list[Run]) -> list[dict[str, Any]]:
    """A row for each metric, in each of its versions, and candidate of the runs, with its cell in each of them, in
    their order. Means over other versions of the data are not joined by the line."""
    reports = [stored.figures.report["candidates"] if (stored := for_page(run)) else {} for run in runs]
    versions = [versions_of_metrics(run) for run in runs]
    names = dict.fromkeys(
        (metric, own[metric], candidate)
        for report, own in zip(reports, versions, strict=True)
        for candidate, cells in report.items()
        for metric in cells
    )
    series = series_of([runs[0].project_id])[runs[0].project_id]
    labels = version_labels(runs, versions)
    table = []
    order = {name: place for place, name in enumerate(names)}
    for metric, version, candidate in sorted(names, key=lambda name: (name[0], name[2], order[name])):
        cells = [
            report.get(candidate, {}).get(metric) if own.get(metric) == version else None
            for report, own in zip(reports, versions, strict=True)
        ]
        means = [cell and cell["mean"] for cell in cells]
        if all(mean is None for mean in means):
            continue  # a metric without numbers
        newest = next(
            run for run, mean in zip(reversed(runs), reversed(means), strict=True) if mean is not None
        )
        joined = [
            mean if run.version_id == newest.version_id else None
            for run, mean in zip(runs, means, strict=True)
        ]
        kind = next(cell["kind"] for cell in cells if cell and cell["mean"] is not None)
        scale = next(scaled for scaled in metrics_of(newest).values() if scaled.name == metric)
        table.append(
            {
                "metric": metric,
                "version": labels.get((metric, version), ""),
                "candidate": candidate,
                "values": ValueFormat.of(kind, scale.low, scale.high),
                "cells": list(zip(runs, cells, strict=True)),
                "compares": scale.compares,
                "mark": mark(series.get(candidate, 1)),
                "trend": trend(series.get(candidate, 1), joined, f"{candidate}, {metric}"),
            }
        )
    return table


def version_labels(runs: Sequence[Run], versions: Sequence[Mapping[str, str]]) -> dict[tuple[str, str], str]:
    """{(metric, version): label} of metrics of which the runs used several versions: the version's number, or the
    first run that used an unsaved one."""
    first: dict[tuple[str, str], Run] = {}
    for run, own in zip(runs, versions, strict=True):
        for key in own.items():
            first.setdefault(key, run)
    several = Counter(metric for metric, _version in first)
    numbers = {
        (run_metric.name, str(run_metric.metric_version_id)): f"v{run_metric.metric_version.number}"
        for run_metric in RunMetric.objects.filter(run__in=runs, metric_version__isnull=False).select_related(
            "metric_version"
        )
        if run_metric.metric_version
    }
    return {
        key: numbers.get(key) or _("as in %(run)s") % {"run": run.name}
        for key, run in first.items()
        if several[key[0]] > 1
    }


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


def judge_moved(share: StoredShare) -> bool:
    """Whether the judge's verdicts moved by more than chance where nothing that is stored differs."""
    if share.cause != "noise" or share.ci_low is None or share.ci_high is None:
        return False
    return not share.ci_low <= 0 <= share.ci_high


def share_name(share: StoredShare) -> str:
    """The name of a share's cause. Where the judge was asked anew and the share may be none at all, it may as well be
    the judge's own variation."""
    name = cause_name(share.cause)
    unclear = share.ci_low is None or share.ci_high is None or share.ci_low <= 0 <= share.ci_high
    if unclear and ASKING & set(share.cause.split("+")):
        return _("%(cause)s (or the judge's own variation)") % {"cause": name}
    return name


def cause_name(cause: str) -> str:
    """Causes that cannot be separated are joined with +."""
    return " + ".join(str(CAUSES[part]) for part in cause.split("+"))
