"""Two values of the same answers, one along each axis; equal points are drawn as one whose area shows their number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .axis import FAINT, Axis, make_axis, tick_text
from .svg import element, figure, label, text_of

SIZE, LEFT, TOP, FOOT = 400.0, 48.0, 12.0, 44.0
SMALLEST, LARGEST = 3.5, 13.0  # radii


@dataclass(frozen=True, slots=True)
class Point:
    """A number of answers with the same two values, with a tooltip and the URL of the answers."""

    x: float
    y: float
    count: int
    text: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class ScatterTexts:
    """The chart's texts; `x` and `y` name the axes."""

    title: str
    description: str
    x: str
    y: str


def scatter_chart(
    chart_id: str, points: Sequence[Point], texts: ScatterTexts, scale: tuple[float, float] | None = None
) -> str:
    """An `<svg>` with both values on one scale (by default the range of the points), and the line of equal values."""
    values = [value for point in points for value in (point.x, point.y)]
    low, high = scale or (min(values, default=0.0), max(values, default=1.0))
    whole = scale is not None
    across = make_axis(low, high, LEFT + LARGEST, SIZE - LARGEST, whole_scale=whole)
    bottom = SIZE - FOOT
    up = Axis(across.ticks, bottom - LARGEST, TOP + LARGEST)
    most = max((point.count for point in points), default=1)
    ordered = sorted(points, key=lambda point: -point.count)
    drawn = [_point(point, across, up, most, first=point is ordered[0]) for point in ordered]
    parts = _grid(across, up, texts, bottom), element("g", *drawn, data_along="")
    return figure(chart_id, texts.title, texts.description, SIZE, SIZE, *parts)


def _grid(across: Axis, up: Axis, texts: ScatterTexts, bottom: float) -> str:
    parts = []
    for tick in across.ticks:
        x, y = across.place(tick), up.place(tick)
        lines = {"x1": x, "x2": x, "y1": TOP, "y2": bottom}, {"x1": LEFT, "x2": SIZE, "y1": y, "y2": y}
        parts += [element("line", class_="chart-grid", **line, **FAINT) for line in lines]
        words = tick_text(tick)
        parts.append(label(words, class_="chart-tick", x=x, y=bottom + 16, text_anchor="middle"))
        parts.append(label(words, class_="chart-tick", x=LEFT - 8, y=y + 4, text_anchor="end"))
    ends = {"x1": across.left, "y1": up.left, "x2": across.right, "y2": up.right}
    parts.append(
        element("line", class_="chart-bounds", **ends, stroke="currentColor", stroke_dasharray="4 3")
    )
    middle = (across.left + across.right) / 2
    parts.append(label(texts.x, class_="chart-axis", x=middle, y=SIZE - 8, text_anchor="middle"))
    turn = f"translate(14 {(TOP + bottom) / 2:g}) rotate(-90)"
    parts.append(label(texts.y, class_="chart-axis", transform=turn, text_anchor="middle"))
    return element("g", *parts, font_size=12.0)


def _point(point: Point, across: Axis, up: Axis, most: int, *, first: bool) -> str:
    radius = max(SMALLEST, LARGEST * math.sqrt(point.count / most))
    if most == 1:
        radius = SMALLEST + 1.5
    place = {"cx": across.place(point.x), "cy": up.place(point.y), "r": radius}
    circle = element(
        "circle",
        element("title", text_of(point.text)),
        class_="scatter-point",
        **place,
        fill="currentColor",
        fill_opacity=0.55,
    )
    if not point.address:
        return element("g", circle, data_tip=point.text)
    stop = "0" if first else "-1"  # the arrow keys move to the others (static/js/report.js)
    return element("a", circle, href=point.address, tabindex=stop, data_tip=point.text, aria_label=point.text)
