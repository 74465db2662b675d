from judging.core.charts.histograms import Panel, histogram_chart

from .cast import HISTOGRAM_TEXTS, drawn, of_class, texts


def whole(*counts):
    return [{"low": n, "high": n, "count": count} for n, count in enumerate(counts, start=1)]


def even(*counts):
    return [{"low": n / 2, "high": (n + 1) / 2, "count": count} for n, count in enumerate(counts)]


def chart(*panels):
    return histogram_chart("h", panels, HISTOGRAM_TEXTS)


def test_every_bar_carries_its_count_and_every_number_its_tick():
    assert texts(chart(Panel("a", "", whole(3, 0, 5))), "chart-tick") == ["3", "5", "1", "2", "3"]


def test_even_bins_have_their_edges_as_ticks():
    assert texts(chart(Panel("a", "", even(0, 4))), "chart-tick") == ["4", "0", "0.5", "1"]


def test_bars_are_as_high_as_their_share_on_one_height_for_all_panels():
    bars = of_class(chart(Panel("a", "", whole(1, 1)), Panel("b", "", whole(300, 0))), "chart-bar")
    assert [float(bar.get("height")) for bar in bars] == [42, 42, 84]


def test_counts_without_room_become_percents():
    svg = chart(Panel("a", "", whole(*[100_000] * 20)))
    assert texts(svg, "chart-tick")[:20] == ["5%"] * 20


def test_ticks_without_room_are_thinned():
    bins = [{"low": 1e5 + n, "high": 1e5 + n, "count": 0 if n else 1} for n in range(20)]
    ticks = texts(chart(Panel("a", "", bins)), "chart-tick")[1:]
    assert 2 <= len(ticks) < 20


def test_a_panel_without_scores_says_so():
    svg = chart(Panel("a", "0 scores", whole(0, 0)), Panel("b", "", []))
    assert texts(svg, "chart-label") == ["0 scores", "nothing scored", "", "nothing scored"]
    assert not of_class(svg, "chart-bar")


def test_panels_stand_one_below_the_other():
    panels = [Panel(name, "", whole(1)) for name in "abc"]
    assert drawn(chart(*panels)).get("viewBox") == "0 0 480 482"


def test_a_long_name_takes_two_lines_and_moves_no_bar_out_of_its_panel():
    svg = chart(
        Panel("a model with a name that is much longer than most of them are " * 2, "9 scores", whole(1))
    )
    assert len(texts(svg, "chart-name")) == 2
    assert drawn(svg).get("viewBox") == "0 0 480 191"


def test_hostile_names_stay_text():
    name = "<img src=x onerror=alert(1)>"
    assert texts(chart(Panel(name, name, whole(1))), "chart-name") == [name]


def test_bars_have_an_outline_where_there_is_no_stylesheet():
    (bar,) = of_class(chart(Panel("a", "", whole(1))), "chart-bar")
    assert (bar.get("fill"), bar.get("stroke")) == ("none", "currentColor")
