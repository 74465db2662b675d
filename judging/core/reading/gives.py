"""What a judge gives, and a value that a reply states."""

from __future__ import annotations

from dataclasses import dataclass

from datasets.core.kinds import BOTH_BAD, COMPARISON_CODES, THREE_STEPS

ReadValue = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Gives:
    """What is read: a kind that `datasets.core.kinds` reads, the metric's name, and what the kind needs.

    Scores: the scale, whether only whole numbers fit, and the step from `min_score` (0: any). Categories: the labels.
    Comparisons: whether `both_bad` is offered, and the stronger forms count as the plain ones (`three_steps`); those of
    candidates are codes, those with the reference numbers.
    """

    kind: str
    name: str = ""
    min_score: float = 1
    max_score: float = 10
    whole: bool = False
    step: float = 0
    labels: tuple[str, ...] = ()
    both_bad: bool = False
    three_steps: bool = False
    of_candidates: bool = False

    @property
    def comparison_words(self) -> tuple[str, ...]:
        """The verdicts of a comparison as a judge is asked to write them."""
        codes = THREE_STEPS if self.three_steps else COMPARISON_CODES
        return (*codes, *((BOTH_BAD.replace("_", " "),) if self.both_bad else ()))


@dataclass(frozen=True, slots=True)
class Value:
    """A value, or the reason why what stood there (`detail`) does not fit."""

    value: ReadValue | None
    reason: str = ""
    detail: str = ""


def unfit(reason: str, detail: str) -> Value:
    return Value(None, reason, detail.strip()[:100])
