"""Charts as SVG text, made on the server: no script, no `style`, every text escaped, legible without colour.

Looks come from the classes of `static/css/charts.css`; presentation attributes stand in where that sheet is
absent, as in a downloaded file. All words are the caller's, so that they can be translated.
"""

from .histograms import HistogramTexts, Panel, histogram_chart
from .intervals import IntervalRow, IntervalTexts, interval_chart

__all__ = ["HistogramTexts", "IntervalRow", "IntervalTexts", "Panel", "histogram_chart", "interval_chart"]
