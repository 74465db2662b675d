"""How much ratings shift with a new guideline: the same raters rate the same items again under the new version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from datasets.core.kinds import FREE_TEXT, PASS_FAIL, SCORE
from judging.core.people.criteria import Criterion
from judging.core.statistics.means import NO_ESTIMATE, Estimate, estimate_difference, estimate_mean
from judging.core.statistics.numeric import Floats, Ints
from judging.core.values import Value

MOST_REPEATS = 10  # own items that each rater gets again
_KINDS_WITH_A_MEAN = (SCORE, PASS_FAIL)


@dataclass(frozen=True, slots=True)
class RatedAgain:
    """A rater's canonical values of an item of row `row` before and after the change."""

    row: int
    before: Value
    after: Value


@dataclass(frozen=True, slots=True)
class Shift:
    """`is_mean`: `estimate` is the mean of after − before, in the units of the scale (PASS/FAIL: −1…1); otherwise it is
    the share of values that changed, 0…1."""

    is_mean: bool
    estimate: Estimate


def guideline_shift(criterion: Criterion, pairs: Sequence[RatedAgain]) -> Shift:
    """The shift with its 95 % interval by rows: `means.estimate_difference` for scores and PASS/FAIL, otherwise
    `means.estimate_mean` of changed or not. Without pairs, and for free text, the estimate is empty.

    Raters are not perfectly consistent: a share of changed values holds what they would change without a new guideline
    too; a mean doesn't.
    """
    is_mean = criterion.gives in _KINDS_WITH_A_MEAN
    if not pairs or criterion.gives == FREE_TEXT:
        return Shift(is_mean, NO_ESTIMATE)
    rows: Ints = np.array([pair.row for pair in pairs], dtype=np.int64)
    if not is_mean:
        changed: Floats = np.array([float(pair.before != pair.after) for pair in pairs])
        return Shift(False, estimate_mean(changed, rows, (0.0, 1.0)))
    differences: Floats = np.array([float(pair.after) - float(pair.before) for pair in pairs])
    choices = [float(choice) for choice in criterion.choices if not isinstance(choice, str)]
    return Shift(True, estimate_difference(differences, rows, max(choices) - min(choices)))
