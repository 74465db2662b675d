"""The marks of an interval chart, distinguished by form."""

from .svg import element

RADIUS, CAP = 5.0, 6.0


def dot(x: float, y: float, *, hollow: bool) -> str:
    """A mean; hollow where nothing is known about how sure it is."""
    if hollow:
        return element(
            "circle", class_="chart-dot-open", cx=x, cy=y, r=RADIUS, fill="none", stroke="currentColor"
        )
    return element("circle", class_="chart-dot", cx=x, cy=y, r=RADIUS, fill="currentColor")


def whisker(low: float, high: float, y: float, *, capped: tuple[bool, bool]) -> str:
    """An interval; an end that isn't capped goes on beyond the axis."""
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
