import re
from pathlib import Path

from judging.core.charts.histograms import Panel, histogram_chart
from judging.core.charts.intervals import IntervalRow

from .cast import HISTOGRAM_TEXTS, drawn, intervals

STYLESHEET = Path(__file__).parents[4] / "static/css/charts.css"


def test_the_stylesheet_knows_every_class_drawn_and_no_other():
    both = [IntervalRow("a", "", 5, 4, 6, 3, 7), IntervalRow("b", "", 5)]
    panel = Panel("a", "", [{"low": 1, "high": 1, "count": 1}])
    charts = [drawn(intervals(*both)), drawn(histogram_chart("h", [panel], HISTOGRAM_TEXTS))]
    used = {element.get("class") for chart in charts for element in chart.iter()} - {None}
    assert set(re.findall(r"\.(chart[a-z-]*)", STYLESHEET.read_text())) == used
