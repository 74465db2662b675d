"""Decides which items a rater gets next. No I/O; the same state and seed give the same items."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

AHEAD_SECONDS = 600  # of offline rating that the items on a page should last for
FEWEST_AHEAD, MOST_AHEAD = 10, 30
REPEAT_GAP = 10  # verdicts between an item and its hidden repeat, so that the rater does not remember it


@dataclass(frozen=True, slots=True)
class Twin:
    """A hidden repeat; `ago`: how many verdicts ago the rater judged the original."""

    pk: int
    ago: int


@dataclass(frozen=True, slots=True)
class Shares:
    """The shares of a rater's items that are gold items and hidden repeats, each 0…1."""

    gold: float = 0.0
    repeats: float = 0.0


def most_held(seconds_each: float | None, share: int) -> int:
    """How many items a rater may hold: about ten minutes' worth, but no more than a fair share of the rest.

    At least one, so that gold items and repeats are still given at the end.
    """
    wanted = round(AHEAD_SECONDS / seconds_each) if seconds_each else FEWEST_AHEAD
    return max(1, min(share, max(FEWEST_AHEAD, min(wanted, MOST_AHEAD))))


def fair_share(left: int, mine: int, others: Sequence[int]) -> int:
    """A rater's share of the `left` ratings, at most `mine`; `others`: how many each other rater could give.

    The unused share of raters who could give less than an equal share is divided among the others.
    """
    raters = 1 + len(others)
    for could in sorted(others):
        if could * raters >= left:
            break
        left, raters = left - could, raters - 1
    return min(mine, -(-left // raters))


def starting_rank(seed: int, rater: int, items: int) -> int:
    """The rank at which a rater starts, so that raters who start together do not get the same items in parallel."""
    return random.Random(f"start:{seed}:{rater}").randrange(items) if items else 0


def mixed(
    usual: Sequence[int],
    gold: Sequence[int],
    twins: Sequence[Twin],
    *,
    count: int,
    place: int,
    gold_had: int,
    shares: Shares,
    seed: int,
    rater: int,
) -> list[int]:
    """The next `count` items of a rater who rated or holds `place` items, `gold_had` of them gold; each list is in the
    order of assignment.

    Gold items come when they are due (`gold_due`) and repeats at positions drawn by the seed, so that their position
    does not reveal them. Gold items are only mixed in among others; repeats left over when usual items have run out
    come at the end.
    """
    normal, gold_left, left = list(usual), list(gold), sorted(twins, key=lambda twin: -twin.ago)
    chosen: list[int] = []
    while len(chosen) < count and (normal or left):
        position = place + len(chosen)
        if gold_left and gold_had < gold_due(position + 1, share=shares.gold, seed=seed, rater=rater):
            chosen.append(gold_left.pop(0))
            gold_had += 1
        elif not normal or (
            left and left[0].ago >= REPEAT_GAP and _drawn("repeat", seed, rater, position) < shares.repeats
        ):
            chosen.append(left.pop(0).pk)
        else:
            chosen.append(normal.pop(0))
    return chosen


def gold_due(items: int, *, share: float, seed: int, rater: int) -> int:
    """How many of a rater's first `items` items are gold: never one away from `share` × items.

    In each stretch of 1/share items one is gold, at a place drawn by the seed.
    """
    whole, part = divmod(items * share, 1)
    return int(whole) + (_drawn("gold", seed, rater, int(whole)) < part)


def gold_to_come(
    others: int, gold: int, *, share: float, place: int, gold_had: int, seed: int, rater: int
) -> int:
    """How many of `gold` items `mixed` puts among the next `others`: usual ones and repeats.

    A rater's total includes them from the start, because a growing total would reveal them.
    """
    come = 0
    while share and others > 0 and come < gold:
        place += 1
        if gold_had + come < gold_due(place, share=share, seed=seed, rater=rater):
            come += 1
        else:
            others -= 1
    return come


@lru_cache(maxsize=16_384)
def _drawn(what: str, seed: int, rater: int, place: int) -> float:
    return random.Random(f"{what}:{seed}:{rater}:{place}").random()
