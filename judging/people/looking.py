"""What a rater may know of an evaluation: its criteria, the own progress, the own earlier items."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Q, Sum

from evalsite.accounts.models import User
from judging.core.people.criteria import Criterion
from judging.people.models import Assignment, AssignmentState, Evaluation, EvaluationRater, Item

_PACE_OVER = 20
"""The last so many verdicts tell the pace."""


def criteria_of(evaluation: Evaluation) -> dict[int, Criterion]:
    """The criteria by their numbers, from 0."""
    metrics = evaluation.run.metrics.order_by("number").values_list("number", "definition")
    return {number: Criterion.from_json(text) for number, text in metrics}


def mine(
    *, evaluation: Evaluation, user: User, before: int | None = None, limit: int = 20
) -> tuple[list[Assignment], int | None]:
    """A rater's earlier items (rated or skipped), newest first, and the `before` of the next page (None: no more)."""
    handled = (AssignmentState.GIVEN, AssignmentState.SKIPPED)
    found = Assignment.objects.filter(rater__evaluation=evaluation, rater__user=user, state__in=handled)
    if before is not None:
        found = found.filter(place__lt=before)
    parts = ("item__row", "item__response", "item__other_response", "rating", "rater")
    page = list(found.select_related(*parts).order_by("-place")[: limit + 1])
    return page[:limit], page[limit - 1].place if len(page) > limit else None


@dataclass(frozen=True, slots=True)
class Progress:
    """A rater's own way through: items done, skipped and left for this rater; `seconds_each` of active time of late.

    `all_given` of `all_needed`: verdicts of everybody.
    """

    done: int
    skipped: int
    left: int
    seconds_each: float | None
    all_given: int
    all_needed: int

    @property
    def total(self) -> int:
        return self.done + self.left

    @property
    def seconds_left(self) -> float | None:
        return None if self.seconds_each is None else self.seconds_each * self.left


def progress(*, evaluation: Evaluation, user: User) -> Progress:
    """How far a rater is. What is left is the most that may come: others may take of it."""
    rater = EvaluationRater.objects.filter(evaluation=evaluation, user=user).first()
    whole = Item.objects.filter(evaluation=evaluation, needed__gt=0).aggregate(
        given=Sum("given"), needed=Sum("needed"), open=Count("pk", filter=Q(free__gt=0))
    )
    given, needed = whole["given"] or 0, whole["needed"] or 0
    if rater is None:
        return Progress(0, 0, 0, None, given, needed)
    own = Assignment.objects.filter(rater=rater)
    counted = own.aggregate(**{state: Count("pk", filter=Q(state=state)) for state in AssignmentState.values})
    left = counted["leased"] + whole["open"] - seen_open(rater) + _repeats_to_come(rater)
    return Progress(counted["given"], counted["skipped"], left, pace(rater), given, needed)


def seen_open(rater: EvaluationRater) -> int:
    """Items with a free seat that are not for this rater any more; counted from the own ones, which are few."""
    own = Assignment.objects.filter(rater=rater, item__free__gt=0)
    return own.exclude(state=AssignmentState.RELEASED).count()


def _repeats_to_come(rater: EvaluationRater) -> int:
    own = Assignment.objects.filter(rater=rater)
    given = own.filter(state=AssignmentState.GIVEN, item__repeats__isnull=False)
    had = own.filter(item__repeat_of__isnull=False).exclude(state=AssignmentState.RELEASED)
    return max(0, given.count() - had.count())


def pace(rater: EvaluationRater) -> float | None:
    """Mean seconds of active time of the last verdicts; None before the first."""
    given = Assignment.objects.filter(rater=rater, state=AssignmentState.GIVEN, seconds__gt=0)
    times = list(given.order_by("-place").values_list("seconds", flat=True)[:_PACE_OVER])
    return sum(times) / len(times) if times else None
