"""Error analysis: when a look has probably seen the kinds of failures, and how large a group is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from .intervals import Interval, wilson
from .numeric import Bools, Floats

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


def group_share(members: Bools, weights: Floats | Sequence[float] | None = None) -> tuple[float, Interval]:
    """The share of a group among all answers that were looked at, with Wilson's interval over rows.

    `members` (rows,); `weights` (rows,): 1/probability of the draw, None for an even draw. Of a weighted draw,
    n = 1/Σw² with the weights normed to a sum of one. Source: Kish, Survey Sampling, 1965, for the effective number.
    """
    if not members.size:
        return 0.0, (None, None)
    w = np.ones(members.size) if weights is None else np.asarray(weights, dtype=np.float64)
    w = w / w.sum()
    share = min(1.0, float(w @ members))
    return share, wilson(share, 1 / float(w @ w))
