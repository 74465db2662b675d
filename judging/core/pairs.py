"""Verdicts of judge models on two candidates' answers: both orders and several votes combined.

Verdicts are codes such as `A>B`, in which A is `JudgedItem.response` and B is `JudgedItem.other`.
"""

from __future__ import annotations

from collections.abc import Sequence

from datasets.core.kinds import BOTH_BAD, COMPARISON_CODES, TIE
from judging.core.reading.reasons import NO_MAJORITY
from judging.core.values import SCORED, Outcome

ORDERS_DISAGREE = "orders_disagree"  # reason: the judge's verdicts in the two orders name different sides

_TIE = COMPARISON_CODES.index(TIE)


def strength_of(verdict: str) -> int:
    """From −2 (A is much better) to 2 (B is much better); 0 is a tie."""
    return 0 if verdict == BOTH_BAD else COMPARISON_CODES.index(verdict) - _TIE


def share_of_a(verdict: str | None) -> float:
    """What a verdict counts for A in a win rate: 1, 0 if B is better, half for a tie and where nothing is settled."""
    return 0.5 - _side(verdict) / 2 if verdict else 0.5


def settled_verdict(first: str, swapped: str) -> str | None:
    """The verdict of both orders, the weaker strength if they name the same side; None if they disagree.

    `swapped` is converted to the first order.
    """
    strengths = strength_of(first), strength_of(swapped)
    if strengths == (0, 0):
        return first if first == swapped else COMPARISON_CODES[_TIE]
    if min(strengths) > 0 or max(strengths) < 0:
        return COMPARISON_CODES[_TIE + min(strengths, key=abs)]
    return None


def combine_settled(votes: Sequence[str]) -> Outcome:
    """The outcome of settled votes: the side with more than half of them, with the weaker of the middle strengths."""
    for side in (-1, 0, 1):
        agreeing = [vote for vote in votes if _side(vote) == side]
        if 2 * len(agreeing) > len(votes):
            by_strength = sorted(agreeing, key=lambda vote: (abs(strength_of(vote)), vote == BOTH_BAD))
            return Outcome(SCORED, by_strength[(len(by_strength) - 1) // 2])
    return Outcome.unsettled(NO_MAJORITY)


def _side(verdict: str) -> int:
    strength = strength_of(verdict)
    return (strength > 0) - (strength < 0)
