"""The scatter plot of two values of the same answers."""

from __future__ import annotations

from xml.etree import ElementTree

from judging.core.charts.scatter import LARGEST, Point, ScatterTexts, scatter_chart

SVG = "{http://www.w3.org/2000/svg}"
TEXTS = ScatterTexts("title", "description", "people", "judge")


def scatter(*points: Point, scale: tuple[float, float] | None = (1, 10)) -> ElementTree.Element:
    return ElementTree.fromstring(scatter_chart("s", points, TEXTS, scale))


def circles(drawn: ElementTree.Element) -> list[dict[str, float]]:
    return [{key: float(one.get(key, "")) for key in ("cx", "cy", "r")} for one in drawn.iter(f"{SVG}circle")]


def test_a_higher_value_lies_further_right_and_higher_up() -> None:
    low, high = circles(scatter(Point(2, 3, 1, ""), Point(8, 9, 1, "")))
    assert low["cx"] < high["cx"]
    assert low["cy"] > high["cy"]


def test_equal_points_are_one_whose_area_is_their_number() -> None:
    many, few = circles(scatter(Point(2, 3, 1, ""), Point(8, 9, 4, "")))
    assert (many["r"], few["r"]) == (LARGEST, LARGEST / 2)


def test_a_point_leads_to_its_answers() -> None:
    (link,) = scatter(Point(2, 3, 1, "1 answer", "/list/?a=1&b=2")).iter(f"{SVG}a")
    assert (link.get("href"), link.get("aria-label")) == ("/list/?a=1&b=2", "1 answer")


def test_points_with_links_are_one_stop_of_the_tab_key() -> None:
    drawn = scatter(*(Point(2, place, 1, "1 answer", "/list/") for place in (3, 4)))
    assert drawn.get("role") == "group"
    assert [one.get("tabindex") for one in drawn.iter(f"{SVG}a")] == ["0", "-1"]


def test_without_an_address_nothing_is_a_link() -> None:
    assert not list(scatter(Point(2, 3, 1, "1 answer")).iter(f"{SVG}a"))


def test_without_a_scale_the_points_fill_the_axes() -> None:
    ticks = [one.text for one in scatter(Point(0.2, 0.4, 1, ""), scale=None).iter(f"{SVG}text")]
    assert {"0.2", "0.4"} <= set(ticks)


def test_one_value_alone_is_drawn() -> None:
    assert len(circles(scatter(Point(3, 3, 5, ""), scale=None))) == 1
