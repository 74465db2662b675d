"""Error analysis: when a look has probably seen the kinds of failures, and how large a group is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from .intervals import Interval, wilson
from .means import rate_of
from .numeric import Bools, Floats, Ints

QUIET_FAILURES = 10
"""Failing answers in a row without a new kind after which a look may end."""


def quiet_failures(answers: Iterable[tuple[bool, bool]]) -> int:
    """How many failing answers in a row, at the end, brought no new kind of failure.

    `answers`: (passes, is a new kind) in the order in which they were looked at; passing answers do not count.
    """
    count = 0
    for passes, new_kind in answers:
        if not passes:
            count = 0 if new_kind else count + 1
    return count


def unseen_share(quiet: int) -> float:
    """The share of failures (0…1) of which kinds not seen yet are probably less: `1 − 0.05^(1/n)` after n quiet ones.

    With a larger share, n failures in a row without a new kind would occur in fewer than 5 of 100 looks.
    """
    return 1 - 0.05 ** (1 / quiet) if quiet else 1.0


def group_share(
    members: Bools, weights: Floats | Sequence[float] | None = None, rows: Ints | None = None
) -> tuple[float, Interval]:
    """The share of a group among all answers that were looked at, with Wilson's interval over rows.

    `members` (answers,); `weights` (answers,): 1/probability of the draw, None for an even draw; `rows` (answers,):
    the answers' rows, None if each has its own. An even draw has the effective number by rows (`means.rate_of`). Of a
    weighted draw, n = 1/Σw² with the weights, summed within a row, normed to a sum of one: answers to a row are taken
    to agree as far as possible. Source: Kish, Survey Sampling, 1965, for the effective number.
    """
    if not members.size:
        return 0.0, (None, None)
    if weights is None and rows is not None:
        even = rate_of(members.astype(np.float64), rows)
        return even.rate or 0.0, (even.low, even.high)
    w = np.ones(members.size) if weights is None else np.asarray(weights, dtype=np.float64)
    w = w / w.sum()
    share = min(1.0, float(w @ members))
    by_row = w if rows is None else np.bincount(np.unique(rows, return_inverse=True)[1], weights=w)
    return share, wilson(share, 1 / float(by_row @ by_row))
