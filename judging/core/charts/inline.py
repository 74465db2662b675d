"""Small charts for a table cell or a line of text, which also contains what they show as text."""

from collections.abc import Sequence
from dataclasses import dataclass

from .axis import Axis, make_axis, tick_text
from .series import colour_class, mark_at
from .svg import element, label, number, text_of, width

INTERVAL_WIDTH, HEIGHT, INSET = 220.0, 22.0, 12.0
SPREAD_WIDTH, GAP = 84.0, 2.0
TREND_WIDTH, MINI_WIDTH = 84.0, 92.0
TICK_SIZE = 11.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a distribution: its height as a share, its tooltip, and the URL of its items."""

    share: float
    text: str
    address: str = ""


def shared_axis(values: Sequence[float]) -> Axis:
    """An axis of round numbers that covers all values, for intervals below each other."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    return make_axis(low, high, INSET, INTERVAL_WIDTH - INSET, whole_scale=False)


def axis_head(axis: Axis, texts: Sequence[str] = ()) -> str:
    """Tick numbers for the head of a column of interval bars; some are left out if they would overlap."""
    names = list(texts) or [tick_text(tick) for tick in axis.ticks]
    space = (axis.right - axis.left) / max(1, len(names) - 1)
    widest = max(map(width, names)) * TICK_SIZE + 4
    every = 1 + int(widest // space)
    words = [
        label(name, class_="chart-tick", x=axis.place(tick), y=13, text_anchor="middle", font_size=TICK_SIZE)
        for name, tick in list(zip(names, axis.ticks, strict=True))[::every]
    ]
    return _svg("axis-head", INTERVAL_WIDTH, 18, *words)


def interval_bar(
    series: int, axis: Axis, mean: float | None, low: float | None, high: float | None, tip: str = ""
) -> str:
    """A mean as the series' mark on its interval bar; only the grid without a mean."""
    grid = [
        element("path", class_="chart-grid", d=f"M{number(axis.place(tick))} 0v22", stroke="currentColor")
        for tick in axis.ticks
    ]
    marks = _interval_box(axis, low, high, 7.0, 8.0)
    if mean is not None:
        marks.append(mark_at(series, axis.place(mean), HEIGHT / 2))
    return _svg(f"interval-inline {colour_class(series)}", INTERVAL_WIDTH, HEIGHT, *grid, *marks, tip=tip)


def _interval_box(axis: Axis, low: float | None, high: float | None, y: float, height: float) -> list[str]:
    if low is None or high is None:
        return []
    left, right = axis.place(low), axis.place(high)
    box = {"x": left, "y": y, "width": max(1.0, right - left), "height": height, "rx": height / 2}
    return [element("rect", class_="series-fill soft", fill="currentColor", **box)]


def mini_interval(
    series: int, ends: tuple[float, float], mean: float | None, low: float | None, high: float | None
) -> str:
    """A mean and its interval within a scale, at the size of a line of text."""
    axis = Axis(ends if ends[0] < ends[1] else (ends[0] - 0.5, ends[1] + 0.5), 6.0, MINI_WIDTH - 6)
    track = {"x": 0.0, "y": 7.0, "width": MINI_WIDTH, "height": 2.0, "rx": 1.0}
    marks = [element("rect", class_="track", fill="currentColor", fill_opacity=0.15, **track)]
    marks += _interval_box(axis, low, high, 5.0, 6.0)
    if mean is not None:
        marks.append(mark_at(series, axis.place(mean), 8.0, 8.0))
    return _svg(f"mini {colour_class(series)}", MINI_WIDTH, 16.0, *marks)


def spread(series: int, bars: Sequence[Bar], name: str) -> str:
    """A distribution as bars that link to their items; the arrow keys move between them (static/js/report.js)."""
    step = SPREAD_WIDTH / max(1, len(bars))
    tallest = max((bar.share for bar in bars), default=0.0) or 1.0
    first = next((place for place, bar in enumerate(bars) if bar.address), None)
    drawn = [_bar(bar, place, step, tallest, place == first) for place, bar in enumerate(bars)]
    words = f'role="group" aria-label="{text_of(name)}" data-along=""'
    return _svg(f"spread {colour_class(series)}", SPREAD_WIDTH, HEIGHT, *drawn, more=words)


def _bar(bar: Bar, place: int, step: float, tallest: float, first: bool) -> str:
    height = max(1.0, (HEIGHT - 2) * bar.share / tallest)
    x, wide = step * place, max(1.0, step - GAP)
    drawn = element(
        "rect", class_="series-fill", fill="currentColor", x=x, y=HEIGHT - height, width=wide, height=height
    )
    area = element("rect", class_="hit", fill="none", x=x, y=0.0, width=step, height=HEIGHT)
    if not bar.address:
        return element("g", area, drawn, data_tip=bar.text)
    stop = "0" if first else "-1"
    return element("a", area, drawn, href=bar.address, tabindex=stop, data_tip=bar.text, aria_label=bar.text)


def trend(series: int, values: Sequence[float | None], name: str) -> str:
    """Means over earlier runs as a line, with a mark at the newest; '' with fewer than two."""
    present = [value for value in values if value is not None]
    if len(present) < 2:
        return ""
    low, high = min(present), max(present)
    step = (TREND_WIDTH - 12) / (len(values) - 1)
    points = [
        (6 + step * place, 4 + (HEIGHT - 8) * (1 - ((value - low) / (high - low) if high > low else 0.5)))
        for place, value in enumerate(values)
        if value is not None
    ]
    line = element(
        "polyline",
        class_="series-line",
        points=" ".join(f"{number(x)},{number(y)}" for x, y in points),
        fill="none",
        stroke="currentColor",
    )
    words = f'role="img" aria-label="{text_of(name)}"'
    newest = mark_at(series, *points[-1], 7)
    return _svg(f"trend {colour_class(series)}", TREND_WIDTH, HEIGHT, line, newest, more=words)


def _svg(classes: str, wide: float, high: float, *content: str, tip: str = "", more: str = "") -> str:
    size = f'viewBox="0 0 {number(wide)} {number(high)}" width="{number(wide)}" height="{number(high)}"'
    shown = f' data-tip="{text_of(tip)}"' if tip else ""
    role = more or 'aria-hidden="true"'
    return f'<svg class="{classes}" {size}{shown} {role}>{"".join(content)}</svg>'
