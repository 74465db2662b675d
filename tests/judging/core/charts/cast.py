"""Texts for charts under test, and helpers to parse the SVG."""

from xml.etree import ElementTree

from judging.core.charts.histograms import HistogramTexts
from judging.core.charts.intervals import IntervalRow, IntervalTexts, interval_chart

SVG = "{http://www.w3.org/2000/svg}"
INTERVAL_TEXTS = IntervalTexts("Title", "Description", "Score", "mean", "95 % interval", "bounds")
HISTOGRAM_TEXTS = HistogramTexts("Title", "Description", "Score", "nothing scored")


def drawn(svg):
    """Parse the chart; raise ParseError if it is not well-formed XML."""
    return ElementTree.fromstring(svg)


def of_class(svg, name):
    return [element for element in drawn(svg).iter() if element.get("class") == name]


def texts(svg, name):
    return ["".join(element.itertext()) for element in of_class(svg, name)]


def intervals(*rows: IntervalRow, **options):
    return interval_chart("chart-1", rows, INTERVAL_TEXTS, **options)
