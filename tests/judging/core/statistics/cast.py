"""Shortcuts to define judgements and compute their report."""

import numpy as np
import pandas as pd

from judging.core.statistics.frame import ScaledMetric, VerdictRow, judgement_frame, ordered, verdict_frame
from judging.core.statistics.report import report
from judging.core.statistics.verdicts import verdicts_under

STATES = {"?": "unparsed", "!": "error", "-": "not_run", "0": "no_score"}


def judgements(candidates, metric="m", clusters=None):
    """Yield tuples from {candidate: [row 1's values, row 2's values, …]}; a value is JSON or a key of `STATES`."""
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
    metric = metric or ScaledMetric("m", 1, 10)
    return judgement_frame(
        judgements(candidates, metric.name, clusters),
        {metric.name: metric},
        {name: name for name in candidates},
    )


def figures(candidates, metric=None, clusters=None):
    """The report of these judgements; `candidates` as in `judgements`."""
    metric = metric or ScaledMetric("m", 1, 10)
    return report(frame(candidates, metric, clusters), [metric])


def cell(values, **options):
    """The report cell of one candidate's values."""
    return figures({"a": values}, **options)["candidates"]["a"]["m"]


def responses(values, rows, units=None):
    """One cell's judgements in the form the formulas take: value, row and unit of each response."""
    return pd.DataFrame(
        {"row": rows, "value": np.asarray(values, float), "unit": rows if units is None else units}
    )


CANDIDATES = {name: name for name in ("alpha", "beta", "gamma", "@reference")}


def said(value, by="qwen", source="judge", *, candidate="alpha", row=1, **more):
    """A verdict under metric m; `value` is a key of `STATES` or the verdict's value."""
    sign = STATES.get(value) if isinstance(value, str) else None
    text = None if sign else str(value).lower() if isinstance(value, bool) else _json(value)
    return VerdictRow(
        "m", candidate, row, more.pop("response", 1), sign or "scored", text, by, source, **more
    )


def person(value, by="Ann", **more):
    return said(value, by, "rater", **more)


def compared(value, a="alpha", b="beta", **more):
    """A comparison of two candidates; `value` as in `said`, and A is the first candidate."""
    return said(value, candidate=a, other=b, other_response=1, **more)


def table(verdicts, metric=None) -> pd.DataFrame:
    """Verdicts as an ordered table."""
    return ordered(verdict_frame(verdicts, {"m": metric or ScaledMetric("m", 1, 10)}, CANDIDATES))


def under(verdicts, metric=None):
    """The same verdicts, prepared for the figures of one metric."""
    metric = metric or ScaledMetric("m", 1, 10)
    return verdicts_under(table(verdicts, metric), metric)


def document(verdicts, metric=None, **options):
    metric = metric or ScaledMetric("m", 1, 10)
    return report(table(verdicts, metric), [metric], **options)
