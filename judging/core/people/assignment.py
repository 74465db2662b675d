"""Who gets what next. Pure and seeded: the same state and seed give the same items."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

AHEAD_SECONDS = 600  # of rating without a connection that the items on a page are to last for
FEWEST_AHEAD, MOST_AHEAD = 10, 30
REPEAT_GAP = 10  # verdicts between an item and its silent repeat, so that one does not remember


@dataclass(frozen=True, slots=True)
class Open:
    """An item that a rater may have: `rank` is its place in the evaluation's drawn order, `free` its free seats."""

    pk: int
    rank: int
    free: int


@dataclass(frozen=True, slots=True)
class Twin:
    """A silent repeat: how many verdicts ago its rater gave the original's."""

    pk: int
    ago: int


@dataclass(frozen=True, slots=True)
class Shares:
    """Which share of a rater's items are gold, and which are silent repeats; each 0…1."""

    gold: float = 0.0
    repeats: float = 0.0


def most_held(seconds_each: float | None, share: int) -> int:
    """How many items a rater may hold: some ten minutes at the own pace, but no more than a fair share of the rest.
    At least one, so that gold and repeats come at the end too."""
    wanted = round(AHEAD_SECONDS / seconds_each) if seconds_each else FEWEST_AHEAD
    return max(1, min(share, max(FEWEST_AHEAD, min(wanted, MOST_AHEAD))))


def fair_share(left: int, mine: int, others: Sequence[int]) -> int:
    """What of the `left` ratings falls to a rater who could give `mine`; `others`: how many each of the others could.

    Who could give less than an equal share leaves the rest of it to the others.
    """
    raters = 1 + len(others)
    for could in sorted(others):
        if could * raters >= left:
            break
        left, raters = left - could, raters - 1
    return min(mine, -(-left // raters))


def starting_rank(seed: int, rater: int, items: int) -> int:
    """Where in the drawn order a rater starts, so that two who start together do not walk side by side."""
    return random.Random(f"start:{seed}:{rater}").randrange(items) if items else 0


def in_order(found: Sequence[Open], order: str, start: int) -> list[Open]:
    """Open items as a rater gets them: from the starting rank on and round; by need those that lack most first."""

    def key(one: Open) -> tuple[int, bool, int]:
        return (-one.free if order == "need" else 0, one.rank < start, one.rank)

    return sorted(found, key=key)


def mixed(
    usual: Sequence[int],
    gold: Sequence[int],
    twins: Sequence[Twin],
    *,
    count: int,
    place: int,
    shares: Shares,
    seed: int,
    rater: int,
) -> list[int]:
    """The next `count` items of a rater who has had `place` so far; each list is in the order of giving.

    Gold and repeats come at places drawn by the seed, so that their place does not reveal them. Gold is given only
    among usual items; repeats that are left when those have run out are given at the end.
    """
    normal, known, again = list(usual), list(gold), [twin.pk for twin in twins if twin.ago >= REPEAT_GAP]
    chosen: list[int] = []
    while len(chosen) < count and normal:
        drawn = _drawn(seed, rater, place + len(chosen))
        if known and drawn < shares.gold:
            chosen.append(known.pop(0))
        elif again and drawn > 1 - shares.repeats:
            chosen.append(again.pop(0))
        else:
            chosen.append(normal.pop(0))
    left = [twin.pk for twin in sorted(twins, key=lambda twin: -twin.ago) if twin.pk not in chosen]
    return chosen + left[: count - len(chosen)]


def gold_to_come(usual: int, gold: int, *, share: float, place: int, seed: int, rater: int) -> int:
    """How many of `gold` items `mixed` puts among the next `usual` ones, so that a rater's total can count them from
    the start: a total that grows would give them away."""
    come = 0
    while share and usual > 0 and come < gold:
        if _drawn(seed, rater, place) < share:
            come += 1
        else:
            usual -= 1
        place += 1
    return come


def _drawn(seed: int, rater: int, place: int) -> float:
    return random.Random(f"mix:{seed}:{rater}:{place}").random()
