"""A run's report: the page, its files, and the items behind a pair of candidates."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django_htmx.http import HttpResponseClientRefresh

from datasets.models import Response
from evalsite.tasks import workers
from evalsite.web.headers import download_headers, file_stem, part_wanted
from evalsite.web.paging import paged
from judging.core.charts.svg import as_file
from judging.core.statistics.drill_down import Paired
from judging.core.statistics.frame import ScaledMetric
from judging.core.values import verdict_code
from judging.messages import pass_or_fail
from judging.people.access import rates_here
from judging.records.access import get_run
from judging.records.models import Run
from judging.reports import files, selectors
from judging.reports.disagreements import choices, compared_answers
from judging.reports.figures import Figures, RunFigures, for_page, item_means, slices_for_page
from judging.reports.labels import ValueFormat, author_name
from judging.reports.links import Links
from judging.reports.page.drawing import agreement_chart
from judging.reports.page.report_view import PageOptions, fields_of, report_view
from judging.reports.pairing import OUTCOMES, PairItem, PairItems, pair_items
from judging.reports.services import report_document
from judging.reports.sharing import report_html
from judging.reports.verdict_views import comparisons_page, metric_named
from judging.runs.selectors import worker_missing

ITEMS_PER_PAGE = 100

TABLES: dict[str, Callable[[files.Document], bytes]] = {
    "figures.csv": files.figures_csv,
    "pairs.csv": files.pairs_csv,
    "distributions.csv": files.distributions_csv,
    "repeats.csv": files.repeats_csv,
    "comparisons.csv": files.comparisons_csv,
    "agreement.csv": files.agreement_csv,
    "criteria.csv": files.criteria_csv,
    "report.json": files.document_json,
}
_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
    "html": "text/html; charset=utf-8",
}
_CHART = re.compile(r"(means|spread)-(\d{1,5})\.svg")
_SCATTER = re.compile(r"scatter-(\d{1,5})-(\d{1,5})\.svg")
PAIRED_PER_PAGE = 50


@login_required
def report(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """A run's report, preliminary while the run is in progress."""
    run = get_run(request, slug, pk)
    if rates_here(request, run):
        return render(request, "reports/hidden.html", {"run": run})
    if part_wanted(request) and "being_made" in request.GET:
        return _being_made(request, run)
    options = options_of(request)
    context = {"run": run, "options": options, "worker_missing": worker_missing(run)}
    context |= figures_context(run, options)
    return render(request, "reports/report.html", context)


def options_of(request: HttpRequest) -> PageOptions:
    """The options in the query."""
    get = request.GET.get
    columns = tuple(request.GET.getlist("column"))
    return PageOptions(get("metric", ""), columns, get("by", ""), get("difference", ""))


def figures_context(run: Run, options: PageOptions | None = None) -> dict[str, Any]:
    """Context of pages with a run's figures: the figures, or that they are being computed, and whether a worker is
    missing."""
    shown = report_view(run, options)
    being_made = shown is None or bool(shown.slices_due) or (shown.made_at is not None and run.is_idle)
    unattended = workers.obstacle(workers.DATA) if being_made else ""
    return {
        "report": shown,
        "made_at": shown and shown.made_at,
        "being_made": being_made,
        "field": shown.slices_due if shown else "",
        "unattended": unattended,
    }


def _being_made(request: HttpRequest, run: Run) -> HttpResponse:
    """Polled by a page that waits for figures, or for slices by a field."""
    stored, field = for_page(run), request.GET["being_made"]
    due = field if stored and field in fields_of(run) and slices_for_page(run, field, stored).due else ""
    if stored is not None and not due and (stored.current(run) or not run.is_idle):
        return HttpResponseClientRefresh()
    context = {
        "run": run,
        "made_at": stored and stored.made_at,
        "field": due,
        "unattended": workers.obstacle(workers.DATA),
    }
    return render(request, "reports/_being_made.html", context)


@login_required
def report_file(request: HttpRequest, slug: str, pk: int, name: str) -> HttpResponse:
    """A table, the document or a chart of the report as a file."""
    run = get_run(request, slug, pk)
    stored = None if rates_here(request, run) else for_page(run)
    if stored is None:
        return redirect("runs:report", slug, pk)  # which shows that they are being computed
    return file_response(run, stored, name)


def file_response(run: Run, stored: RunFigures, name: str) -> HttpResponse:
    """A file of the report. Raises Http404 if there is none of this name."""
    if name == "report.html":
        content = report_html(run, stored)
    else:
        content = _content(report_document(run, stored.figures), stored.figures, run, name)
    if not content:
        raise Http404
    headers = download_headers(f"{file_stem(run.name) or run.pk}-{name}")
    return HttpResponse(content, content_type=_TYPES[name.rpartition(".")[2]], headers=headers)


def _content(document: files.Document, figures: Figures, run: Run, name: str) -> bytes:
    """The file's content; empty if there is no such file."""
    if name in TABLES:
        return TABLES[name](document)
    metrics = list(selectors.metrics_of(run).values())
    if name == "radar.svg":
        return files.radar_svg(document, metrics, selectors.series_of([run.project_id])[run.project_id])
    if scatter := _SCATTER.fullmatch(name):
        return _scatter(figures, metrics, int(scatter[1]) - 1, int(scatter[2]) - 1)
    chart = _CHART.fullmatch(name)
    if chart is None or not 0 < int(chart[2]) <= len(metrics):
        return b""
    return files.chart_svg(document, metrics[int(chart[2]) - 1], chart[1])


def _scatter(figures: Figures, metrics: list[ScaledMetric], metric: int, judge: int) -> bytes:
    judges = list(figures.paired.get(metrics[metric].name, {}).items()) if 0 <= metric < len(metrics) else []
    if not 0 <= judge < len(judges):
        return b""
    name, paired = judges[judge]
    return as_file(agreement_chart("scatter", paired, metrics[metric], name, Links.none()))


@login_required
def agreement(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Answers rated by both a judge and people, largest differences first."""
    run = get_run(request, slug, pk)
    names = ("metric", "judge", "judge_value", "people_value", "field", "field_is", "candidate")
    query = {name: request.GET.get(name, "") for name in names}
    stored = None if rates_here(request, run) else for_page(run)
    if stored is None or not query["metric"]:
        return redirect("runs:report", slug, pk)  # which links here, or shows that they are being computed
    metric = metric_named(run, query["metric"])
    paired = stored.figures.paired.get(query["metric"], {}).get(query["judge"])
    if paired is None:
        raise Http404
    places = paired.places(query["judge_value"], query["people_value"])
    if query["candidate"]:
        places = [place for place in places if paired.candidates[place] == query["candidate"]]
    if query["field"]:
        places = _of_rows_with(run, query["field"], query["field_is"], paired, places)
    here, page = paged(request.GET, places, PAIRED_PER_PAGE)
    context = {
        **query,
        **page,
        "run": run,
        "judge_name": author_name(query["judge"]),
        "made_at": stored.outdated_since(run),
        "paired": paired,
        "judge_values": choices(paired, paired.judge, query["judge_value"], metric),
        "people_values": choices(paired, paired.people, query["people_value"], metric),
        "items": compared_answers(run, metric, query["judge"], paired, here, reasons=True),
        "several_answers": max(paired.responses, default=1) > 1,
    }
    return render(request, "reports/agreement.html", context)


def _of_rows_with(run: Run, field: str, value: str, paired: Paired, places: Sequence[int]) -> list[int]:
    """The places of answers to rows with this value of a field. Raises Http404 for an unknown field."""
    try:
        values = selectors.values_of_fields(run, [field])[field]
    except selectors.FieldUnknown:
        raise Http404 from None
    return [place for place in places if values.get(paired.rows[place]) == value]


@login_required
def pair(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The items that two candidates share, or in which someone compared them."""
    run = get_run(request, slug, pk)
    if request.GET.get("by"):
        return comparisons_page(request, run)
    query = {name: request.GET.get(name, "") for name in ("metric", "a", "b", "outcome")}
    if query["outcome"] not in ("", *OUTCOMES):
        raise Http404
    stored = None if rates_here(request, run) else for_page(run)
    items = None if stored is None else _shared_items(run, stored.figures, query)
    if stored is None or items is None:
        return redirect("runs:report", slug, pk)  # which shows that they are being computed
    chosen = items.of(query["outcome"]) if query["outcome"] else items
    places, page = paged(request.GET, range(len(chosen)), ITEMS_PER_PAGE)
    here = chosen.page(page["first"] - 1, len(places)) if places else []
    context = {
        **query,
        **page,
        "run": run,
        "made_at": stored.outdated_since(run),
        "counts": items.counts(),
        "all": len(items),
        "items": _item_rows(run, stored.figures.kind(query["metric"]), here, query),
    }
    return render(request, "reports/pair.html", context)


def _shared_items(run: Run, figures: Figures, query: dict[str, str]) -> PairItems | None:
    """None until they are computed. Raises Http404 if the run has no such metric or candidates."""
    metrics = {metric.name: key for key, metric in selectors.metrics_of(run).items()}
    candidates = {name: key for key, name in selectors.candidates_of(run).items()}
    metric, a, b = query["metric"], query["a"], query["b"]
    if metric not in metrics or a not in candidates or b not in candidates or a == b:
        raise Http404
    means = item_means(run, figures, metrics[metric], (candidates[a], candidates[b]))
    return None if means is None else pair_items(*means)


def _item_rows(
    run: Run, kind: str | None, items: list[PairItem], query: dict[str, str]
) -> list[dict[str, Any]]:
    """The items with their question, and links to the judgements of both sides."""
    lines = [item.line for item in items]
    questions, links = selectors.questions_of(run, lines), Links.of(run)
    a, b, scale = query["a"], query["b"], metric_named(run, query["metric"])
    values = ValueFormat.of(kind, scale.low, scale.high)
    several = _answered_twice(run, lines)

    def shown(name: str, line: int, mean: float) -> str:
        verdict = "" if (name, line) in several else _verdict(mean, kind, scale)
        return verdict or values.text(mean)

    return [
        {
            "line": item.line,
            "question": questions.get(item.line, ""),
            "a": shown(a, item.line, item.a),
            "b": shown(b, item.line, item.b),
            "difference": values.signed(item.difference),
            "a_url": links.to(a, query["metric"], line=item.line),
            "b_url": links.to(b, query["metric"], line=item.line),
        }
        for item in items
    ]


def _answered_twice(run: Run, lines: Sequence[int]) -> set[tuple[str, int]]:
    """(candidate, row) of several answers, whose value is a mean."""
    names = selectors.candidates_of(run)
    second = Response.objects.filter(
        row__version=run.version_id, row__line__in=lines, candidate__in=list(names), number=2
    )
    return {(names[candidate], line) for candidate, line in second.values_list("candidate_id", "row__line")}


def _verdict(mean: float, kind: str | None, scale: ScaledMetric) -> str:
    """The verdict that the value of a single answer is; '' for a score."""
    if scale.compares:
        return verdict_code(mean)
    return pass_or_fail(mean == 1) if kind == "bool" and mean in (0, 1) else ""
