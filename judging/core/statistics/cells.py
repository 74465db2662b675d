"""The figures of one metric on one candidate."""

from dataclasses import dataclass

import numpy as np

from .arrays import Floats, Ints, same
from .columns import Kind, State, Table
from .distribution import histogram
from .document import CategoryShare, Cell, OtherCategories, VarianceShares
from .frame import Frame
from .means import Estimate, estimate_mean, item_means, mean_if_all_got
from .rates import estimate_rate
from .repeats import best_at_k, pass_at_k, sizes_shown, variance_components, worst_at_k

MOST_CATEGORIES = 30
FEW = 30  # below so many independent units the t interval leans on scores being about normal


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Judgements of one cell, in order: arrays of shape (responses,); `clusters` (all items,) or None."""

    state: Ints
    kind: Ints
    score: Floats
    category: Ints
    item: Ints
    clusters: Ints | None

    def of(self, kind: Kind) -> "Answers":
        """Those that are scored with a value of this kind."""
        mine = (self.kind == kind) & (self.state == State.SCORED)
        return Answers(
            self.state[mine],
            self.kind[mine],
            self.score[mine],
            self.category[mine],
            self.item[mine],
            self.clusters,
        )

    def clusters_of(self, items: Ints) -> Ints | None:
        return None if self.clusters is None else self.clusters[items]


def answers(table: Table, metric: int, candidate: int) -> Answers:
    """The judgements of one metric on one candidate."""
    here, columns = table.cell(metric, candidate), table.columns
    return Answers(
        columns.state[here],
        columns.kind[here],
        columns.score[here],
        columns.category[here],
        table.item[here],
        table.clusters,
    )


def cell_figures(given: Answers, frame: Frame, labels: tuple[str, ...], level: float) -> Cell:
    """The whole cell; `labels` are the names behind the category codes."""
    scored = given.of(frame.kind)
    values, items = item_means(scored.score, scored.item)
    main = _main(values, scored.clusters_of(items), frame, level)
    cell = _frame_of_cell(given, frame, main)
    cell["off_scale"] = _off_scale(scored.score, frame)
    cell["top_share"] = _top_share(scored, frame)
    cell["distribution"] = histogram(scored.score, frame.bins) if frame.bins else []
    _add_rate(cell, given, frame, level)
    _add_categories(cell, given, labels, level)
    if items.size < scored.item.size and frame.kind != Kind.CATEGORY:
        _add_repeats(cell, scored, frame)
    cell["notes"] = _notes(cell, values, given.clusters is not None)
    return cell


def _main(values: Floats, clusters: Ints | None, frame: Frame, level: float) -> Estimate:
    if frame.kind != Kind.CATEGORY:
        return estimate_mean(values, clusters, level)
    units = values.size if clusters is None else np.unique(clusters).size
    return Estimate(None, None, None, None, int(values.size), int(units))


def _frame_of_cell(given: Answers, frame: Frame, main: Estimate) -> Cell:
    """Counts, mean and bounds; the rest empty."""
    counts = [int(count) for count in np.bincount(given.state, minlength=len(State))]
    responses, no_score = len(given.state), counts[State.NO_SCORE]
    asked = responses - no_score
    low, high = _bounds(given, frame)
    return Cell(
        kind=frame.kind.name.lower() if frame.kind else None,
        kinds={kind.name.lower(): int(np.sum(given.kind == kind)) for kind in Kind if kind},
        mean=main.mean,
        ci_low=main.low,
        ci_high=main.high,
        se=main.se,
        items=main.items,
        clusters=main.clusters,
        responses=responses,
        asked=asked,
        scored=counts[State.SCORED],
        no_score=no_score,
        unparsed=counts[State.UNPARSED],
        errors=counts[State.ERROR],
        not_run=counts[State.NOT_RUN],
        coverage=counts[State.SCORED] / asked if asked else None,
        low_bound=low,
        high_bound=high,
        top_share=None,
        off_scale=0,
        distribution=[],
        notes=[],
    )


def _bounds(given: Answers, frame: Frame) -> tuple[float | None, float | None]:
    """The mean had all unscored got the lowest, the highest score; None where an end is needed and unknown."""
    if frame.kind == Kind.CATEGORY:
        return None, None
    unscored = (given.state != State.SCORED) & (given.state != State.NO_SCORE)
    counted = unscored | (given.kind == frame.kind) & (given.state == State.SCORED)
    scores, items = given.score[counted], given.item[counted]
    missing = bool(unscored.any())
    low, high = (
        None if missing and end is None else mean_if_all_got(scores, items, 0.0 if end is None else end)
        for end in (frame.lowest, frame.highest)
    )
    return low, high


def _off_scale(scores: Floats, frame: Frame) -> int:
    below = 0 if frame.low is None else np.sum(scores < frame.low)
    above = 0 if frame.high is None else np.sum(scores > frame.high)
    return int(below + above)


def _top_share(scored: Answers, frame: Frame) -> float | None:
    if frame.high is None or not scored.score.size:
        return None
    return estimate_rate(scored.score >= frame.high, scored.item).rate


def _add_rate(cell: Cell, given: Answers, frame: Frame, level: float) -> None:
    """The rate of true, for every metric with bools; as the main figure its interval is the cell's."""
    bools = given.of(Kind.BOOL)
    if frame.kind != Kind.BOOL and not bools.score.size:
        return
    rate = estimate_rate(bools.score > 0, bools.item, bools.clusters_of(bools.item), level)
    cell["rate"], cell["rate_ci_low"], cell["rate_ci_high"] = rate.rate, rate.low, rate.high
    if frame.kind == Kind.BOOL:
        cell["ci_low"], cell["ci_high"] = rate.low, rate.high


def _add_categories(cell: Cell, given: Answers, labels: tuple[str, ...], level: float) -> None:
    """The most frequent labels, most frequent first, then by name; the rest in one count."""
    mine = given.of(Kind.CATEGORY)
    if not mine.category.size:
        return
    counts = np.bincount(mine.category, minlength=len(labels))
    present = sorted(np.flatnonzero(counts).tolist(), key=lambda code: (-counts[code], labels[code]))
    shown, rest = present[:MOST_CATEGORIES], present[MOST_CATEGORIES:]
    clusters = mine.clusters_of(mine.item)
    cell["categories"] = {}
    for code in shown:
        rate = estimate_rate(mine.category == code, mine.item, clusters, level)
        share = CategoryShare(count=rate.count, share=rate.rate, ci_low=rate.low, ci_high=rate.high)
        cell["categories"][labels[code]] = share
    if rest:
        cell["other_categories"] = OtherCategories(labels=len(rest), count=int(counts[rest].sum()))


def _add_repeats(cell: Cell, scored: Answers, frame: Frame) -> None:
    """What only several responses to an item can tell."""
    scores, items = scored.score, scored.item
    sizes = sizes_shown(int(np.unique(items, return_counts=True)[1].max()))
    best = {str(k): best_at_k(scores, items, k) for k in sizes}
    cell["best_at_k"] = {k: value for k, (value, _) in best.items()}
    cell["worst_at_k"] = {str(k): worst_at_k(scores, items, k)[0] for k in sizes}
    cell["at_k_items"] = {k: count for k, (_, count) in best.items()}
    threshold = frame.threshold
    if threshold is not None:
        cell["pass_at_k"] = {str(k): pass_at_k(scores >= threshold, items, k)[0] for k in sizes}
        cell["pass_threshold"] = threshold
    variance = variance_components(scores, items)
    cell["variance"] = VarianceShares(
        between=variance.between, within=variance.within, share_between=variance.share_between
    )


def _notes(cell: Cell, values: Floats, clustered: bool) -> list[str]:
    """What a reader must know before trusting the mean, as codes of `document.NOTES`."""
    units = cell["clusters"]
    reasons = {
        "nothing_scored": cell["scored"] == 0,
        "one_unit": units == 1,
        "few_items": 1 < units < FEW and not clustered,
        "few_clusters": 1 < units < FEW and clustered,
        "no_variation": units > 1 and cell["mean"] is not None and same(values),
        "mixed_kinds": sum(count > 0 for count in cell["kinds"].values()) > 1,
        "off_scale": cell["off_scale"] > 0,
    }
    return [code for code, holds in reasons.items() if holds]
