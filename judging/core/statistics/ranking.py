"""The candidates of a report's document under one metric, in order, and what they are ordered by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .frame import COMBINED

COUNTED_FIRST = (COMBINED, "script", "rules")
"""Authors whose values are a metric's own, where single judges have values too."""
Document = Mapping[str, Any]
Cells = Mapping[str, Mapping[str, Any]]
"""{candidate: its figures under one metric}, in display order."""


def under(document: Document, part: str, metric: str) -> list[Mapping[str, Any]]:
    """The entries of a part of the document for one metric."""
    return [entry for entry in document.get(part, ()) if entry["metric"] == metric]


def ranked(document: Document, metric: str) -> dict[str, Any]:
    """The cells of a metric, highest mean first, those without a mean last, then by name.

    Where every candidate has a corrected score, these are the means, `raw_mean` has the judge's, and `corrected_by`
    says with what: the run's "own" ratings, or the test of a "licence".
    """
    cells = {name: metrics[metric] for name, metrics in document["candidates"].items()}
    for name, score in corrected_under(document, metric).items():
        figures = {key: score[key] for key in ("ci_low", "ci_high", "se")}
        figures["corrected_by"] = score.get("source", "own")
        cells[name] = {**cells[name], "raw_mean": cells[name]["mean"], "mean": score["value"], **figures}
    return dict(
        sorted(cells.items(), key=lambda cell: (cell[1]["mean"] is None, -(cell[1]["mean"] or 0), cell[0]))
    )


def rank_pairs(document: Document, metric: str) -> list[Mapping[str, Any]]:
    """The tested differences of the values that `ranked` orders by."""
    judge = next((score["judge"] for score in corrected_under(document, metric).values()), None)
    if judge is None:
        return under(document, "pairs", metric)
    return [pair for pair in under(document, "corrected_pairs", metric) if pair["judge"] == judge]


def corrected_under(document: Document, metric: str) -> dict[str, Mapping[str, Any]]:
    """{candidate: corrected score} by one judge, if every candidate with a mean has one; else empty. The metric's own
    value is preferred to that of single judges."""
    named = {name for name, metrics in document["candidates"].items() if metrics[metric]["mean"] is not None}
    by_judge: dict[str, dict[str, Mapping[str, Any]]] = {}
    for score in under(document, "corrected", metric):
        if score["value"] is not None and score["candidate"] in named:
            by_judge.setdefault(score["judge"], {})[score["candidate"]] = score
    whole = {judge: scores for judge, scores in by_judge.items() if named and scores.keys() == named}
    return next((whole[author] for author in (*COUNTED_FIRST, *whole) if author in whole), {})


def ranked_by_wins(compared: Mapping[str, Any]) -> dict[str, Any]:
    """The candidates compared in an entry of `side_by_side`: by rating, or by win rate where there are no ratings."""
    cells = {name: cell for name, cell in compared["candidates"].items() if cell["win_rate"] is not None}
    rated = all(cell.get("rating") is not None for cell in cells.values())
    return dict(
        sorted(
            cells.items(),
            key=lambda cell: (-cell[1]["rating"] if rated else 0.0, -cell[1]["win_rate"], cell[0]),
        )
    )


def comparisons_under(document: Document, metric: str) -> Mapping[str, Any] | None:
    """The comparisons that determine a metric's result if it has no means: of the author with the most, of people in
    a tie."""
    if any(metrics[metric]["mean"] is not None for metrics in document["candidates"].values()):
        return None
    entries = under(document, "side_by_side", metric)

    def comparisons(side: Mapping[str, Any]) -> int:
        return sum(cell["comparisons"] for cell in side["candidates"].values())

    return max(entries, key=lambda entry: (comparisons(entry), entry["by"] == "people"), default=None)
