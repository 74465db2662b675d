"""Each candidate's colour and mark, the same everywhere in a run; the shape makes it readable without colour."""

from datasets.core.candidate_numbers import COLOURS

from .svg import element

# Each fits into a box of 10 by 10 and looks about as large as the others.
_SHAPES = (
    "M1 1h8v8H1z",
    "M5 .4a4.6 4.6 0 1 0 0 9.2a4.6 4.6 0 0 0 0-9.2z",
    "M5 .5 9.8 9.3H.2z",
    "M5-.2 10.2 5 5 10.2-.2 5z",
    "M3.3.4h3.4v2.9h2.9v3.4H6.7v2.9H3.3V6.7H.4V3.3h2.9z",
    "M.2.7h9.6L5 9.5z",
)


def colour_class(number: int) -> str:
    """The CSS class for the colour of the series with this number, from 1."""
    return f"series-{(number - 1) % COLOURS + 1}"


def shape(number: int) -> str:
    """The SVG path of the series' mark; mark and colour together are unique among 36."""
    place = number - 1
    return _SHAPES[(place + place // COLOURS) % len(_SHAPES)]


def mark(number: int) -> str:
    """The mark as an icon next to the candidate's name."""
    path = element("path", class_="series-fill", d=shape(number), fill="currentColor")
    return (
        f'<svg class="mark {colour_class(number)}" viewBox="-1 -1 12 12" width="12" height="12" '
        f'aria-hidden="true">{path}</svg>'
    )


def mark_at(number: int, x: float, y: float, size: float = 10.0) -> str:
    """The mark within a chart, centred at (x, y)."""
    scale = size / 10
    place = f"translate({x - size / 2:.2f} {y - size / 2:.2f}) scale({scale:g})"
    return element("path", class_="series-fill", d=shape(number), transform=place, fill="currentColor")
