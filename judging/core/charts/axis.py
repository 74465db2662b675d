"""A horizontal axis with round ticks."""

from collections.abc import Sequence
from dataclasses import dataclass

from evalsite.rounding import fixed_percent, significant, without_zeros

from ..statistics.numeric import nice_ticks
from .svg import element, label

FAINT: dict[str, str | float] = {"stroke": "currentColor", "stroke_opacity": 0.2}


@dataclass(frozen=True, slots=True)
class Axis:
    """Maps `ticks[0]`…`ticks[-1]` (data units) to `left`…`right` (drawing units)."""

    ticks: tuple[float, ...]
    left: float
    right: float

    def place(self, value: float) -> float:
        """The value's x, clipped to the axis."""
        share = (value - self.ticks[0]) / (self.ticks[-1] - self.ticks[0])
        return self.left + min(1.0, max(0.0, share)) * (self.right - self.left)

    def holds(self, value: float) -> bool:
        return self.ticks[0] <= value <= self.ticks[-1]


def make_axis(low: float, high: float, left: float, right: float, *, whole_scale: bool) -> Axis:
    """An axis over low…high: with the exact ends for a `whole_scale`, otherwise extended to round numbers."""
    ticks = nice_ticks(low, high, about=10 if whole_scale else 5)
    if whole_scale and high > low:
        step = ticks[1] - ticks[0]
        inner = [tick for tick in ticks if low + step / 3 < tick < high - step / 3]
        ticks = [low, *inner, high]
    return Axis(tuple(ticks), left, right)


def tick_text(value: float) -> str:
    """The number with as few decimals as needed, and at most six significant digits."""
    return significant(value, 6)


def percent_texts(ticks: Sequence[float]) -> list[str]:
    """Shares in percent, without the sign, with as many decimals as tell them apart."""
    texts = [fixed_percent(tick, 2) for tick in ticks]
    places = max(len(without_zeros(text).partition(".")[2]) for text in texts)
    return [fixed_percent(tick, places) for tick in ticks]


def draw_axis(axis: Axis, top: float, bottom: float, words: str) -> str:
    """Grid lines from `top` to `bottom`, tick numbers below them, and the axis title below those."""
    parts = []
    for tick in axis.ticks:
        x = axis.place(tick)
        line = element("line", class_="chart-grid", x1=x, x2=x, y1=top, y2=bottom, **FAINT)
        parts += [line, label(tick_text(tick), class_="chart-tick", x=x, y=bottom + 15, text_anchor="middle")]
    middle = (axis.left + axis.right) / 2
    parts.append(label(words, class_="chart-axis", x=middle, y=bottom + 33, text_anchor="middle"))
    return element("g", *parts, font_size=12.0)
