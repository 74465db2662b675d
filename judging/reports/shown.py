"""A run's report as its pages show it: the document's figures, arranged metric by metric."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.safestring import SafeString, mark_safe

from judging.core.statistics.frame import Metric
from judging.reports import selectors, words
from judging.reports.drawing import means_chart, spread_chart
from judging.reports.figures import for_page
from judging.reports.links import Links
from judging.reports.rule_lines import RuleFigures, left_out_lines, rule_table
from judging.reports.services import report_document
from judging.reports.tables import (
    Table,
    distribution_table,
    main_table,
    pairs_table,
    ranked,
    repeats_table,
    shares_table,
    uncertain,
)
from judging.runs.models import Run


@dataclass(frozen=True, slots=True)
class MetricShown:
    """One metric over all candidates; `number` counts from 1 and names its files.

    Where there is nothing to show a chart is empty and a table None.
    """

    number: int
    name: str
    low: float | None
    high: float | None
    kind: str
    means: SafeString
    main: Table
    notes: list[str]
    uncertain: bool
    spread: SafeString
    distribution: Table | None
    shares: Table | None
    repeats: Table | None
    pairs: Table | None
    pairs_summary: str
    rule_lines: Table | None
    rule_lines_left_out: int


@dataclass(frozen=True, slots=True)
class ReportShown:
    """The page: what was left out, each metric, what it cost. `scored`: judgements with a value; `truncated`:
    those with a judge's reply that was cut off; `made_at`: when the figures were worked out, if the run has changed
    since."""

    document: dict[str, Any]
    left_out: list[str]
    overridden: int
    metrics: list[MetricShown]
    scored: int
    responses: int
    truncated: int
    made_at: datetime | None


def report_shown(run: Run) -> ReportShown | None:
    """Everything that the page and the summary of a run show; None while a worker works the figures out."""
    kept = for_page(run)
    if kept is None:
        return None
    figures = kept.figures
    document, links = report_document(run, figures), Links.of(run)
    cells = [cell for metrics in document["candidates"].values() for cell in metrics.values()]
    metrics, lines = selectors.metrics_of(run).values(), figures.rule_lines
    return ReportShown(
        document=document,
        left_out=words.left_out_sentences(document["left_out"]),
        overridden=words.overridden(document),
        metrics=[_metric(place, metric, document, links, lines) for place, metric in enumerate(metrics, 1)],
        scored=sum(cell["scored"] for cell in cells),
        responses=sum(cell["responses"] for cell in cells),
        truncated=figures.truncated,
        made_at=None if kept.current(run) else kept.made_at,
    )


def _metric(
    place: int, metric: Metric, document: dict[str, Any], links: Links, lines: dict[str, RuleFigures]
) -> MetricShown:
    cells = ranked(document, metric.name)
    pairs = [pair for pair in document["pairs"] if pair["metric"] == metric.name]
    kind = next((cell["kind"] for cell in cells.values() if cell["kind"]), None)
    return MetricShown(
        number=place,
        name=metric.name,
        low=metric.low,
        high=metric.high,
        kind=kind or "",
        means=_svg(means_chart(f"means-{place}", cells, metric)),
        main=main_table(cells, metric.name, metric.high or 0, links),
        notes=words.note_sentences(cells),
        uncertain=any(map(uncertain, cells.values())),
        spread=_svg(spread_chart(f"spread-{place}", cells, metric)),
        distribution=distribution_table(cells, metric.name, links),
        shares=shares_table(cells, metric.name, links),
        repeats=repeats_table(cells, metric.name, links),
        pairs=pairs_table(pairs, links),
        pairs_summary=words.pair_summary(pairs),
        rule_lines=rule_table(lines[metric.name], metric.name, list(cells), links)
        if metric.name in lines
        else None,
        rule_lines_left_out=left_out_lines(lines[metric.name]) if metric.name in lines else 0,
    )


def _svg(chart: str) -> SafeString:
    return mark_safe(chart)  # noqa: S308 (core.charts escapes every text that it draws)
