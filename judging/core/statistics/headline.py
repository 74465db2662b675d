"""What a report says first about a metric: who leads, who can't be told apart, or that people contradict the judge."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .ranking import (
    COUNTED_FIRST,
    Document,
    comparisons_under,
    corrected_under,
    rank_pairs,
    ranked,
    ranked_by_wins,
    under,
)

Code = Literal["leads", "tied", "equal", "contradicted", "nothing"]
Apart = Collection[tuple[str, str]]
"""(higher, lower) of each pair of candidates that differ significantly."""
EQUAL = 1e-9  # means of the same scores differ by rounding


@dataclass(frozen=True, slots=True)
class Gap:
    """People's values minus the judge's on the same `items` answers: their mean and its interval. `candidate`: whose
    answers; '' for everybody's."""

    mean: float
    low: float
    high: float
    items: int
    candidate: str = ""


@dataclass(frozen=True, slots=True)
class Headline:
    """The first statement on a metric.

    `code`: one candidate `leads` if it differs significantly from every other; else those that differ from the highest
    in nothing are `equal`, or can't be told apart (`tied`); `nothing` without a second candidate, or without means;
    `contradicted` if people contradict the judge. `standing`: what `code` would be without people. `candidates`: the
    leader, or all who are equal or tied, highest first. `value`: whether these are `raw` or `corrected` values, and
    `corrected_by` with what: the run's "own" ratings, or the test of a "licence".
    `mean`, `low`, `high`: of the first of them, a win rate if `by` names who compared. `others`: the candidates that
    are not named.
    """

    metric: str
    code: Code
    standing: Code
    candidates: list[str]
    value: Literal["raw", "corrected"] = "raw"
    kind: str = ""
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    by: str = ""
    others: list[str] | None = None
    gap: Gap | None = None
    corrected_by: str = ""


def headline_of(document: Document, metric: str) -> Headline:
    """The headline of one metric of a report's document."""
    if compared := comparisons_under(document, metric):
        return _of_comparisons(document, metric, compared)
    cells = {name: cell for name, cell in ranked(document, metric).items() if cell["mean"] is not None}
    kind = next(
        (cells[metric]["kind"] for cells in document["candidates"].values() if cells[metric]["kind"]), ""
    )
    if not cells:
        return Headline(metric, "nothing", "nothing", [], kind=kind)
    corrected = corrected_under(document, metric)
    values = {name: cell["mean"] for name, cell in cells.items()}
    standing, names = standing_of(values, _apart(rank_pairs(document, metric)))
    gap = contradiction(document, metric, corrected, names[0] if standing == "leads" else "")
    first = cells[names[0]]
    return Headline(
        metric=metric,
        code="contradicted" if gap else standing,
        standing=standing,
        candidates=names,
        value="corrected" if corrected else "raw",
        kind=kind,
        mean=first["mean"],
        low=first["ci_low"],
        high=first["ci_high"],
        others=[name for name in values if name not in names],
        gap=gap,
        corrected_by=first.get("corrected_by", ""),
    )


def _of_comparisons(document: Document, metric: str, compared: Mapping[str, Any]) -> Headline:
    cells = ranked_by_wins(compared)
    if not cells:
        return Headline(metric, "nothing", "nothing", [], by=compared["by"])
    rated = all(cell.get("rating") is not None for cell in cells.values())
    values = {name: cell["rating" if rated else "win_rate"] for name, cell in cells.items()}
    apart = {
        (
            difference["higher"],
            difference["b"] if difference["higher"] == difference["a"] else difference["a"],
        )
        for difference in compared.get("differences", ())
        if difference["distinguishable"] and difference["higher"] is not None
    }
    standing, names = standing_of(values, apart)
    gap = None if compared["by"] == "people" else contradiction(document, metric, {}, "", compared["by"])
    first = cells[names[0]]
    return Headline(
        metric=metric,
        code="contradicted" if gap else standing,
        standing=standing,
        candidates=names,
        mean=first["win_rate"],
        low=first["ci_low"],
        high=first["ci_high"],
        by=compared["by"],
        others=[name for name in values if name not in names],
        gap=gap,
    )


def standing_of(values: Mapping[str, float], apart: Apart) -> tuple[Code, list[str]]:
    """Who is first, and as what. `values`: of all candidates, highest first."""
    top = max(values.values())
    highest = [name for name, value in values.items() if top - value <= EQUAL * max(1.0, abs(top))]
    alike = [
        name
        for name in values
        if name in highest or any((top_name, name) not in apart for top_name in highest)
    ]
    if len(values) == 1:
        return "nothing", alike
    if len(alike) == 1:
        return "leads", alike
    return ("equal" if alike == highest else "tied"), alike


def _apart(pairs: Sequence[Mapping[str, Any]]) -> Apart:
    return {
        (pair["a"], pair["b"]) if pair["difference"] > 0 else (pair["b"], pair["a"])
        for pair in pairs
        if pair["distinguishable"]
    }


def contradiction(
    document: Document, metric: str, corrected: Mapping[str, Any], leader: str, by: str = ""
) -> Gap | None:
    """People's values against those that the headline rests on, if the interval of their difference does not hold
    zero: over all answers that both judged, or, of a `leader`, its own answers being overrated. Where several judges
    are averaged, all of them must be off on the same side."""
    judges = _judges(under(document, "judges", metric), corrected, by)
    gaps = [_gap(agreement) for agreement in judges]
    if gaps and (all(gap and gap.low > 0 for gap in gaps) or all(gap and gap.high < 0 for gap in gaps)):
        return gaps[0]
    own = [_gap(agreement, leader) for agreement in judges] if leader and not corrected else []
    return own[0] if own and all(gap and gap.high < 0 for gap in own) else None


def _judges(
    agreements: Sequence[Mapping[str, Any]], corrected: Mapping[str, Any], by: str
) -> list[Mapping[str, Any]]:
    """The agreements with people of whoever gave the values: the metric's own value, or else all judges."""
    mine = {agreement["judge"]: agreement for agreement in agreements if agreement["against"] == "people"}
    if by:
        return [mine[by]] if by in mine else []
    judge = next((score["judge"] for score in corrected.values()), "")
    return next(([mine[name]] for name in (judge, *COUNTED_FIRST) if name in mine), [*mine.values()])


def _gap(agreement: Mapping[str, Any], candidate: str = "") -> Gap | None:
    figures = agreement
    if candidate:
        each = agreement.get("by_candidate", ())
        figures = next((mine for mine in each if mine["candidate"] == candidate), {})
    if figures.get("bias") is None or figures.get("bias_low") is None:
        return None
    return Gap(-figures["bias"], -figures["bias_high"], -figures["bias_low"], figures["items"], candidate)
