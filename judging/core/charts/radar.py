"""Candidates over several metrics: one axis per metric, from the centre, which is the low end of its scale."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .series import colour_class, mark_at
from .svg import element, figure, label, number, text_of, wrap

SIZE, RADIUS, NAME_SIZE = 440.0, 130.0, 12.0
LINE, MOST_LINES = 15.0, 4  # of a metric's name
RINGS = (0.25, 0.5, 0.75, 1.0)
FEWEST = 3  # axes; with fewer there is no area


@dataclass(frozen=True, slots=True)
class Shape:
    """A candidate: for each axis, the position of its mean on the scale, 0…1; None without a mean."""

    name: str
    series: int
    shares: Sequence[float | None]


def radar_chart(
    chart_id: str, axes: Sequence[str], shapes: Sequence[Shape], title: str, description: str
) -> str:
    """An `<svg>` with one outline per shape. Raises ValueError for fewer than three axes."""
    if len(axes) < FEWEST:
        raise ValueError("a radar needs three axes")
    rings = [
        element(
            "polygon",
            class_="chart-grid",
            points=_points([_place(axis, len(axes), share) for axis in range(len(axes))]),
            fill="none",
            stroke="currentColor",
            stroke_opacity=0.2,
        )
        for share in RINGS
    ]
    names = [_name(axis, len(axes), name) for axis, name in enumerate(axes)]
    height = SIZE * 0.78
    return figure(chart_id, title, description, SIZE, height, *rings, *names, *map(_outline, shapes))


def _place(axis: int, count: int, share: float) -> tuple[float, float]:
    angle = 2 * math.pi * axis / count - math.pi / 2
    return SIZE / 2 + RADIUS * share * math.cos(angle), SIZE * 0.39 + RADIUS * share * math.sin(angle)


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{number(x)},{number(y)}" for x, y in places)


def _name(axis: int, count: int, name: str) -> str:
    x, y = _place(axis, count, 1.1)
    middle = abs(x - SIZE / 2) < 2
    anchor = "middle" if middle else "start" if x > SIZE / 2 else "end"
    space = SIZE if middle else (SIZE - x if x > SIZE / 2 else x)
    lines = wrap(name, space / NAME_SIZE, lines=1 if middle else MOST_LINES)
    top = y + 4 - LINE * (len(lines) - 1) / 2
    return "".join(
        label(
            words,
            class_="chart-label",
            x=x,
            y=top + LINE * place,
            text_anchor=anchor,
            font_size=NAME_SIZE,
        )
        for place, words in enumerate(lines)
    )


def _outline(shape: Shape) -> str:
    places = [
        _place(axis, len(shape.shares), share) for axis, share in enumerate(shape.shares) if share is not None
    ]
    kind = "polygon" if len(places) == len(shape.shares) else "polyline"
    line = element(kind, class_="series-line", points=_points(places), fill="none", stroke="currentColor")
    marks = [mark_at(shape.series, x, y, 8.0) for x, y in places]
    name = element("title", text_of(shape.name))
    return element("g", name, line, *marks, class_=colour_class(shape.series), data_tip=shape.name)
