import pytest

from judging.core.charts.intervals import IntervalRow, interval_chart
from judging.core.charts.svg import as_file

from .cast import INTERVAL_TEXTS, SVG, drawn, intervals, of_class, texts

SURE = IntervalRow("alpha", "7.2 [6.9, 7.5]", 7.2, 6.9, 7.5)


def test_the_chart_is_an_image_with_a_name_and_a_description():
    root = drawn(intervals(SURE))
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title[@id='{root.get('aria-labelledby')}']").text == "Title"
    assert root.find(f"{SVG}desc[@id='{root.get('aria-describedby')}']").text == "Description"


def test_a_strict_content_policy_finds_nothing_to_refuse():
    root = drawn(intervals(SURE))
    assert not [
        element for element in root.iter() if "style" in element.attrib or element.tag == f"{SVG}script"
    ]
    assert not [name for element in root.iter() for name in element.attrib if name.startswith("on")]


def test_it_scales_with_its_place():
    root = drawn(intervals(SURE))
    assert root.get("viewBox").startswith("0 0 480 ")
    assert not {"width", "height"} & set(root.attrib)


def test_as_a_file_it_has_a_size_of_its_own():
    root = drawn(as_file(intervals(SURE)).decode())
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    assert root.get("width") == "480"
    assert as_file("") == b""


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", '"><b onload=x>', "a&b", "x\x00\ud800y"])
def test_hostile_names_stay_text(name):
    svg = intervals(IntervalRow(name, name, 5.0))
    assert "<script" not in svg
    assert not [element for element in drawn(svg).iter() if "onload" in element.attrib]


@pytest.mark.parametrize("chart_id", ["", "1a", 'a"', "a b"])
def test_an_id_that_could_break_out_is_refused(chart_id):
    with pytest.raises(ValueError, match="not an id"):
        interval_chart(chart_id, [SURE], INTERVAL_TEXTS)


def test_marks_are_where_the_scale_says():
    dot = of_class(intervals(IntervalRow("a", "", 5.5, 5, 6), scale=(1, 10)), "chart-dot")[0]
    assert float(dot.get("cx")) == 240  # the midpoint of 1…10 is the centre of the drawing


def test_a_whole_scale_shows_its_ends_and_whole_steps():
    assert texts(intervals(SURE, scale=(1, 10)), "chart-tick") == [str(n) for n in range(1, 11)]


def test_without_a_scale_the_axis_holds_all_intervals():
    ticks = [float(tick) for tick in texts(intervals(SURE), "chart-tick")]
    assert ticks[0] <= 6.9
    assert ticks[-1] >= 7.5


def test_a_mean_without_interval_is_hollow():
    svg = intervals(IntervalRow("a", "5", 5.0))
    assert len(of_class(svg, "chart-dot-open")) == 1
    assert not of_class(svg, "chart-whisker")


def test_a_row_without_mean_has_its_words_and_no_mark():
    svg = intervals(IntervalRow("a", "nothing scored", None))
    assert texts(svg, "chart-label") == ["nothing scored"]
    assert not of_class(svg, "chart-dot-open")


def test_an_end_beyond_the_axis_has_no_cap():
    inside, beyond = (
        of_class(intervals(IntervalRow("a", "", 9.5, 9, high), scale=(1, 10)), "chart-whisker")[0].get("d")
        for high in (9.9, 10.4)
    )
    assert (inside.count("V"), beyond.count("V")) == (2, 1)


def test_the_bounds_are_distinguished_by_their_dashes_and_explained():
    svg = intervals(IntervalRow("a", "", 5, 4, 6, 3, 7))
    assert all(line.get("stroke-dasharray") for line in of_class(svg, "chart-bounds"))
    assert texts(svg, "chart-legend") == ["mean", "95 % interval", "bounds"]


def test_the_legend_names_only_the_marks_that_occur():
    assert texts(intervals(IntervalRow("a", "5", 5.0)), "chart-legend") == ["mean"]


def test_a_long_chinese_name_wraps_and_is_whole_in_the_tip():
    name = "通义千问超长名字的模型" * 6
    svg = intervals(IntervalRow(name, "7.2", 7.2))
    lines = texts(svg, "chart-name")
    assert len(lines) == 2
    assert lines[1].endswith("…")
    assert f"{name}: 7.2" in svg


def test_no_candidate_is_an_empty_chart_and_no_error():
    assert texts(intervals(), "chart-name") == []
