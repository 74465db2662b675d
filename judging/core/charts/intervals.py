"""Means with their intervals: a row per candidate, with name and figures above its dot and whisker."""

from collections.abc import Sequence
from dataclasses import dataclass

from .axis import FAINT, Axis, draw_axis, make_axis
from .svg import element, figure, label, text_of, width, wrap

WIDTH, MARGIN = 480.0, 16.0
NAME_SIZE, LABEL_SIZE, LEGEND_SIZE = 14.0, 13.0, 12.0
LINE, TRACK, GAP = 18.0, 20.0, 14.0


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """A row; `label` gives the figures as text, values that are None are not drawn. In units of the metric."""

    name: str
    label: str
    mean: float | None
    low: float | None = None
    high: float | None = None
    low_bound: float | None = None
    high_bound: float | None = None


@dataclass(frozen=True, slots=True)
class IntervalTexts:
    """The chart's texts; `mean`, `interval` and `bounds` explain the marks."""

    title: str
    description: str
    axis: str
    mean: str
    interval: str
    bounds: str


def interval_chart(
    chart_id: str,
    rows: Sequence[IntervalRow],
    texts: IntervalTexts,
    *,
    scale: tuple[float, float] | None = None,
) -> str:
    """An `<svg>` with a dot and a whisker for each row, in the order given.

    A mean without interval is a hollow dot; a whisker end without a cap is beyond the axis; the dashed line below shows
    where the mean could be if the unscored responses were scored. `scale` is the axis's range; by default it covers the
    means and intervals. Raises ValueError for an invalid `chart_id`.
    """
    axis = _axis(rows, scale)
    parts, y = [], MARGIN
    for row in rows:
        drawn, y = _row(row, axis, y)
        parts.append(drawn)
    grid = draw_axis(axis, MARGIN / 2, y, texts.axis)
    legend, height = _legend(rows, texts, y + 60)
    return figure(chart_id, texts.title, texts.description, WIDTH, height, grid, *parts, legend)


def _axis(rows: Sequence[IntervalRow], scale: tuple[float, float] | None) -> Axis:
    left, right = MARGIN, WIDTH - MARGIN
    if scale is not None:
        return make_axis(*scale, left, right, whole_scale=True)
    values = [value for row in rows for value in (row.mean, row.low, row.high) if value is not None]
    return make_axis(min(values, default=0.0), max(values, default=1.0), left, right, whole_scale=False)


def _row(row: IntervalRow, axis: Axis, y: float) -> tuple[str, float]:
    """The row drawn from `y` downwards, and the y of the next one."""
    space = WIDTH - 2 * MARGIN - width(row.label) * LABEL_SIZE - 12
    names = wrap(row.name, space / NAME_SIZE, lines=2)
    words = [
        label(line, class_="chart-name", x=MARGIN, y=y + LINE * (place + 0.75), font_size=NAME_SIZE)
        for place, line in enumerate(names)
    ]
    figures = {"x": WIDTH - MARGIN, "y": y + LINE * 0.75, "font_size": LABEL_SIZE}
    words.append(label(row.label, class_="chart-label", text_anchor="end", **figures))
    middle = y + LINE * len(names) + TRACK / 2
    marks = [_track(axis, middle), *_marks(row, axis, middle)]
    tip = element("title", text_of(f"{row.name}: {row.label}"))
    return element("g", tip, *words, *marks), middle + TRACK / 2 + GAP


def _track(axis: Axis, y: float) -> str:
    return element("line", class_="chart-track", x1=axis.left, x2=axis.right, y1=y, y2=y, **FAINT)


def _marks(row: IntervalRow, axis: Axis, y: float) -> list[str]:
    marks = []
    if row.low_bound is not None and row.high_bound is not None:
        marks.append(bounds_line(axis.place(row.low_bound), axis.place(row.high_bound), y + 10))
    if row.low is not None and row.high is not None:
        ends = (axis.holds(row.low), axis.holds(row.high))
        marks.append(whisker(axis.place(row.low), axis.place(row.high), y, capped=ends))
    if row.mean is not None:
        marks.append(dot(axis.place(row.mean), y, hollow=row.low is None))
    return marks


def _legend(rows: Sequence[IntervalRow], texts: IntervalTexts, y: float) -> tuple[str, float]:
    """One line for each kind of mark in the chart, and the height of the whole chart."""
    lines = [(dot(MARGIN + 12, 0, hollow=False), texts.mean)]
    if any(row.low is not None for row in rows):
        lines.append((whisker(MARGIN, MARGIN + 24, 0, capped=(True, True)), texts.interval))
    if any(row.low_bound is not None for row in rows):
        lines.append((bounds_line(MARGIN, MARGIN + 24, 0), texts.bounds))
    parts = []
    for mark, words in lines:
        wrapped = wrap(words, (WIDTH - 2 * MARGIN - 34) / LEGEND_SIZE, lines=3)
        parts.append(element("g", mark, transform=f"translate(0 {y - 4:g})"))
        parts += [
            label(line, class_="chart-legend", x=MARGIN + 34, y=y + 16 * place, font_size=LEGEND_SIZE)
            for place, line in enumerate(wrapped)
        ]
        y += 16 * len(wrapped) + 4
    return "".join(parts), y


RADIUS, CAP = 5.0, 6.0


def dot(x: float, y: float, *, hollow: bool) -> str:
    """A mean; hollow if it has no interval."""
    if hollow:
        return element(
            "circle", class_="chart-dot-open", cx=x, cy=y, r=RADIUS, fill="none", stroke="currentColor"
        )
    return element("circle", class_="chart-dot", cx=x, cy=y, r=RADIUS, fill="currentColor")


def whisker(low: float, high: float, y: float, *, capped: tuple[bool, bool]) -> str:
    """An interval; an end without a cap is beyond the axis."""
    path = f"M{low:.2f} {y:.2f}H{high:.2f}"
    for x, cap in zip((low, high), capped, strict=True):
        if cap:
            path += f"M{x:.2f} {y - CAP:.2f}V{y + CAP:.2f}"
    return element(
        "path", class_="chart-whisker", d=path, fill="none", stroke="currentColor", stroke_width=2.0
    )


def bounds_line(low: float, high: float, y: float) -> str:
    """Worst-case bounds: a dashed line with short ends."""
    path = f"M{low:.2f} {y:.2f}H{high:.2f}M{low:.2f} {y - 2:.2f}v4M{high:.2f} {y - 2:.2f}v4"
    dashes = {"stroke_dasharray": "3 2", "fill": "none", "stroke": "currentColor"}
    return element("path", class_="chart-bounds", d=path, **dashes)
