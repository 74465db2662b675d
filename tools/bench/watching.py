"""How often the watch of a scripted judge raises an alarm, without a change and after one:
`python -m tools.bench.watching`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from judging.core.statistics.numeric import Bools, Floats
from judging.core.statistics.watch import (
    BASELINE,
    TOGETHER,
    CheckResult,
    Sittings,
    check_result,
    earlier_checks,
    level_of,
    turned_ps,
)
from tools.bench import Figure, command_line

HISTORIES = 400
SENTINELS = 60
CHECKS = 50
CHANGES = (1, 11, 41)
SELF_CHANGES = (0.02, 0.1, 0.2)
TURNED = 0.15
NOISES = (0.3, 0.5, 1.0)
LOWEST, HIGHEST = 1, 10
SHIFT = 0.15 * (HIGHEST - LOWEST)

How = Literal["around", "some", "coin"]
"""How a judge changes verdicts by itself. `around`: each verdict, the licence's too, differs from the judge's usual one
equally often. `some`: on some sentinels half of the verdicts differ, on the others none. `coin`: each verdict differs
from the licence's with the same chance, which is as hard as it can be."""


@dataclass(frozen=True, slots=True)
class Scripted:
    """A judge that differs from the licence's verdicts with the chance `self_change`, `how` see above; `turned` of the
    verdicts are the opposite from check `since` on, 0: never. `for_good`: they differ from the licence's each time;
    else the judge changes them by itself as often as before."""

    self_change: float
    how: How = "around"
    since: int = 0
    turned: float = TURNED
    for_good: bool = False


def alarms(judge: Scripted, last: int, first: int = 1, histories: int = HISTORIES, seed: int = 0) -> float:
    """The share of histories with an alarm in the checks `first` to `last`."""
    rng = np.random.default_rng(seed)
    shape = (histories, SENTINELS)
    rates = _rates(judge, rng, histories)
    turns = np.argsort(rng.random(shape), axis=1) < round(judge.turned * SENTINELS)
    before = rng.binomial(BASELINE, rates)
    after = np.where(turns, np.maximum(1 - rates, judge.for_good), rates)
    checks: list[Bools] = []
    found = np.zeros(histories, dtype=bool)
    for number in range(1, last + 1):
        turned = judge.since and number >= judge.since
        checks.append(rng.random(shape) < (after if turned else rates))
        if number < first:
            continue
        together, earlier = min(TOGETHER, number), earlier_checks(number)
        tests = sorted({(1, 0), (together, 0), (together, earlier)})
        for window, further in tests:
            left = np.flatnonzero(~found)
            reference = before[left] + sum(check[left].astype(np.int64) for check in checks[:further])
            now = np.sum(checks[-window:], axis=0)[left]
            size = np.full(SENTINELS, window)
            p = turned_ps(reference, now, BASELINE + further + size, size)
            found[left] = p <= level_of(number) / len(tests)
    return float(found.mean())


def _rates(judge: Scripted, rng: np.random.Generator, histories: int) -> Floats:
    """With which chance a verdict on a sentinel differs from the licence's."""
    shape = (histories, SENTINELS)
    if judge.how == "some":
        return np.where(rng.random(shape) < 2 * judge.self_change, 0.5, 0.0)
    if judge.how == "coin":
        return np.full(shape, judge.self_change)
    unusual = (1 - math.sqrt(1 - 2 * judge.self_change)) / 2
    return np.where(rng.random(shape) < unusual, 1 - unusual, unusual)


def alarms_of_scores(
    noise: float, last: int, first: int = 1, since: int = 0, histories: int = HISTORIES, seed: int = 0
) -> float:
    """The same of a judge of scores from 1 to 10, rounded, with this standard deviation; from check `since` on they are
    higher, or in every second history lower, by 15 % of the scale."""
    found = 0
    for history in range(histories):
        rng = np.random.default_rng([seed, history])
        worth = rng.uniform(3, 8, SENTINELS)
        shift = SHIFT if history % 2 else -SHIFT
        licence, *sittings = (
            _scores(worth + (shift if since and number >= since else 0), noise, rng)
            for number in (0, *[0] * BASELINE, *range(1, last + 1))
        )
        baseline, checks = (_sittings(each, licence) for each in (sittings[:BASELINE], sittings[BASELINE:]))
        found += any(_check(baseline, checks, number, history).alarm for number in range(first, last + 1))
    return found / histories


def _scores(worth: Floats, noise: float, rng: np.random.Generator) -> Floats:
    return np.clip(np.rint(worth + rng.normal(0, noise, worth.size)), LOWEST, HIGHEST)


def _sittings(values: list[Floats], licence: Floats) -> Sittings:
    stacked = np.column_stack(values)
    return Sittings((stacked != licence[:, None]).astype(np.float64), stacked)


def _check(baseline: Sittings, checks: Sittings, number: int, seed: int) -> CheckResult:
    earlier = _until(checks, earlier_checks(number)) if earlier_checks(number) else None
    return check_result(baseline, _until(checks, number), number, seed, earlier)


def _until(checks: Sittings, number: int) -> Sittings:
    assert checks.values is not None
    return Sittings(checks.changed[:, :number], checks.values[:, :number])


def watching_figures(histories: int = HISTORIES) -> Iterator[Figure]:
    detail = f"{histories} histories of {SENTINELS} sentinels"
    for how in ("around", "some", "coin"):
        for share in SELF_CHANGES:
            judge = f"judges that change {share:.0%} by themselves ({how})"
            alarm = 100 * alarms(Scripted(share, how), CHECKS, histories=histories)
            yield Figure.at_most(f"alarms within {CHECKS} checks of unchanged {judge}, %", alarm, 5, detail)
            for since in CHANGES:
                last = since + TOGETHER - 1
                found = 100 * alarms(Scripted(share, how, since), last, since, histories)
                least = least_found(share)
                yield Figure.at_least(f"changes from check {since} found, {judge}, %", found, least, detail)
    for since in CHANGES:
        coin = Scripted(SELF_CHANGES[-1], "coin", since, for_good=True)
        found = 100 * alarms(coin, since + TOGETHER - 1, since, histories)
        judge = f"judges that change {coin.self_change:.0%} by themselves (coin), turned for good"
        yield Figure.at_least(f"changes from check {since} found, {judge}, %", found, 80, detail)
    for noise in NOISES:
        judge = f"judges of scores with noise {noise:g}"
        alarm = 100 * alarms_of_scores(noise, CHECKS, histories=histories)
        yield Figure.at_most(f"alarms within {CHECKS} checks of unchanged {judge}, %", alarm, 5, detail)
        for since in CHANGES:
            found = 100 * alarms_of_scores(noise, since + TOGETHER - 1, since, since, histories)
            yield Figure.at_least(f"shifts from check {since} found, {judge}, %", found, 90, detail)


def least_found(share: float) -> float:
    """In how many of 100 histories a change must be found."""
    return 90 if share < 0.2 else 80


def main() -> None:
    command_line(__doc__).parse_args()
    for figure in watching_figures():
        print(figure, flush=True)


if __name__ == "__main__":
    main()
