"""Short ways to write down judgements and to look at their report."""

import numpy as np
import pandas as pd

from judging.core.statistics.frame import Metric, judgement_frame
from judging.core.statistics.report import report

STATES = {"?": "unparsed", "!": "error", "-": "not_run", "0": "no_score"}


def judgements(candidates, metric="m", clusters=None):
    """Tuples from {candidate: [row 1's values, row 2's values, …]}; a value is JSON or a sign of `STATES`."""
    for name, rows in candidates.items():
        for row, cell in enumerate(rows, start=1):
            for response, value in enumerate(cell if isinstance(cell, tuple) else (cell,), start=1):
                sign = STATES.get(value) if isinstance(value, str) else None
                text = None if sign else str(value).lower() if isinstance(value, bool) else _json(value)
                cluster = clusters[row - 1] if clusters else None
                yield metric, name, row, response, sign or "scored", text, cluster


def _json(value):
    return f'"{value}"' if isinstance(value, str) else str(value)


def frame(candidates, metric=None, clusters=None) -> pd.DataFrame:
    metric = metric or Metric("m", 1, 10)
    return judgement_frame(
        judgements(candidates, metric.name, clusters),
        {metric.name: metric},
        {name: name for name in candidates},
    )


def figures(candidates, metric=None, clusters=None):
    """The report of such judgements."""
    metric = metric or Metric("m", 1, 10)
    return report(frame(candidates, metric, clusters), [metric], run="r", dataset="d")


def cell(values, **options):
    """The only cell of one candidate's values."""
    return figures({"a": values}, **options)["candidates"]["a"]["m"]


def responses(values, rows, units=None):
    """The judgements of one cell as formulas take them: each response's value and row."""
    return pd.DataFrame(
        {"row": rows, "value": np.asarray(values, float), "unit": rows if units is None else units}
    )
