"""The kinds of stored results of a run's report."""

from evalsite.derived import Results
from judging.core.statistics.document import LAYOUT

FIGURES = Results("figures", LAYOUT)  # figures.Figures
MEANS = Results("means", 11)  # pairing.ItemMeans, by metric and candidate
ITEMS = Results("items", 3)  # the items behind figures, see verdict_items.py
SLICES = Results("slices", 3)  # a breakdown as JSON, by field
OUTCOMES = Results(
    "outcomes", 2
)  # outcomes.MetricOutcome as JSON; earlier layouts are shown until computed anew
OF_RUN = (FIGURES, MEANS, ITEMS, SLICES, OUTCOMES)
