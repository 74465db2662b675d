"""Signs of bias in verdicts: the ends of a scale, answers with a planted verdict, and what an answer looks like.

Length, headings, lists and bold are a model of looks only: it says nothing about what an answer says, and is not
AlpacaEval's length-controlled win rate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .document import LengthEffect, Planted, ScaleEnds
from .frame import Metric
from .numeric import Draws, Floats, Ints, finite, percentiles
from .verdicts import Verdicts, counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pandas import DataFrame


def scale_ends(mine: DataFrame, metric: Metric) -> list[ScaleEnds]:
    """How often each judge gives the lowest and the highest score of a declared scale, by name, over the rows of one
    metric."""
    if metric.low is None or metric.high is None or metric.compares:
        return []
    scores = mine[((mine["source"] == "judge") & (mine["kind"] == "number")).to_numpy()]
    return [
        ScaleEnds(
            metric=metric.name,
            judge=str(judge),
            scores=len(one),
            lowest=float((one == metric.low).mean()),
            highest=float((one == metric.high).mean()),
        )
        for judge, one in scores.groupby("by", observed=True)["value"]
    ]


class Flagged(NamedTuple):
    """A candidate's answers that hold a text like a verdict: all, those with a score, and the sum of the scores."""

    answers: int
    scores: int
    total: float


def planted_verdicts(
    flagged: Mapping[tuple[str, str], Flagged], frame: DataFrame, metrics: Sequence[Metric]
) -> list[Planted]:
    """Beside the mean of each candidate's flagged answers that of its others; by (metric, candidate), over answers.

    A mean is None where no such answer has a number."""
    found = []
    for metric in metrics:
        mine = {name: one for (of, name), one in flagged.items() if of == metric.name}
        if mine:
            values = counted(frame, metric)
            found += [_planted(metric, name, one, values) for name, one in mine.items()]
    return found


def _planted(metric: Metric, candidate: str, flagged: Flagged, values: DataFrame) -> Planted:
    scores = values["value"][(values["candidate"] == candidate).to_numpy()].dropna()
    others = len(scores) - flagged.scores
    return Planted(
        metric=metric.name,
        candidate=candidate,
        answers=flagged.answers,
        mean=flagged.total / flagged.scores if flagged.scores else None,
        others_mean=(float(scores.sum()) - flagged.total) / others if others > 0 else None,
    )


FEATURES = ("length", "headers", "lists", "bold")
_HEADER = re.compile(r"^ {0,3}#{1,6}\s", re.MULTILINE)
_LIST = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]", re.MULTILINE)
_BOLD = re.compile(r"\*\*[^*\n]+\*\*|__[^_\n]+__")


def features_of(text: str) -> tuple[int, int, int, int]:
    """Characters, and how many Markdown headings, list items and bold passages."""
    return len(text), len(_HEADER.findall(text)), len(_LIST.findall(text)), len(_BOLD.findall(text))


def answer_features(answers: Iterable[tuple[str, int, int, str]]) -> DataFrame:
    """The features of answers (candidate, row, response, text): a row for each, indexed by the first three."""
    import pandas as pd  # in functions: it takes 300 ms, which most processes do not need

    found = [(candidate, row, number, *features_of(text)) for candidate, row, number, text in answers]
    table = pd.DataFrame(found, columns=["candidate", "row", "response", *FEATURES])
    return table.set_index(["candidate", "row", "response"])


def answer_keys(each: DataFrame, name: str, number: str) -> list[tuple[str, int, int]]:
    columns = each[name].astype(object), each["row"], each[number]
    return list(zip(*(column.tolist() for column in columns), strict=True))


def length_effects(verdicts: Verdicts, features: DataFrame | None, draws: Draws) -> list[LengthEffect]:
    """For each judge of scores, how they go with length within rows: rows with one answer say nothing.

    Spearman: the correlation of ranks within the row, centred there. Slope: `sum dy dx / sum dx²` with dx the
    difference of `log2(length)` from the row's mean. Intervals: bootstrap by rows.
    """
    if features is None or features.empty or verdicts.compares:
        return []
    found = []
    for name, rows in verdicts.authors.items():
        known = np.isin(rows["row"].to_numpy(), features.index.unique("row"))
        scored = rows[known & rows["kind"].isin(["number", "bool"]).to_numpy()]
        effect = _length_effect(verdicts.metric, name, scored, features, draws)
        if effect is not None:
            found.append(effect)
    return found


def _length_effect(
    metric: Metric, judge: str, scored: DataFrame, features: DataFrame, draws: Draws
) -> LengthEffect | None:
    length = (
        features["length"].reindex(answer_keys(scored, "candidate", "response")).to_numpy(dtype=np.float64)
    )
    known = np.isfinite(length)
    of_row = np.unique(scored["row"].to_numpy()[known], return_inverse=True)[1]
    several = np.bincount(of_row)[of_row] > 1 if of_row.size else np.zeros(0, np.bool_)
    rows = np.unique(of_row[several], return_inverse=True)[1].astype(np.int64)
    units = scored["unit"].to_numpy()[known][several]
    if not rows.size:
        return None
    score = scored["value"].to_numpy(dtype=np.float64)[known][several]
    size = np.log2(np.maximum(length[known][several], 1.0))
    ranks = [_centred(_ranks_within(one, rows), rows) for one in (score, size)]
    apart = [_centred(one, rows) for one in (score, size)]
    parts = np.column_stack(
        [ranks[0] * ranks[1], ranks[0] ** 2, ranks[1] ** 2, apart[0] * apart[1], apart[1] ** 2]
    )
    drawn, member = draws.of(units)
    sums = np.zeros((drawn.shape[1], parts.shape[1]))
    np.add.at(sums, member, parts)
    correlations, slopes = _figures(drawn @ sums)
    whole = _figures(parts.sum(axis=0)[None])
    low, high = percentiles(correlations)
    slope_low, slope_high = percentiles(slopes)
    return LengthEffect(
        metric=metric.name,
        judge=judge,
        items=int(np.unique(rows).size),
        spearman=finite(whole[0][0]),
        ci_low=low,
        ci_high=high,
        slope_per_doubling=finite(whole[1][0]),
        slope_low=slope_low,
        slope_high=slope_high,
    )


def _figures(sums: Floats) -> tuple[Floats, Floats]:
    """Correlation and slope from sums (draws, 5); NaN where nothing varies."""
    both, first, second, product, square = sums.T
    spread = np.sqrt(first * second)
    nothing = np.full(both.shape, np.nan)
    correlation = np.divide(both, spread, out=nothing.copy(), where=spread > 1e-12)
    return correlation, np.divide(product, square, out=nothing.copy(), where=square > 1e-12)


def _centred(values: Floats, rows: Ints) -> Floats:
    centred: Floats = values - (np.bincount(rows, weights=values) / np.bincount(rows))[rows]
    return centred


def _ranks_within(values: Floats, rows: Ints) -> Floats:
    """Mean ranks within each row; by the ranks over all, which keep the order, from the row's own start."""
    order = np.lexsort((values, rows))
    start = np.r_[True, (np.diff(rows[order]) > 0) | (np.diff(values[order]) > 0)]
    tie = np.cumsum(start) - 1
    places = np.arange(values.size, dtype=np.float64)
    means = np.bincount(tie, weights=places) / np.bincount(tie)
    ranks = np.empty(values.size)
    ranks[order] = means[tie]
    return ranks
