"""Whether a watched judge has changed: each sentinel answer's verdicts before and now, permuted within the sentinel.

A watch judges the same sentinels again and again. If the judge is the same, a sentinel's judgements of the baseline and
of recent checks are exchangeable: any of them could have come first. Two statistics are tested so, each over this check
and over the last five checks together: which verdicts differ from the licence's (`changed`), and for numbers how far
they have moved, up and down. From the sixth check on the changed verdicts of the last five are also tested against the
baseline and the checks before them, of which the first `MOST_EARLIER` count: the more is known of how often a judge
changes by itself, the sooner a change shows, and the first ones hold least of a slow one. Source: the permutation test
of Pitman 1937 in strata; Phipson and Smyth, Statistical Applications in Genetics and Molecular Biology 9(1), 2010, for
(1 + hits) / (1 + draws).

Check t is tested at the level `0.5 / ((t + 9) (t + 10))`, shared equally by its tests. The levels of all checks add up
to 0.05, so at most 5 of 100 watches of an unchanged judge ever raise an alarm, however many checks they make.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from .intervals import wilson
from .numeric import Bools, Floats, Ints
from .permutation import subsets

BASELINE = 5
"""How often each sentinel is judged for the baseline."""
TOGETHER = 5
"""How many recent checks are tested together."""
MOST_EARLIER = 45
"""Checks before those that are tested together, from the first, that count as a further baseline."""
FEWEST_SENTINELS, USUAL_SENTINELS, MOST_SENTINELS = 30, 60, 100
FEWEST_ANSWERED = 0.9
"""A check with fewer of its sentinels answered counts as none."""
WHOLE_LEVEL = 0.05
SELF_CHANGE, TURNED, TURNED_BACK = 0.2, 0.15, 0.1
STEPS, MOST = 12, 4.0
"""What the statistic of changed verdicts looks for, how finely it counts, and how much a sentinel counts at most
(turned_scores). They decide what is found, never the level."""
ROUNDED = 1e-12
CLOSE = 1e-9  # relative; sums of the same values differ by rounding
FIRST_DRAWS, MOST_DRAWS_AT_ONCE = 100, 20_000

What = Literal["changed", "up", "down"]


def level_of(check: int) -> float:
    """The level of the check with this number, from 1: `0.5 / ((t + 9) (t + 10))`; they add up to 0.05."""
    return 0.5 / ((check + 9) * (check + 10))


@dataclass(frozen=True, slots=True, eq=False)
class Sittings:
    """The judgements of all sentinels in some sittings.

    `changed` (sentinels, sittings): 1 where the verdict differs from the licence's, 0 where it is the same, NaN where
    there is none. `values`, likewise: the verdicts as numbers, NaN where there is no number; None for verdicts that are
    no numbers.
    """

    changed: Floats
    values: Floats | None = None

    def last(self, sittings: int) -> Sittings:
        """Only the last of them."""
        values = None if self.values is None else self.values[:, -sittings:]
        return Sittings(self.changed[:, -sittings:], values)


@dataclass(frozen=True, slots=True)
class WatchTest:
    """One test of a check. `checks`: over how many it goes. `level`: below which p raises the alarm. `p` is an upper
    bound that was reached early where it lies far above the level. `earlier`: how many checks count as baseline."""

    what: What
    checks: int
    p: float
    level: float
    earlier: int = 0

    @property
    def alarm(self) -> bool:
        return self.p <= self.level


@dataclass(frozen=True, slots=True)
class Share:
    """A share of verdicts that differ from the licence's, with Wilson's interval at 95 %."""

    changed: int
    judged: int
    rate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check says. `shift`: the mean change of the values since the baseline over sentinels, None without
    numbers."""

    tests: tuple[WatchTest, ...]
    share: Share
    shift: float | None

    @property
    def alarm(self) -> bool:
        return any(test.alarm for test in self.tests)

    @property
    def nearness(self) -> float:
        """How near the alarm is: 0 where nothing points to a change, 1 at the alarm. On the scale of log p, of the
        test that is nearest to its level."""
        return max(nearness_of(test.p, test.level) for test in self.tests)


def nearness_of(p: float, level: float) -> float:
    """`log p / log level`, at most 1."""
    return max(0.0, min(1.0, math.log(max(p, 1e-300)) / math.log(level)))


def answered_enough(sitting: Sittings) -> bool:
    """Whether the last sitting counts as a check."""
    return float(np.isfinite(sitting.changed[:, -1]).mean()) >= FEWEST_ANSWERED


def earlier_checks(number: int) -> int:
    """How many checks, from the first, count as baseline in the third test of the check with this number."""
    return max(0, min(MOST_EARLIER, number - TOGETHER))


def check_result(
    baseline: Sittings, checks: Sittings, number: int, seed: int = 0, earlier: Sittings | None = None
) -> CheckResult:
    """The tests of the newest check, the last of `checks`, which counted; `number`: its place among these, from 1.

    `earlier`: the `earlier_checks` of this number; None if there are none. `seed`: of the permutations of numbers.
    """
    windows = sorted({1, min(TOGETHER, checks.changed.shape[1])})  # the first check is tested once
    kinds: tuple[What, ...] = ("changed",) if baseline.values is None else ("changed", "up", "down")
    level = level_of(number) / (len(windows) * len(kinds) + (earlier is not None))
    tests = []
    if earlier is not None:
        before = np.hstack([baseline.changed, earlier.changed])
        p = changed_p(before, checks.last(TOGETHER).changed)
        tests.append(WatchTest("changed", TOGETHER, p, level, earlier.changed.shape[1]))
    for window in windows:
        recent = checks.last(window)
        tests.append(WatchTest("changed", window, changed_p(baseline.changed, recent.changed), level))
        if baseline.values is not None and recent.values is not None:
            up, down = shift_ps(baseline.values, recent.values, level, seed + number)
            tests += [WatchTest("up", window, up, level), WatchTest("down", window, down, level)]
    newest = checks.last(1)
    shift = None
    if baseline.values is not None and newest.values is not None:
        shift = mean_shift(baseline.values, newest.values)
    return CheckResult(tuple(tests), share_of(newest.changed), shift)


def share_of(changed: Floats) -> Share:
    """The share of changed verdicts among those that there are; needs one at least."""
    verdicts = changed[np.isfinite(changed)]
    count, judged = int(verdicts.sum()), verdicts.size
    low, high = wilson(count / judged, judged)
    return Share(count, judged, count / judged, low, high)


def mean_shift(baseline: Floats, recent: Floats) -> float | None:
    """The mean over sentinels of (mean of recent values − mean of the baseline); None where no sentinel has both."""
    both = np.isfinite(baseline).any(axis=1) & np.isfinite(recent).any(axis=1)
    if not both.any():
        return None
    return float((np.nanmean(recent[both], axis=1) - np.nanmean(baseline[both], axis=1)).mean())


# --- changed verdicts: exact -----------------------------------------------------------------------------------


def changed_p(baseline: Floats, recent: Floats) -> float:
    """p of the recent verdicts having turned, permuting within sentinels. Exact.

    `baseline` (sentinels, sittings), `recent` (sentinels, sittings): 1, 0 or NaN, as in `Sittings`.
    """
    before, now = (np.isfinite(sittings).sum(axis=1) for sittings in (baseline, recent))
    of_before, of_now = (np.nansum(sittings, axis=1).astype(np.int64) for sittings in (baseline, recent))
    return float(turned_ps(of_before[None], of_now[None], before + now, now)[0])


def turned_ps(before: Ints, now: Ints, judged: Ints, recent: Ints) -> Floats:
    """p of the test of changed verdicts, for several histories at once: (histories,). Exact.

    `before`, `now` (histories, sentinels): how many verdicts of the baseline and of the recent checks differ from the
    licence's. `judged`, `recent` (sentinels,): of how many verdicts, both together, and recent ones.

    The statistic is the sum over sentinels of log(1 − π + π L), `turned_scores`; its distribution is the convolution of
    the sentinels' own, as the product of their Fourier transforms. p = P(at least the observed sum), exact but for
    rounding: not under `ROUNDED`.
    """
    changed = before + now
    sizes = list(zip(judged.tolist(), recent.tolist(), strict=True))
    tables = {size: turned_scores(*size) for size in set(sizes)}
    highest = {size: scores.max(axis=1) for size, (_weights, scores) in tables.items()}
    whole = sum(highest[size][changed[:, place]] for place, size in enumerate(sizes))
    length = 1 << int(np.max(whole, initial=0)).bit_length()
    transforms = {size: np.fft.rfft(_by_score(*tables[size]), length) for size in tables}
    product = np.ones((len(changed), length // 2 + 1), dtype=np.complex128)
    observed = np.zeros(len(changed), dtype=np.int64)
    for place, size in enumerate(sizes):
        product *= transforms[size][changed[:, place]]
        observed += tables[size][1][changed[:, place], now[:, place]]
    chances = np.fft.irfft(product, length)
    tails = np.cumsum(chances[:, ::-1], axis=1)[:, ::-1]
    p: Floats = np.clip(tails[np.arange(len(changed)), observed], ROUNDED, 1.0)
    return p


def _by_score(weights: Floats, scores: Ints) -> Floats:
    """P of each score, for every number of changed verdicts: (judged + 1, scores)."""
    chances = np.zeros((len(weights), int(scores.max()) + 1))
    np.add.at(chances, (np.arange(len(weights))[:, None], scores), weights)
    return chances


@lru_cache(maxsize=256)
def turned_scores(judged: int, recent: int) -> tuple[Floats, Ints]:
    """(P, score) of k changed verdicts among `recent` ones, for every number of changed ones among all `judged`: both
    (judged + 1, recent + 1), scores in steps of 1/`STEPS` nat, from 0 to `MOST` nats.

    P is hypergeometric. The score is the log of the likelihood ratio of a mixture: with the chance `TURNED` the
    sentinel's verdict has turned, from one that differs from the licence's with the chance `SELF_CHANGE` to its
    opposite, or in `TURNED_BACK` of these the other way round, as where the licence's own verdict was the unusual one.
    Against a plain count, it finds turned verdicts among those that the judge changes by itself.
    """
    every = math.comb(judged, recent)
    ks = range(recent + 1)
    weights = np.array(
        [
            [math.comb(changed, k) * math.comb(judged - changed, recent - k) / every for k in ks]
            for changed in range(judged + 1)
        ]
    )
    odds = ((1 - SELF_CHANGE) / SELF_CHANGE) ** (2 * np.arange(recent + 1.0))
    mixed = np.full_like(weights, 1 - TURNED)
    for share, ratio in ((1 - TURNED_BACK, odds), (TURNED_BACK, 1 / odds)):
        mixed += TURNED * share * ratio / (weights * ratio).sum(axis=1, keepdims=True)
    logs = np.log(mixed)
    lowest = np.where(weights > 0, logs, np.inf).min(axis=1, keepdims=True)
    scores = np.where(weights > 0, np.rint(np.minimum(logs - lowest, MOST) * STEPS), 0).astype(np.int64)
    return weights, scores


# --- shifts of numbers: seeded permutations --------------------------------------------------------------------


def shift_ps(baseline: Floats, recent: Floats, level: float, seed: int = 0) -> tuple[float, float]:
    """(p of a shift up, p of a shift down) of the recent values, permuting within sentinels.

    `baseline`, `recent` (sentinels, sittings): numbers or NaN. The statistic is the sum over recent values of their
    distance from their sentinel's mean of all. N ≥ 10 / level permutations are drawn, `(1 + hits) / (1 + N)`; drawing
    stops as soon as both lie above the level for certain, 1 + hits > level (1 + N), and the p of so far is returned
    (Besag and Clifford, Biometrika 78(2), 1991).
    """
    sums, observed = _arrangements(baseline, recent)
    if not sums:
        return 1.0, 1.0
    draws = math.ceil(10 / level)
    enough = level * (1 + draws)
    close = CLOSE * max(1.0, max(float(np.abs(each).max()) for each in sums))
    rng = np.random.default_rng(seed)
    up = down = drawn = 0
    size = FIRST_DRAWS
    while drawn < draws and (1 + up <= enough or 1 + down <= enough):
        size = min(size, draws - drawn)
        totals = np.zeros(size)
        for each in sums:
            totals += each[rng.integers(each.size, size=size)]
        up += int((totals >= observed - close).sum())
        down += int((totals <= observed + close).sum())
        drawn, size = drawn + size, min(MOST_DRAWS_AT_ONCE, 2 * size)
    return (1 + up) / (1 + drawn), (1 + down) / (1 + drawn)


def _arrangements(baseline: Floats, recent: Floats) -> tuple[list[Floats], float]:
    """For each sentinel with values of both: the statistic's part under every arrangement; and the observed sum."""
    sums, observed = [], 0.0
    for before, now in zip(baseline, recent, strict=True):
        now = now[np.isfinite(now)]
        values = np.concatenate([now, before[np.isfinite(before)]])
        if 0 < now.size < values.size:
            values = values - values.mean()
            sums.append(values[subsets(values.size, now.size)].sum(axis=1))
            observed += float(values[: now.size].sum())
    return sums, observed


# --- what a watch can see --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sight:
    """What a watch of so many `sentinels` can see: `turned` more verdicts are found within `TOGETHER` checks with the
    chance `sensitivity` (0…1); `by_itself`: how many verdicts of a sitting the judge changes by itself."""

    sentinels: int
    by_itself: int
    turned: int
    sensitivity: float


def sight(
    baseline: Sittings, checks: int, turned: int | None = None, histories: int = 200, seed: int = 0
) -> Sight:
    """What the watch sees from the check after `checks` on, simulated: `turned` sentinels (None: 15 of 100) give
    another verdict from then on.

    Each sentinel's verdicts differ from the usual one as often as in the baseline, drawn anew for every history (with
    half a changed and half an unchanged verdict more, so that five equal ones do not mean never). Only the tests of
    changed verdicts are simulated; those of shifts find more. A share of all histories is given as half a history less,
    since a simulation does not show that nothing is missed.
    """
    rng = np.random.default_rng(seed)
    changed = np.nansum(baseline.changed, axis=1)
    judged = np.isfinite(baseline.changed).sum(axis=1)
    usual = float(changed.sum() / max(1, judged.sum()))
    rates = (changed + 2 * usual) / np.maximum(judged + 2, 1)
    sentinels = rates.size
    turned = round(0.15 * sentinels) if turned is None else turned
    by_itself = round(usual * sentinels)
    detected = _found(rates, turned, checks, histories, 1 if baseline.values is None else 3, rng)
    return Sight(sentinels, by_itself, turned, min(float(detected.mean()), 1 - 0.5 / histories))


def _found(
    rates: Floats, turned: int, checks: int, histories: int, kinds: int, rng: np.random.Generator
) -> Bools:
    """In which of the histories the change is found: (histories,)."""
    shape = (histories, rates.size)
    before = rng.binomial(BASELINE, np.broadcast_to(rates, shape))
    turns = np.argsort(rng.random(shape), axis=1) < turned
    rates_after = np.where(turns, 1 - rates, rates)
    verdicts = rng.random((TOGETHER, *shape)) < rates_after
    unchanged = rng.random((TOGETHER, *shape)) < rates  # checks before the change, those that there are
    detected = np.zeros(histories, dtype=bool)
    for after in range(1, TOGETHER + 1):
        number = checks + after
        together, earlier = min(TOGETHER, number), earlier_checks(number)
        tests = [(1, 0), (together, 0)] if together > 1 else [(1, 0)]
        tests += [(together, earlier)] if earlier else []
        level = level_of(number) / (2 * kinds + (earlier > 0) if together > 1 else kinds)
        for window, further in tests:
            left, of_change = np.flatnonzero(~detected), min(window, after)
            now = verdicts[after - of_change : after].sum(axis=0) + unchanged[: window - of_change].sum(
                axis=0
            )
            reference = before + rng.binomial(further, np.broadcast_to(rates, shape))
            recent = np.full(rates.size, window)
            judged = BASELINE + further + recent
            detected[left] = turned_ps(reference[left], now[left], judged, recent) <= level
    return detected
