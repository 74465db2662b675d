"""The shares of each verdict in comparisons, beside their means and win rates in a report's document."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from datasets.core.kinds import COMPARISON_CODES
from judging.core.statistics.document import bins_of
from judging.core.values import verdict_code

SIDE_SHARES = ("win_share", "tie_share", "loss_share", "unsettled_share")
"""Of a candidate's comparisons, or of a pair's from the point of view of `a`; ties include both bad."""
VERDICT_SHARES = tuple(f"share {code}" for code in COMPARISON_CODES)
"""Columns of a table: the shares of comparisons with the reference, A being the reference."""

Cells = Mapping[str, Mapping[str, Mapping[str, Any]]]


def verdicts_of(cell: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """{verdict: {count, share}} of comparisons with the reference, from the bins of their scores 1…5. Empty if nothing
    is scored, or if a score lies between two verdicts, as the mean of several does."""
    counts = {
        verdict_code(score_bin["low"]) if score_bin["low"] == score_bin["high"] else "": score_bin["count"]
        for score_bin in bins_of(cell)
    }
    total = sum(counts.values())
    if not total or "" in counts:
        return {}
    return {
        code: {"count": counts.get(code, 0), "share": counts.get(code, 0) / total}
        for code in COMPARISON_CODES
    }


def with_verdicts(cells: Cells, comparisons: Collection[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """Cells by candidate and metric; those of metrics in `comparisons`, with the reference, get `verdicts`."""
    return {
        candidate: {
            metric: {**cell, "verdicts": verdicts_of(cell)} if metric in comparisons else {**cell}
            for metric, cell in of_candidate.items()
        }
        for candidate, of_candidate in cells.items()
    }


def with_side_shares(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Entries of `side_by_side` with SIDE_SHARES in each candidate's figures and each pair's."""
    return [
        {
            **entry,
            "candidates": {
                name: {**cell, **_side_shares(cell)} for name, cell in entry["candidates"].items()
            },
            "pairs": [{**pair, **_side_shares(pair)} for pair in entry["pairs"]],
        }
        for entry in entries
    ]


def _side_shares(cell: Mapping[str, Any]) -> dict[str, float | None]:
    """Null if nothing was compared."""
    counts = [cell["wins"], cell["ties"], cell["losses"], cell.get("unsettled", 0)]
    total = sum(counts)
    return dict(zip(SIDE_SHARES, [count / total if total else None for count in counts], strict=True))


def verdict_columns(cell: Mapping[str, Any]) -> dict[str, float]:
    """The shares of a cell's `verdicts` by VERDICT_SHARES."""
    verdicts = cell.get("verdicts") or {}
    return {f"share {code}": verdict["share"] for code, verdict in verdicts.items()}
