"""Whether the items of a slice score differently from the rest: a permutation test, which holds its level also for
small, skewed and nearly constant groups.

The statistic is |mean of the slice − mean of the rest|, over items. What is exchanged are items, or whole clusters of
items that depend on each other; inside a cluster that has items on both sides, its items. Where all arrangements are at
most `MOST_ARRANGEMENTS`, all are counted, otherwise `DRAWS` seeded ones and the observed one. Source: Pitman 1937;
Phipson and Smyth, Statistical Applications in Genetics and Molecular Biology 9(1), 2010, for (1 + hits) / (1 + draws).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations

import numpy as np

from .numeric import Bools, Floats, Ints, same

MOST_ARRANGEMENTS = 100_000
DRAWS = 9_999
FEWEST_UNITS = 5
"""A slice, or a rest, of fewer units is not tested."""
SMALL = 2_000
"""Up to so many units are permuted one by one; more are drawn by how many of each value the slice gets."""
MOST_VALUES = 100
"""If more than `SMALL` units have more different values than this, near ones are drawn as one."""
AT_ONCE = 4_000_000  # numbers in memory
CLOSE = 1e-9  # relative; sums of the same items differ by rounding


@dataclass(frozen=True, slots=True)
class Arrangements:
    """The statistic of other arrangements, ascending; `whole`: these are all of them, with the observed one."""

    statistics: Floats
    whole: bool

    def p_of(self, observed: Floats) -> Floats:
        """p for each observed statistic: the share of arrangements whose statistic is at least as large."""
        size = self.statistics.size
        close = CLOSE * float(self.statistics[-1])
        hits = size - np.searchsorted(self.statistics, observed - close)
        p: Floats = hits / size if self.whole else (1 + hits) / (1 + size)
        return p


def slice_p_values(values: Floats, units: Ints, slices: Bools, seed: int = 0) -> list[float | None]:
    """p for each slice of the items, None where slice or rest has fewer than five units.

    `values` (items,): the items' means; `units` (items,): the item's unit; `slices` (slices, items): its items.
    """
    items = _Items.of(values, units)
    parts = [items.split(here) for here in slices]
    tested = [part for part in parts if part.testable]
    if not tested:
        return [None] * len(parts)
    if same(values):
        return [1.0 if part.testable else None for part in parts]
    arrangements = dict(zip(map(id, tested), items.arranged(tested, seed), strict=True))
    return [
        float(arrangements[id(part)].p_of(np.array([part.observed]))[0]) if part.testable else None
        for part in parts
    ]


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    """One slice: its items (items,), and the number of each unit's items in it and outside (units,)."""

    here: Bools
    inside: Ints
    outside: Ints
    observed: float

    @property
    def testable(self) -> bool:
        return min(int((self.inside > 0).sum()), int((self.outside > 0).sum())) >= FEWEST_UNITS

    @property
    def mixed(self) -> Bools:
        """The units with items on both sides."""
        return (self.inside > 0) & (self.outside > 0)

    @property
    def chosen(self) -> int:
        """How many whole units are in the slice."""
        return int(((self.inside > 0) & (self.outside == 0)).sum())

    @property
    def count(self) -> int:
        """How many arrangements there are."""
        whole = math.comb(int((~self.mixed).sum()), self.chosen)
        mixed = zip(self.inside[self.mixed].tolist(), self.outside[self.mixed].tolist(), strict=True)
        for inside, outside in mixed:
            whole *= math.comb(inside + outside, inside)
            if whole > MOST_ARRANGEMENTS:
                break
        return whole


@dataclass(frozen=True, slots=True, eq=False)
class _Items:
    """Items sorted by unit: values (items,), centred; each one's unit; each unit's sum and size (units,)."""

    values: Floats
    order: Ints
    member: Ints
    sums: Floats
    sizes: Ints

    @classmethod
    def of(cls, values: Floats, units: Ints) -> _Items:
        member = np.unique(units, return_inverse=True)[1].astype(np.int64)
        order = np.argsort(member, kind="stable").astype(np.int64)
        values, member = (values - values.mean())[order], member[order]
        sums = np.asarray(np.bincount(member, weights=values), dtype=np.float64)
        return cls(values, order, member, sums, np.bincount(member).astype(np.int64))

    def split(self, here: Bools) -> _Split:
        here = here[self.order]
        inside = np.bincount(self.member, weights=here, minlength=self.sizes.size).astype(np.int64)
        size, total = int(here.sum()), here.size
        observed = 0.0
        if 0 < size < total:
            observed = float(abs(self.values[here].mean() - self.values[~here].mean()))
        return _Split(here, inside, self.sizes - inside, observed)

    def arranged(self, parts: Sequence[_Split], seed: int) -> list[Arrangements]:
        rng = np.random.default_rng(seed)
        drawn = [part for part in parts if part.count > MOST_ARRANGEMENTS]
        sums, counts = self._drawn(drawn, rng) if drawn else (np.zeros((0, 0)), np.zeros((0, 0)))
        arrangements, place = [], 0
        for part in parts:
            if part.count <= MOST_ARRANGEMENTS:
                arrangements.append(Arrangements(self._sorted(*self._every(part)), whole=True))
            else:
                arrangements.append(Arrangements(self._sorted(sums[place], counts[place]), whole=False))
                place += 1
        return arrangements

    def _sorted(self, sums: Floats, counts: Floats) -> Floats:
        """The statistics of slices with these sums and numbers of items."""
        return np.sort(statistics_of(sums, counts, float(self.values.sum()), self.values.size))

    def _every(self, part: _Split) -> tuple[Floats, Floats]:
        """Sum and number of items of the slice in every arrangement."""
        whole = ~part.mixed
        sums = sums_of_subsets(self.sums[whole], part.chosen)
        counts = sums_of_subsets(self.sizes[whole].astype(np.float64), part.chosen)
        for unit in np.flatnonzero(part.mixed).tolist():
            inner = sums_of_subsets(self.values[self.member == unit], int(part.inside[unit]))
            sums = np.add.outer(sums, inner).ravel()
            counts = np.repeat(counts + part.inside[unit], inner.size)
        return sums, counts

    def _drawn(self, parts: Sequence[_Split], rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Sums and numbers of items of each slice in drawn arrangements: (slices, draws)."""
        sums, counts = np.zeros((len(parts), DRAWS)), np.zeros((len(parts), DRAWS))
        if any(part.mixed.any() for part in parts):
            sums += self._within(parts, rng)
            counts += np.array([[int(part.inside[part.mixed].sum())] for part in parts])
        alike: dict[bytes, list[int]] = {}  # slices whose whole units are the same
        for place, part in enumerate(parts):
            alike.setdefault(part.mixed.tobytes(), []).append(place)
        for places in alike.values():
            whole = ~parts[places[0]].mixed
            chosen = [parts[place].chosen for place in places]
            of_units = subset_draws(self.sums[whole], self.sizes[whole], chosen, rng)
            for place, size in zip(places, chosen, strict=True):
                sums[place] += of_units[size][0]
                counts[place] += of_units[size][1]
        return sums, counts

    def _within(self, parts: Sequence[_Split], rng: np.random.Generator) -> Floats:
        """The sums over mixed units in drawn arrangements: (slices, draws)."""
        inside = np.array([part.here & part.mixed[self.member] for part in parts])
        concerned = inside.any(axis=0)
        concerned = np.isin(self.member, self.member[concerned])
        if concerned.sum() > SMALL:
            return np.array([self._nearly_normal(part, rng) for part in parts])
        values, member, inside = self.values[concerned], self.member[concerned], inside[:, concerned]
        sums = np.zeros((len(parts), DRAWS))
        for rows in _batches(values.size):
            shuffled = np.argsort(member + rng.random((rows.stop - rows.start, values.size)), axis=1)
            sums[:, rows] = inside.astype(np.float64) @ values[shuffled].T
        return sums

    def _nearly_normal(self, part: _Split, rng: np.random.Generator) -> Floats:
        """The same from the sum's mean and variance, which over so many units is normal: (draws,)."""
        size, chosen = self.sizes, part.inside * part.mixed
        means = self.sums / size
        squares = np.bincount(self.member, weights=(self.values - means[self.member]) ** 2)
        spread = chosen * (size - chosen) / np.maximum(size * (size - 1.0), 1.0) * squares
        drawn: Floats = rng.normal(float(chosen @ means), math.sqrt(float(spread.sum())), DRAWS)
        return drawn


def statistics_of(sums: Floats, counts: Floats, total: float, items: int) -> Floats:
    """|mean of the slice − mean of the rest| for slices with these sums and numbers of items."""
    statistics: Floats = np.abs(sums / counts - (total - sums) / (items - counts))
    return statistics


def subset_draws(
    sums: Floats, sizes: Ints, chosen: Sequence[int], rng: np.random.Generator
) -> dict[int, tuple[Floats, Floats]]:
    """For each number of units to choose: sum and number of items of `DRAWS` random subsets of that many units.

    `sums`, `sizes` (units,): of each unit's items. The subsets of different sizes come from the same permutations.
    """
    wanted = sorted(set(chosen))
    if sums.size > SMALL:
        return {size: _by_value(sums, sizes, size, rng) for size in wanted}
    draws = {size: (np.zeros(DRAWS), np.zeros(DRAWS)) for size in wanted}
    for rows in _batches(sums.size):
        order = rng.permuted(np.tile(np.arange(sums.size), (rows.stop - rows.start, 1)), axis=1)
        for size in wanted:
            first = order[:, :size]
            draws[size][0][rows] = sums[first].sum(axis=1)
            draws[size][1][rows] = sizes[first].sum(axis=1)
    return draws


def _by_value(sums: Floats, sizes: Ints, chosen: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """One size of `subset_draws`, by how many units of each value are chosen (multivariate hypergeometric)."""
    pairs, place = np.unique(np.column_stack([sums, sizes]), axis=0, return_inverse=True)
    place = place.ravel()
    if len(pairs) > MOST_VALUES:
        ranks = np.empty(place.size, dtype=np.int64)
        ranks[np.argsort(place, kind="stable")] = np.arange(place.size)
        place = ranks * MOST_VALUES // place.size
    many = np.bincount(place)
    of_sums, of_sizes = (np.bincount(place, weights=totals) / many for totals in (sums, sizes))
    drawn = rng.multivariate_hypergeometric(many, chosen, size=DRAWS)
    return drawn @ of_sums, drawn @ of_sizes


def _batches(width: int) -> list[slice]:
    step = max(1, AT_ONCE // max(1, width))
    return [slice(start, min(start + step, DRAWS)) for start in range(0, DRAWS, step)]


def sums_of_subsets(numbers: Floats, chosen: int) -> Floats:
    """The sum of every subset of `chosen` of the numbers: (subsets,)."""
    rest = numbers.size - chosen
    if rest < chosen:
        left_out: Floats = numbers.sum() - numbers[subsets(numbers.size, rest)].sum(axis=1)
        return left_out
    sums: Floats = numbers[subsets(numbers.size, chosen)].sum(axis=1)
    return sums


@lru_cache(maxsize=4)
def subsets(size: int, chosen: int) -> Ints:
    """Every subset of `chosen` of the numbers below `size`: (subsets, chosen)."""
    count = math.comb(size, chosen)
    flat = np.fromiter(chain.from_iterable(combinations(range(size), chosen)), np.int64, count * chosen)
    return flat.reshape(count, chosen)
