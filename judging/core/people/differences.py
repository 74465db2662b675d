"""How much raters differ on an item: what an adjudicator should see first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from judging.core.people.criteria import BOTH_BAD, STEPS, Criterion
from judging.core.values import Value

_HARDLY = 0.1  # "both bad" beside "the same": no other preference, but another verdict


def difference(criteria: Mapping[int, Criterion], said: Sequence[Mapping[int, Value]]) -> float:
    """0 where all verdicts on an item are the same, 1 where they could not be further apart; of several criteria the
    one on which raters differ most. Free texts do not count."""
    apart = [
        _apart(one, [values[number] for values in said if number in values])
        for number, one in criteria.items()
        if one.scale != "text"
    ]
    return max(apart, default=0.0)


def _apart(criterion: Criterion, values: Sequence[Value]) -> float:
    if len(values) < 2 or len(set(values)) == 1:
        return 0.0
    if criterion.scale in ("five", "ten"):
        numbers = [float(value) for value in values if not isinstance(value, str)]
        return (max(numbers) - min(numbers)) / (len(criterion.choices) - 1)
    if criterion.compares:
        steps = [2 if value == BOTH_BAD else STEPS.index(str(value)) for value in values]
        widest = 4 if criterion.scale == "steps" else 2
        return max(_HARDLY, (max(steps) - min(steps)) / widest)
    most = Counter(values).most_common(1)[0][1]
    return 1.0 - (most - 1) / (len(values) - 1)
