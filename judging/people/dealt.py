"""What a rater has been dealt so far. Released items don't count: they are dealt again, or to others."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Max, Q, QuerySet

from judging.people.models import Assignment, AssignmentState, EvaluationRater, Item

DEALT = (AssignmentState.RATED, AssignmentState.LEASED)


@dataclass(frozen=True, slots=True)
class Dealt:
    """How many items a rater rated or holds, how many of them are gold, and the last one's place."""

    items: int
    gold: int
    last_place: int


def dealt_to(rater: EvaluationRater) -> Dealt:
    """Count what a rater rated or holds of the real queue; skipped and reassigned items only have their places."""
    counted = Q(state__in=DEALT, entry=None)
    counts = _kept(rater).aggregate(
        items=Count("pk", filter=counted),
        gold=Count("pk", filter=counted & ~Q(item__gold="")),
        last_place=Max("place", default=0),
    )
    return Dealt(**counts)


def items_dealt(rater: EvaluationRater) -> QuerySet[Assignment, int]:
    """The ids of the items that a rater holds, or will not get again."""
    return _kept(rater).values_list("item", flat=True)


def gold_left(rater: EvaluationRater) -> QuerySet[Item]:
    """The gold items of the real queue that the rater may still get."""
    gold = Item.objects.filter(
        evaluation=rater.evaluation_id, needed=0, repeat_of=None, gold_removed=False, training=None
    )
    return gold.exclude(pk__in=items_dealt(rater))


def _kept(rater: EvaluationRater) -> QuerySet[Assignment]:
    return Assignment.objects.filter(rater=rater).exclude(state=AssignmentState.RELEASED, entry=None)
