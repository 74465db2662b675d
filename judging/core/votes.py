"""How the votes of several judges, or repeats of one, come to one value."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, median
from typing import Literal

from judging.core.results import Verdict
from judging.core.values import Outcome, Value, mean_of, outcome_of_value

Jury = Literal["mean", "median", "majority"]
JURIES: tuple[Jury, ...] = ("mean", "median", "majority")

QUORUM = "quorum"  # reason: fewer votes could be read than the metric wants
TIED = "jury_tied"  # reason: no value has more votes than every other


def combine_votes(votes: Sequence[Value], how: Jury) -> Outcome:
    """At least one vote. A single one stands exactly as it was given.

    `median`: of an even number the mean of the two in the middle. `majority`: the value with more votes than any
    other, be it less than half of them; where two lead, there is none: drawing lots or taking the mean would make up
    a verdict that nobody gave.
    """
    if len(votes) == 1:
        return outcome_of_value(votes[0])
    if how == "majority":
        return _majority(votes)
    if how == "median":
        numbers = [float(vote) for vote in votes if not isinstance(vote, str)]
        return outcome_of_value(median(numbers) if numbers else votes[0])
    return outcome_of_value(mean_of(list(votes)))


def _majority(votes: Sequence[Value]) -> Outcome:
    counts: dict[tuple[bool, Value], int] = {}
    for vote in votes:  # True is no 1 here
        counts[isinstance(vote, bool), vote] = counts.get((isinstance(vote, bool), vote), 0) + 1
    most = max(counts.values())
    leading = [vote for (_, vote), count in counts.items() if count == most]
    return outcome_of_value(leading[0]) if len(leading) == 1 else Outcome.unparsed(TIED)


def judge_spread(verdicts: Sequence[Verdict]) -> float | None:
    """How far apart a metric's judges are: the largest difference of their means, yes as 1 and no as 0; of texts 1
    where they differ, else 0. None where fewer than two judges gave a value."""
    both = {(one.judge, one.repeat) for one in verdicts if one.order == "both"}
    said: dict[int, list[Value]] = {}
    for one in verdicts:
        if one.value is not None and (one.order == "both" or (one.judge, one.repeat) not in both):
            said.setdefault(one.judge, []).append(one.value)
    if len(said) < 2:
        return None
    if any(isinstance(value, str) for values in said.values() for value in values):
        return float(len({frozenset(map(str, values)) for values in said.values()}) > 1)
    means = [mean(float(value) for value in values) for values in said.values()]
    return max(means) - min(means)
