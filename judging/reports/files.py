"""A report as files: the document, its tables as CSV, its charts as SVG."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from evalsite.table_files import Sheet, csv_of
from judging.core.charts.svg import as_file
from judging.core.statistics.document import bins_of
from judging.core.statistics.frame import ScaledMetric
from judging.core.statistics.ranking import ranked
from judging.records.models import Run
from judging.reports.figures import for_page
from judging.reports.page.drawing import means_chart, metrics_radar, spread_chart
from judging.reports.services import report_document
from judging.reports.verdict_shares import SIDE_SHARES, VERDICT_SHARES, verdict_columns

Document = Mapping[str, Any]

FIGURES = (
    *("kind", "mean", "ci_low", "ci_high", "se", "items", "clusters", "responses", "asked"),
    *(
        "scored",
        "no_score",
        "unparsed",
        "unsettled",
        "errors",
        "not_run",
        "coverage",
        "low_bound",
        "high_bound",
    ),
    *("top_share", "off_scale", "rate", "rate_ci_low", "rate_ci_high", "overridden"),
)
COMPARED = ("comparisons", "wins", "ties", "losses", "both_bad", "win_rate", "rating")
LEFT_OUT = ("bad_rows", "rows_not_drawn", "rows_without_answers", "excluded")
"""Counts of rows and answers that are not included, repeated in each line, because the file may be read on its own."""
PAIRS = (
    *("metric", "a", "b", "difference", "ci_low", "ci_high", "se", "p", "p_holm", "distinguishable"),
    *("wins", "ties", "losses", "items", "smallest_difference"),
)


def document_json(document: Document) -> bytes:
    """The document of `report --json`."""
    return (json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n").encode()


def report_sheet(run: Run) -> Sheet:
    """The figures as a sheet: a line per candidate and metric, for comparisons also per author; `part` is their part of
    the document. If they are not computed yet, a sentence says so."""
    stored = for_page(run)
    if stored is None:
        return Sheet(_("Report"), [_("The figures are being computed. Export again in a minute.")], [])
    document = report_document(run, stored.figures)
    columns = [
        "part",
        "metric",
        "candidate",
        "by",
        *FIGURES,
        *VERDICT_SHARES,
        *COMPARED,
        *SIDE_SHARES,
        *LEFT_OUT,
    ]
    left_out = {name: document["left_out"][name] for name in LEFT_OUT}
    rows = [[(line | left_out).get(name) for name in columns] for line in _report_lines(document)]
    return Sheet(_("Report"), columns, rows)


def _report_lines(document: Document) -> Iterator[dict[str, Any]]:
    for part in ("candidates", "people_candidates"):
        for candidate, metrics in document[part].items():
            for metric, cell in metrics.items():
                yield {"part": part, "metric": metric, "candidate": candidate} | cell | verdict_columns(cell)
    for compared in document["side_by_side"]:
        about = {"part": "side_by_side", "metric": compared["metric"], "by": compared["by"]}
        for candidate, cell in compared["candidates"].items():
            yield about | {"candidate": candidate} | cell


def figures_csv(document: Document) -> bytes:
    """A line per candidate and metric."""
    left_out = [document["left_out"][name] for name in LEFT_OUT]
    rows = [
        [
            *(name, metric, *(cell.get(figure) for figure in FIGURES)),
            *(verdict_columns(cell).get(column) for column in VERDICT_SHARES),
            *left_out,
        ]
        for name, metric, cell in _cells(document)
    ]
    return _csv(["candidate", "metric", *FIGURES, *VERDICT_SHARES, *LEFT_OUT], rows)


def pairs_csv(document: Document) -> bytes:
    """A line per pair of candidates and metric."""
    return _csv(PAIRS, [[pair[name] for name in PAIRS] for pair in document["pairs"]])


def distributions_csv(document: Document) -> bytes:
    """A line per bin of a distribution, and per category."""
    columns = ["candidate", "metric", "low", "high", "category", "count"]
    return _csv(columns, _bars(document))


def repeats_csv(document: Document) -> bytes:
    """A line per k if items have several responses."""
    columns = ["candidate", "metric", "k", "best_at_k", "worst_at_k", "pass_at_k", "all_pass_at_k"]
    columns += ["pass_threshold", "items"]
    rows = [
        [
            *(name, metric, int(k), best, cell["worst_at_k"][k]),
            *(cell.get(passed, {}).get(k) for passed in ("pass_at_k", "all_pass_at_k")),
            *(cell.get("pass_threshold"), cell["at_k_items"][k]),
        ]
        for name, metric, cell in _cells(document)
        for k, best in cell.get("best_at_k", {}).items()
    ]
    return _csv(columns, rows)


def comparisons_csv(document: Document) -> bytes:
    """A line per author and pair of candidates compared side by side."""
    columns = ["metric", "by", "a", "b", "wins", "ties", "losses", "both_bad", "win_rate"]
    columns += ["ci_low", "ci_high", "unsettled", *SIDE_SHARES]
    rows = [
        [comparisons["metric"], comparisons["by"], *(pair.get(name) for name in columns[2:])]
        for comparisons in document["side_by_side"]
        for pair in comparisons["pairs"]
    ]
    return _csv(columns, rows)


def agreement_csv(document: Document) -> bytes:
    """A line per judge and its reference: people or another judge."""
    columns = ["metric", "judge", "against", "items", "exact", "kappa"]
    columns += ["kappa_weighted", "kappa_low", "kappa_high"]
    columns += ["spearman", "pearson", "kendall", "alpha", "mean_absolute_difference", "bias"]
    columns += ["bias_low", "bias_high"]
    human = ["items", "exact", "kappa_weighted", "alpha"]
    rows = [
        [*(agreement[name] for name in columns), *((agreement["human"] or {}).get(name) for name in human)]
        for agreement in document["judges"]
    ]
    return _csv([*columns, *(f"human_{name}" for name in human)], rows)


def criteria_csv(document: Document) -> bytes:
    """A line per criterion of a checklist on which raters can be compared."""
    columns = ["metric", "id", "criterion", "answers", "percent", "alpha", "ac1"]
    rows = [
        [checklist["metric"], *(entry[name] for name in columns[1:])]
        for checklist in document.get("checklists", ())
        for entry in checklist["agreement"]
    ]
    return _csv(columns, rows)


def radar_svg(document: Document, metrics: Sequence[ScaledMetric], series: Mapping[str, int]) -> bytes:
    """All candidates over the metrics; empty with fewer than three metrics that have a scale."""
    return as_file(metrics_radar(document, metrics, series))


def chart_svg(document: Document, metric: ScaledMetric, kind: str) -> bytes:
    """The `means` or `spread` chart of one metric as a standalone file; empty if there is none."""
    draw = {"means": means_chart, "spread": spread_chart}[kind]
    return as_file(draw(kind, ranked(document, metric.name), metric))


def _cells(document: Document) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for candidate, metrics in document["candidates"].items():
        for metric, cell in metrics.items():
            yield candidate, metric, cell


def _bars(document: Document) -> Iterator[list[Any]]:
    for candidate, metric, cell in _cells(document):
        for bar in bins_of(cell):
            yield [candidate, metric, bar["low"], bar["high"], None, bar["count"]]
        for label, share in cell.get("categories", {}).items():
            yield [candidate, metric, None, None, label, share["count"]]


def _csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    return b"".join(csv_of(columns, rows))
