"""The radar chart of candidates over several metrics."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from judging.core.charts.radar import RADIUS, SIZE, Shape, radar_chart

SVG = "{http://www.w3.org/2000/svg}"


def radar(*shapes: Shape, axes: tuple[str, ...] = ("a", "b", "c", "d")) -> ElementTree.Element:
    return ElementTree.fromstring(radar_chart("radar", axes, shapes, "title", "description"))


def test_two_metrics_make_no_radar() -> None:
    with pytest.raises(ValueError, match="three axes"):
        radar(axes=("a", "b"))


def test_the_top_of_the_first_scale_lies_straight_above_the_centre() -> None:
    outline = radar(Shape("x", 1, (1.0, 0.0, 0.0, 0.0))).find(f"{SVG}g/{SVG}polygon")
    assert outline is not None
    x, y = map(float, outline.get("points", "").split()[0].split(","))
    assert (x, round(y, 1)) == (SIZE / 2, round(SIZE * 0.39 - RADIUS, 1))


def test_an_outline_with_a_gap_is_not_closed() -> None:
    drawn = radar(Shape("x", 1, (1.0, None, 0.5, 0.2)))
    assert drawn.find(f"{SVG}g/{SVG}polyline") is not None
    assert drawn.find(f"{SVG}g/{SVG}polygon") is None


def test_every_axis_has_its_name() -> None:
    words = [text.text for text in radar().iter(f"{SVG}text")]
    assert words == ["a", "b", "c", "d"]


def test_a_long_name_beside_the_chart_takes_several_lines() -> None:
    drawn = radar(axes=("a", "factual accuracy of all claims", "c", "事实准确性与引用来源"))
    words = [text.text or "" for text in drawn.iter(f"{SVG}text")]
    assert "…" not in "".join(words)
    assert len(words) > 5
