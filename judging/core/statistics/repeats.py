"""Several responses to an item: the best and worst of k, whether one of k passes, where the variance is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .numeric import Floats, Ints, finite, quiet

if TYPE_CHECKING:
    from pandas import DataFrame

MANY = 10  # up to here every k is shown, beyond it the powers of two and the largest


@dataclass(frozen=True, slots=True)
class Variance:
    """Variance components in squared score units; the share of the total that lies between items (0…1)."""

    between: float | None
    within: float | None
    share_between: float | None

    def error_of_mean(self, items: float, responses: float) -> float | None:
        """`sqrt((between + within / responses) / items)`: the standard error of a mean over so many items with so many
        responses each. Source: Miller, "Adding Error Bars to Evals", 2024, section 3.2."""
        if self.between is None or self.within is None:
            return None
        return finite(np.sqrt((self.between + self.within / responses) / items))


def sizes_shown(most: int) -> list[int]:
    """The k that a report shows where items have at most `most` scored responses."""
    if most <= MANY:
        return list(range(1, most + 1))
    powers = [2**power for power in range(most.bit_length()) if 2**power < most]
    return [*powers, most]


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """A cell's scored responses by item and ascending value: each one's value, item (0 …), rank within the item (from
    0) and the item's number of responses; all of shape (responses,)."""

    values: Floats
    items: Ints
    ranks: Ints
    sizes: Ints


def ranked(judgements: DataFrame) -> Ranked:
    """A cell's scored judgements as `Ranked`."""
    values, rows = judgements["value"].to_numpy(dtype=np.float64), judgements["row"].to_numpy()
    items = np.unique(rows, return_inverse=True)[1].astype(np.int64)
    order = np.lexsort((values, items))
    items, many = items[order], np.bincount(items)
    starts = np.cumsum(many) - many
    return Ranked(values[order], items, np.arange(items.size) - starts[items], many[items])


def best_at_k(responses: Ranked, k: int) -> tuple[float | None, int]:
    """The expected best of k of an item's responses, meaned over items; and how many items.

    `sum_r s_(r) C(r-1, k-1) / C(n, k)` with the item's n scores ascending (draws without replacement):
    unbiased for the best of k fresh responses. Items with fewer than k scored responses are left out, hence the count.
    Source: order statistics; the same argument as pass@k (Chen et al. 2021).
    """
    return _expected(responses, responses.ranks, k)


def worst_at_k(responses: Ranked, k: int) -> tuple[float | None, int]:
    """The expected worst of k of an item's responses, as `best_at_k` with the scores descending."""
    return _expected(responses, responses.sizes - 1 - responses.ranks, k)


def _expected(responses: Ranked, ranks: Ints, k: int) -> tuple[float | None, int]:
    enough = responses.sizes >= k
    if not enough.any():
        return None, 0
    with quiet():
        shares = _share_of_draws(ranks[enough], k - 1, responses.sizes[enough], k)
        sums = np.bincount(responses.items[enough], weights=responses.values[enough] * shares)
    means = sums[np.unique(responses.items[enough])]
    return finite(means.mean()), int(means.size)


def pass_at_k(responses: Ranked, k: int, threshold: float = 1.0) -> tuple[float | None, int]:
    """The probability (0…1) that at least one of k responses passes, meaned over items; and how many items.

    `1 - C(n - c, k) / C(n, k)` for an item with c responses of at least `threshold` among n: unbiased. Omissions as in
    `best_at_k`. Source: Chen et al., "Evaluating Large Language Models Trained on Code", 2021, eq. 1.
    """
    sizes = np.bincount(responses.items)
    failures = np.bincount(responses.items[responses.values < threshold], minlength=sizes.size)
    enough = sizes >= k
    if not enough.any():
        return None, 0
    chances = 1 - _share_of_draws(failures[enough], k, sizes[enough], k)
    return finite(chances.mean()), int(enough.sum())


def variance_components(judgements: DataFrame) -> Variance:
    """The variance between items and within them (between an item's responses), by analysis of variance.

    within = MSW, between = max(0, (MSB - MSW) / n0), n0 = (N - sum n_i² / N) / (I - 1); the share is the
    intraclass correlation ICC(1). None where no item has two responses or there is only one item. Assumes
    that responses to an item are exchangeable and equally noisy. Source: Searle, Casella and McCulloch,
    "Variance Components", 1992, 3.6; Shrout and Fleiss 1979.
    """
    items = judgements.groupby("row")["value"]
    scores, sizes = judgements["value"].to_numpy(), items.size().to_numpy()
    total, groups = scores.size, sizes.size
    if groups < 2 or total == groups:
        return Variance(None, None, None)
    with quiet():
        means = items.mean().to_numpy()
        within = float(np.sum((scores - items.transform("mean").to_numpy()) ** 2)) / (total - groups)
        mean_square = float(np.sum(sizes * (means - scores.mean()) ** 2)) / (groups - 1)
        per_item = (total - float(np.sum(sizes**2)) / total) / (groups - 1)
        between = max(0.0, (mean_square - within) / per_item)
        share = between / (between + within) if between + within > 0 else np.nan
    return Variance(finite(between), finite(within), finite(share))


def _share_of_draws(chosen_from: Ints, chosen: int, pool: Ints, drawn: int) -> Floats:
    """`C(chosen_from, chosen) / C(pool, drawn)`, by logarithms so that large pools don't overflow."""
    most = int(max(chosen_from.max(initial=0), pool.max(initial=0)))
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, most + 1)))))

    def log_binomial(n: Ints, k: int) -> Floats:
        rest = np.maximum(n - k, 0)
        value: Floats = log_factorial[n] - log_factorial[min(k, most)] - log_factorial[rest]
        return np.where(n < k, -np.inf, value)

    possible = pool >= drawn
    ratio = log_binomial(chosen_from, chosen) - np.where(possible, log_binomial(pool, drawn), 0.0)
    shares: Floats = np.exp(ratio)
    return shares
