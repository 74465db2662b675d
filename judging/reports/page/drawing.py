"""A metric's charts and their texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsite.names import labelled
from evalsite.templatetags.show import number
from judging.core.charts.histograms import HistogramTexts, Panel, histogram_chart
from judging.core.charts.intervals import IntervalRow, IntervalTexts, interval_chart
from judging.core.charts.radar import FEWEST, Shape, radar_chart
from judging.core.charts.scatter import Point, ScatterTexts, scatter_chart
from judging.core.statistics.document import bins_of
from judging.core.statistics.drill_down import Paired, value_key
from judging.core.statistics.frame import ScaledMetric
from judging.core.statistics.ranking import Cells, ranked
from judging.reports.labels import ValueFormat, author_name, beside, label_text
from judging.reports.links import Links
from judging.reports.page.tables import kind_of

MOST_POINTS = 400  # different pairs of values; with more, the chart would be unreadable


def means_chart(chart_id: str, cells: Cells, metric: ScaledMetric) -> str:
    """Each candidate's mean with its interval as SVG; '' if no candidate has a mean."""
    if all(cell["mean"] is None for cell in cells.values()):
        return ""
    rate = any(cell["kind"] == "bool" for cell in cells.values())
    rows = [_row(name, cell, metric) for name, cell in cells.items()]
    texts = IntervalTexts(
        title=_("%(metric)s: mean by candidate") % {"metric": metric.name},
        description="; ".join(labelled(row.name, row.label) for row in rows),
        axis=_("pass rate") if rate else _("mean score"),
        mean=_("rate") if rate else _("mean"),
        interval=_("95 % interval"),
        bounds=_("range if all missing scores were lowest or highest"),
    )
    return interval_chart(chart_id, rows, texts, scale=_scale(rows, metric, rate))


def _row(name: str, cell: Mapping[str, Any], metric: ScaledMetric) -> IntervalRow:
    values = ValueFormat.of(cell["kind"], metric.low, metric.high)
    shown = values.interval(cell["ci_low"], cell["ci_high"])
    label = _("no score") if cell["mean"] is None else beside(values.text(cell["mean"]), shown)
    bounds = (cell["low_bound"], cell["high_bound"])
    low, high = (None, None) if bounds[0] == bounds[1] else bounds
    return IntervalRow(name, label, cell["mean"], cell["ci_low"], cell["ci_high"], low, high)


def _scale(rows: list[IntervalRow], metric: ScaledMetric, rate: bool) -> tuple[float, float] | None:
    """The metric's scale if everything drawn lies on it, else the range of the values if there are bounds, else
    None."""
    low, high = (0.0, 1.0) if rate else (metric.low, metric.high)
    drawn = [end for row in rows for end in (row.mean, row.low, row.high, row.low_bound, row.high_bound)]
    values = [value for value in drawn if value is not None]
    if low is not None and high is not None and low <= min(values) and max(values) <= high:
        return low, high
    return (min(values), max(values)) if any(row.low_bound is not None for row in rows) else None


def spread_chart(chart_id: str, cells: Cells, metric: ScaledMetric) -> str:
    """Distribution of each candidate's scores as SVG; '' without numeric scores: for booleans the rate is enough."""
    if not any(bins_of(cell) and cell["kind"] == "number" for cell in cells.values()):
        return ""
    texts = HistogramTexts(
        title=_("%(metric)s: score distribution") % {"metric": metric.name},
        description=_("One panel per candidate. Bars show the share of scores, labelled with counts."),
        axis=_("score"),
        nothing=_("no scores"),
    )
    panels = [Panel(name, _spread_note(cell), bins_of(cell)) for name, cell in cells.items()]
    return histogram_chart(chart_id, panels, texts)


def metrics_radar(
    document: Mapping[str, Any], metrics: Sequence[ScaledMetric], series: Mapping[str, int]
) -> str:
    """All candidates over the metrics that have a scale, as SVG; '' with fewer than three metrics."""
    scaled = [(metric.name, _ends(document, metric)) for metric in metrics]
    axes = {name: ends for name, ends in scaled if ends is not None}
    if len(axes) < FEWEST:
        return ""
    shapes = [
        Shape(name, series[name], [_share(cells[metric]["mean"], *ends) for metric, ends in axes.items()])
        for name, cells in document["candidates"].items()
    ]
    title = _("Mean by metric, from the low end of each scale to its high end")
    description = _("See the table for the figures.")
    return radar_chart("radar", list(axes), shapes, title, description)


def _ends(document: Mapping[str, Any], metric: ScaledMetric) -> tuple[float, float] | None:
    kind = kind_of(ranked(document, metric.name))
    if kind == "bool":
        return 0.0, 1.0
    if kind != "number" or metric.low is None or metric.high is None or metric.low >= metric.high:
        return None
    return metric.low, metric.high


def _share(mean: float | None, low: float, high: float) -> float | None:
    return None if mean is None else min(1.0, max(0.0, (mean - low) / (high - low)))


def _spread_note(cell: Mapping[str, Any]) -> str:
    """Number of scores, and how many are missing."""
    scores = sum(bar["count"] for bar in bins_of(cell))
    said = ngettext("%(n)s score", "%(n)s scores", scores) % {"n": number(scores)}
    missing = cell["responses"] - scores
    return said if not missing else _("%(scores)s, %(n)s missing") % {"scores": said, "n": number(missing)}


def agreement_chart(chart_id: str, paired: Paired, metric: ScaledMetric, judge: str, links: Links) -> str:
    """A judge's numbers against people's as SVG; '' for other values, too many points, or if not all
    answers are stored."""
    counts = paired.counts()
    if not paired.numeric or paired.total > len(paired) or len(counts) > MOST_POINTS:
        return ""
    points = [
        Point(
            x=float(people),
            y=float(said),
            count=count,
            text=point_text(said, people, count),
            address=links.to_agreement(metric.name, judge, value_key(said), value_key(people)),
        )
        for (said, people), count in sorted(counts.items())
    ]
    texts = ScatterTexts(
        title=_("%(metric)s: %(judge)s against people")
        % {"metric": metric.name, "judge": author_name(judge)},
        description=_("One point per pair of values; its area is the number of answers."),
        x=_("people"),
        y=author_name(judge),
    )
    ends = [end for point in points for end in (point.x, point.y)]
    low, high = metric.low, metric.high
    fits = low is not None and high is not None and low <= min(ends) and max(ends) <= high
    return scatter_chart(chart_id, points, texts, (low, high) if fits else None)  # type: ignore[arg-type]


def point_text(said: float | str, people: float | str, count: int) -> str:
    values = {"judge": label_text(said), "people": label_text(people), "n": number(count)}
    return (
        ngettext(
            "judge %(judge)s, people %(people)s: %(n)s answer",
            "judge %(judge)s, people %(people)s: %(n)s answers",
            count,
        )
        % values
    )
