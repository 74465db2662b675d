"""Charts in table cells: intervals, distributions, trends and candidate markers."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from judging.core.charts.axis import percent_texts
from judging.core.charts.inline import Bar, axis_head, interval_bar, shared_axis, spread, trend
from judging.core.charts.series import colour_class, mark, shape


def test_thirty_six_candidates_have_looks_of_their_own() -> None:
    assert len({(colour_class(number), shape(number)) for number in range(1, 37)}) == 36


def test_the_first_six_differ_in_colour_and_in_shape() -> None:
    assert len({colour_class(number) for number in range(1, 7)}) == 6
    assert len({shape(number) for number in range(1, 7)}) == 6


def test_a_mark_says_nothing_to_screen_readers() -> None:
    assert ElementTree.fromstring(mark(2)).get("aria-hidden") == "true"


def test_intervals_below_each_other_share_an_axis() -> None:
    axis = shared_axis([5.2, 8.1])
    assert (axis.ticks[0], axis.ticks[-1]) == (5, 9)


def test_an_axis_without_a_value_is_still_one() -> None:
    assert len(shared_axis([]).ticks) >= 2


def test_an_interval_lies_where_the_axis_says() -> None:
    axis = shared_axis([0.0, 10.0])
    box = ElementTree.fromstring(interval_bar(1, axis, 5.0, 4.0, 6.0)).find("rect")
    assert box is not None
    assert float(box.get("x", "")) == axis.place(4.0)


def test_without_a_mean_there_is_only_the_grid() -> None:
    drawn = ElementTree.fromstring(interval_bar(1, shared_axis([0.0, 10.0]), None, None, None))
    assert {part.get("class") for part in drawn} == {"chart-grid"}


def test_the_head_leaves_out_numbers_that_would_touch() -> None:
    axis = shared_axis([0.0, 1.0])
    names = [f"{tick:.6f}" for tick in axis.ticks]
    assert len(ElementTree.fromstring(axis_head(axis, names)).findall("text")) < len(names)


def test_each_bar_of_a_distribution_is_a_link_with_its_words() -> None:
    drawn = ElementTree.fromstring(spread(1, [Bar(0.2, "1: 2", "/a"), Bar(0.8, "2: 8", "/b")], "scores"))
    assert [(one.get("href"), one.get("aria-label")) for one in drawn] == [("/a", "1: 2"), ("/b", "2: 8")]


def test_a_distribution_is_one_stop_of_the_tab_key() -> None:
    drawn = ElementTree.fromstring(
        spread(1, [Bar(0.0, "1: 0"), Bar(0.5, "2", "/a"), Bar(0.5, "3", "/b")], "scores")
    )
    assert [one.get("tabindex") for one in drawn] == [None, "0", "-1"]


def test_names_are_escaped() -> None:
    assert "<script>" not in spread(1, [Bar(1, "<script>")], "<script>")


@pytest.mark.parametrize("values", [[], [1.0], [None, 2.0]])
def test_one_run_is_no_trend(values: list[float | None]) -> None:
    assert trend(1, values, "trend") == ""


def test_a_trend_keeps_the_place_of_runs_without_a_mean() -> None:
    line = ElementTree.fromstring(trend(1, [1.0, None, 3.0], "trend")).find("polyline")
    assert line is not None
    assert [point.split(",")[0] for point in line.get("points", "").split()] == ["6", "78"]


def test_shares_on_an_axis_have_as_many_decimals_as_tell_them_apart():
    assert percent_texts([0, 0.2, 0.4]) == ["0", "20", "40"]
    assert percent_texts([0, 0.005, 0.01]) == ["0.0", "0.5", "1.0"]
