"""Several responses to an item: the best and worst of k, whether one of k passes, where the variance is."""

from dataclasses import dataclass

import numpy as np

from .arrays import Bools, Floats, Ints, finite, group_sizes, group_starts, group_sums, quiet
from .means import item_means

MANY = 10  # up to here every k is shown, beyond it the powers of two and the largest


@dataclass(frozen=True, slots=True)
class Variance:
    """Variance components in squared score units; the share of the total that lies between items (0…1)."""

    between: float | None
    within: float | None
    share_between: float | None


def sizes_shown(most: int) -> list[int]:
    """The k that a report shows where items have at most `most` scored responses."""
    if most <= MANY:
        return list(range(1, most + 1))
    powers = [2**power for power in range(most.bit_length()) if 2**power < most]
    return [*powers, most]


def best_at_k(scores: Floats, items: Ints, k: int) -> tuple[float | None, int]:
    """The expected best of k of an item's responses, meaned over items; and how many items.

    `sum_r s_(r) C(r-1, k-1) / C(n, k)` with the item's n scores ascending (draws without replacement):
    unbiased for the best of k fresh responses. `scores` and `items` (responses,) run in parallel, one
    item's responses side by side. Items with fewer than k scored responses are left out, hence the count.
    Source: order statistics; the same argument as pass@k (Chen et al. 2021).
    """
    starts = group_starts(items)
    sizes = np.repeat(group_sizes(starts, items.size), group_sizes(starts, items.size))
    rank = np.arange(items.size) - np.repeat(starts, group_sizes(starts, items.size))
    ascending = scores[
        np.lexsort((scores, np.repeat(np.arange(starts.size), group_sizes(starts, items.size))))
    ]
    enough = sizes >= k
    with quiet():
        weighted = ascending * _share_of_draws(rank, k - 1, sizes, k)
        return _mean_of_sums(weighted[enough], items[enough])


def worst_at_k(scores: Floats, items: Ints, k: int) -> tuple[float | None, int]:
    """The expected worst of k of an item's responses, as `best_at_k`."""
    value, count = best_at_k(-scores, items, k)
    return (None if value is None else -value), count


def pass_at_k(passed: Bools, items: Ints, k: int) -> tuple[float | None, int]:
    """The probability (0…1) that at least one of k responses passes, meaned over items; and how many items.

    `1 - C(n - c, k) / C(n, k)` for an item with c passes among n: unbiased. Shapes and omissions as in
    `best_at_k`. Source: Chen et al., "Evaluating Large Language Models Trained on Code", 2021, eq. 1.
    """
    starts = group_starts(items)
    sizes = group_sizes(starts, items.size)
    failures = sizes - group_sums(passed.astype(float), starts).astype(np.int64)
    enough = sizes >= k
    if not enough.any():
        return None, 0
    chances = 1 - _share_of_draws(failures[enough], k, sizes[enough], k)
    return finite(chances.mean()), int(enough.sum())


def variance_components(scores: Floats, items: Ints) -> Variance:
    """The variance between items and within them (between an item's responses), by analysis of variance.

    within = MSW, between = max(0, (MSB - MSW) / n0), n0 = (N - sum n_i² / N) / (I - 1); the share is the
    intraclass correlation ICC(1). None where no item has two responses or there is only one item. Assumes
    that responses to an item are exchangeable and equally noisy. Source: Searle, Casella and McCulloch,
    "Variance Components", 1992, 3.6; Shrout and Fleiss 1979.
    """
    starts = group_starts(items)
    sizes = group_sizes(starts, items.size)
    total, groups = items.size, starts.size
    if groups < 2 or total == groups:
        return Variance(None, None, None)
    with quiet():
        means, _ = item_means(scores, items)
        within = float(np.sum((scores - np.repeat(means, sizes)) ** 2)) / (total - groups)
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


def _mean_of_sums(values: Floats, items: Ints) -> tuple[float | None, int]:
    sums = group_sums(values, group_starts(items))
    return (finite(sums.mean()) if sums.size else None), int(sums.size)
