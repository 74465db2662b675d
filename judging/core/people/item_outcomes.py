"""What the ratings of one item under one criterion come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from datasets.core.kinds import BOTH_BAD, COMPARISON_CODES, SCORE, SPANS
from judging.core.people.criteria import Criterion
from judging.core.people.ranking import pairs_of
from judging.core.values import Value

ItemKind = Literal["agreed", "equal", "split", "near", "single"]
KINDS: tuple[ItemKind, ...] = ("agreed", "equal", "split", "near", "single")


def kind_of_item(criterion: Criterion, values: Sequence[Value]) -> ItemKind:
    """`agreed`: all ratings give one value, or scores within one step; `equal`: the agreed value is a tie; `split`: two
    raters contradict (other side of a pair, other label, pass against fail, scores two or more steps apart); `near`:
    neither; `single`: one rating. `values`: at least one, canonical, of spans their sums, in which a step is 1."""
    if len(values) == 1:
        return "single"
    if criterion.ranks:
        return _kind_of_rankings([str(value) for value in values])
    if criterion.compares:
        return _kind_of_comparison([str(value) for value in values])
    if criterion.gives in (SCORE, SPANS):
        numbers = [float(value) for value in values if not isinstance(value, str)]
        return "agreed" if max(numbers) - min(numbers) <= criterion.step else "split"
    return "agreed" if len(set(values)) == 1 else "split"


def _kind_of_comparison(labels: Sequence[str]) -> ItemKind:
    sides = set(map(_side, labels))
    if {-1, 1} <= sides:
        return "split"
    if len(set(labels)) > 1:
        return "near"
    return "equal" if sides == {0} else "agreed"


def _kind_of_rankings(rankings: Sequence[str]) -> ItemKind:
    """`split` where two raters put one pair the other way round, `equal` where all tie everything."""
    sides = [[_side(better) for *_, better in pairs_of(ranking)] for ranking in rankings]
    if any({-1, 1} <= set(pair) for pair in zip(*sides, strict=True)):
        return "split"
    if len(set(rankings)) > 1:
        return "near"
    return "agreed" if any(sides[0]) else "equal"


def _side(label: str) -> int:
    """1 if A is better, −1 if B is, 0 for a tie."""
    place = 2 if label == BOTH_BAD else COMPARISON_CODES.index(label)
    return (place < 2) - (place > 2)


def without_majority(labels: Sequence[str]) -> bool:
    """Whether no direction has more than half of an item's comparisons: it counts as a tie without being one."""
    most = Counter(map(_side, labels)).most_common(1)[0][1]
    return 2 * most <= len(labels)


def undecided_pairs(criterion: Criterion, values: Sequence[Value]) -> list[tuple[int, int]]:
    """The pairs of an item's answers, by their positions, in whose comparisons no direction has a majority."""
    if criterion.ranks:
        rankings = zip(*(pairs_of(str(value)) for value in values), strict=True)
        by_pair = [(pair[0][:2], [better for *_, better in pair]) for pair in rankings]
        return [pair for pair, labels in by_pair if without_majority(labels)]
    return [(0, 1)] if without_majority([str(value) for value in values]) else []
