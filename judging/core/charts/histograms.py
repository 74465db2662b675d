"""Distributions side by side: a panel per candidate, all on one scale, with the count on every bar."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evalsite.rounding import fixed_percent

from ..statistics.numeric import BinCount
from .axis import tick_text
from .svg import element, figure, label, text_of, width, wrap

PANEL_WIDTH, MARGIN = 480.0, 16.0
NAME_SIZE, NOTE_SIZE, NUMBER_SIZE = 14.0, 12.0, 11.0
HEAD, LINE, BARS, FOOT = 40.0, 17.0, 84.0, 30.0


@dataclass(frozen=True, slots=True)
class Panel:
    """A candidate's bins (as in a report's `distribution`); `note` gives the numbers of scores and omitted ones."""

    name: str
    note: str
    bins: Sequence[BinCount]


@dataclass(frozen=True, slots=True)
class HistogramTexts:
    """The chart's texts; `nothing` is shown in a panel without scores."""

    title: str
    description: str
    axis: str
    nothing: str


def histogram_chart(chart_id: str, panels: Sequence[Panel], texts: HistogramTexts) -> str:
    """An `<svg>` of small histograms, one below the other; the panels must have the same bins.

    Bars show shares of a panel's scores, at the same vertical scale in all panels, labelled with counts (or, if those
    do not fit, shares). Raises ValueError for an invalid `chart_id`.
    """
    tallest = max((_share(panel, bar) for panel in panels for bar in panel.bins), default=0.0)
    head = HEAD + LINE * (max((len(_name(panel)) for panel in panels), default=1) - 1)
    high = head + BARS + FOOT
    parts = []
    for place, panel in enumerate(panels):
        drawn = _panel(panel, texts, tallest, head)
        parts.append(element("g", drawn, transform=f"translate(0 {high * place:g})"))
    middle, bottom = PANEL_WIDTH / 2, high * len(panels)
    parts.append(
        label(texts.axis, class_="chart-axis", x=middle, y=bottom + 10, text_anchor="middle", font_size=12.0)
    )
    return figure(chart_id, texts.title, texts.description, PANEL_WIDTH, bottom + 20, *parts)


def _share(panel: Panel, bar: BinCount) -> float:
    return bar["count"] / max(1, sum(each["count"] for each in panel.bins))


def _name(panel: Panel) -> list[str]:
    """The lines of its name, to the left of the note."""
    space = PANEL_WIDTH - 2 * MARGIN - width(panel.note) * NOTE_SIZE - 12
    return wrap(panel.name, max(4.0, space / NAME_SIZE), lines=2)


def _panel(panel: Panel, texts: HistogramTexts, tallest: float, head: float) -> str:
    right = PANEL_WIDTH - MARGIN
    parts = [
        element("title", text_of(f"{panel.name}: {panel.note}")),
        *(
            label(line, class_="chart-name", x=MARGIN, y=18.0 + LINE * place, font_size=NAME_SIZE)
            for place, line in enumerate(_name(panel))
        ),
        label(panel.note, class_="chart-label", x=right, y=18.0, font_size=NOTE_SIZE, text_anchor="end"),
    ]
    if not any(bar["count"] for bar in panel.bins):
        middle = {"x": PANEL_WIDTH / 2, "y": head + BARS / 2, "font_size": NOTE_SIZE}
        return "".join([*parts, label(texts.nothing, class_="chart-label", text_anchor="middle", **middle)])
    base = head + BARS
    line = element("line", class_="chart-base", x1=MARGIN, x2=right, y1=base, y2=base, stroke="currentColor")
    return "".join([*parts, *_bars(panel, tallest, base), line, *_ticks(panel.bins, base)])


def _bin_width(bins: Sequence[BinCount]) -> float:
    return (PANEL_WIDTH - 2 * MARGIN) / len(bins)


def _bars(panel: Panel, tallest: float, base: float) -> list[str]:
    wide, parts = _bin_width(panel.bins), []
    numbers = _numbers(panel, wide)
    for place, bar in enumerate(panel.bins):
        x, height = MARGIN + wide * place, BARS * _share(panel, bar) / tallest
        box = {"x": x + wide * 0.08, "y": base - height, "width": wide * 0.84, "height": height}
        if bar["count"]:
            parts.append(
                element("rect", class_="chart-bar", fill="none", stroke="currentColor", **box)
                + _number(numbers[place], x + wide / 2, base - height - 4)
            )
    return parts


def _numbers(panel: Panel, wide: float) -> list[str]:
    """Counts, or whole percentages if a count would overlap its neighbour."""
    counts = [str(bar["count"]) for bar in panel.bins]
    if all(width(count) * NUMBER_SIZE <= wide for count in counts):
        return counts
    return [f"{fixed_percent(_share(panel, bar))}%" for bar in panel.bins]


def _ticks(bins: Sequence[BinCount], base: float) -> list[str]:
    """Whole numbers below the middle of their bars, otherwise the edges between bars; as many as fit."""
    wide = _bin_width(bins)
    if all(bar["low"] == bar["high"] for bar in bins):
        ticks = [(MARGIN + wide * (place + 0.5), bar["low"]) for place, bar in enumerate(bins)]
    else:
        edges = [bins[0]["low"], *(bar["high"] for bar in bins)]
        ticks = [(MARGIN + wide * place, edge) for place, edge in enumerate(edges)]
    widest = max(width(tick_text(value)) for _, value in ticks) * NUMBER_SIZE + 6
    every = math.ceil(widest / wide)
    return [_number(tick_text(value), x, base + 15) for x, value in ticks[::every]]


def _number(words: str, x: float, y: float) -> str:
    return label(words, class_="chart-tick", x=x, y=y, font_size=NUMBER_SIZE, text_anchor="middle")
