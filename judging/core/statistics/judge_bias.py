"""Signs of bias in a judge's scores: the ends of its scale, and answers with a planted verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .document import Planted, ScaleEnds
from .frame import Metric
from .verdicts import counted

if TYPE_CHECKING:
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
