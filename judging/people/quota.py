"""At most so many items a rater, and what raters are told of it.

With a quota, `Evaluation.share` is what a rater gets at most: an equal part of all ratings (core/people/promise.py),
at most the quota. `EvaluationRater.promised` is the lowest number that a rater was told, or one that they agreed to;
they get no more. A share above it is shown to them, and they may go on or stop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from statistics import median

from django.db.models import Count, F, Q, QuerySet, Sum

from evalsite.accounts.models import User
from judging.core.people.promise import Work, gold_each, items_each, raised
from judging.core.statistics.licence import UNMEASURED_SECONDS
from judging.people.models import Assignment, AssignmentState, Evaluation, EvaluationRater, Item
from judging.people.qualification.models import Qualification
from judging.people.qualification.selectors import gold_in_use

DONE = (AssignmentState.RATED, AssignmentState.SKIPPED)
_FEWEST_FOR_PACE, _PACE_OVER = 10, 200


def share_of(evaluation: Evaluation, *, joining: int = 0) -> int:
    """What each rater gets at most, computed now; `joining`: further raters."""
    usual = Item.objects.filter(evaluation=evaluation, needed__gt=0)
    sums = usual.aggregate(seats=Sum("needed", default=0), items=Count("pk"), free=Sum("free", default=0))
    active = list(active_raters([evaluation.pk]).values_list("pk", flat=True))
    seated = Assignment.objects.filter(evaluation=evaluation, item__needed__gt=0, extra=False)
    gone = seated.counted().exclude(rater__in=active).count()
    seats = sums["seats"] - gone
    work = _work(evaluation, seats, len(active) + joining, sums["items"])
    each = items_each(work, evaluation.quota)
    if evaluation.quota is None:
        return each
    done = _done(active)
    left = sums["free"] + seated.filter(state=AssignmentState.LEASED).count()
    rooms = [max(0, each - done[pk]) for pk in active] + [each] * joining
    return raised(each, left=left, rooms=rooms, most=items_each(replace(work, raters=1), evaluation.quota))


@dataclass(frozen=True, slots=True)
class GoldSupply:
    """The gold items that each rater `needs` for the study's share, and how many `there` are beside training and
    qualification; without more, raters get no gold at the end of their work."""

    needed: int
    there: int


def gold_supply(evaluation: Evaluation) -> GoldSupply | None:
    """None: no gold is mixed in."""
    if not evaluation.gold_share:
        return None
    usual = Item.objects.filter(evaluation=evaluation, needed__gt=0)
    sums = usual.aggregate(seats=Sum("needed", default=0), items=Count("pk"))
    raters = max(evaluation.overlap, active_raters([evaluation.pk]).count())
    needed = gold_each(_work(evaluation, sums["seats"], raters, sums["items"]), evaluation.quota)
    settings = Qualification.objects.filter(evaluation=evaluation).first()
    there = gold_in_use(evaluation).filter(training=None).count() - (settings.items if settings else 0)
    return GoldSupply(needed, max(0, there))


def uncovered(evaluation: Evaluation, left: int) -> int:
    """How many of the `left` ratings no rater will give within what each was told; 0 without a quota."""
    rooms = rooms_of([evaluation])
    return max(0, left - rooms[evaluation.pk]) if evaluation.pk in rooms else 0


def most_items(evaluation: Evaluation) -> int:
    """What somebody who joins now gets at most: their share, or without a quota all items."""
    if evaluation.quota is not None:
        return share_of(evaluation, joining=1)
    usual = Item.objects.filter(evaluation=evaluation, free__gt=0).count()
    return items_each(_work(evaluation, usual, 1, usual))


def _work(evaluation: Evaluation, seats: int, raters: int, items: int) -> Work:
    extra = Item.objects.filter(evaluation=evaluation, needed=0, gold_removed=False)
    return Work(
        seats=max(0, seats),
        raters=raters,
        items=items,
        gold=extra.filter(repeat_of=None).count() if evaluation.gold_share else 0,
        gold_share=evaluation.gold_share,
        repeats=extra.exclude(repeat_of=None).count() if evaluation.repeat_share else 0,
        repeat_share=evaluation.repeat_share,
    )


def active_raters(evaluations: Collection[int]) -> QuerySet[EvaluationRater]:
    """Those who can rate now, in a pilot or not."""
    return EvaluationRater.objects.filter(
        evaluation__in=evaluations, left_at=None, paused_at=None, set_aside_at=None
    )


def _done(raters: Collection[int | EvaluationRater]) -> Counter[int]:
    """{rater: items rated or skipped, after training and qualification}."""
    own = Assignment.objects.filter(rater__in=raters, state__in=DONE, entry=None).order_by()
    return Counter(dict(own.values_list("rater").annotate(items=Count("pk"))))


def promises_store(evaluation: Evaluation) -> None:
    """Store the share, and lower the number of raters who were told more. Call it with the evaluation locked, where
    raters, items or the quota change; nobody is told of a draft."""
    share = None if evaluation.quota is None else share_of(evaluation)
    if share != evaluation.share:
        evaluation.share = share
        Evaluation.objects.filter(pk=evaluation.pk).update(share=share)
    raters = EvaluationRater.objects.filter(evaluation=evaluation)
    if share is None:
        raters.exclude(promised=None).update(promised=None)
    elif evaluation.state != "draft":
        raters.filter(Q(promised=None) | Q(promised__gt=share), left_at=None).update(promised=share)


def limit_of(evaluation: Evaluation, rater: EvaluationRater) -> int | None:
    """How many items the rater gets at most; None: no limit."""
    if evaluation.quota is None or evaluation.share is None:
        return evaluation.quota
    return evaluation.share if rater.promised is None else min(evaluation.share, rater.promised)


def room(evaluation: Evaluation, rater: EvaluationRater) -> int | None:
    """How many items the rater may hold within their number; None: any. Call it with the evaluation locked."""
    limit = limit_of(evaluation, rater)
    if limit is None:
        return None
    done = done_by(rater)
    if done >= limit and Item.objects.filter(evaluation=evaluation, free__gt=0).exists():
        promises_store(evaluation)  # others may have skipped items, or left
        limit = limit_of(evaluation, rater) or 0
    return max(0, limit - done)


def done_by(rater: EvaluationRater) -> int:
    """How many items the rater has rated or skipped, after training and qualification."""
    return _done([rater])[rater.pk]


def rooms_of(evaluations: Collection[Evaluation]) -> dict[int, int]:
    """{evaluation: how many items its active raters may still get together}, of those with a quota. Two queries."""
    limited = {evaluation.pk: evaluation for evaluation in evaluations if evaluation.quota is not None}
    active = list(active_raters(limited))
    done = _done(active)
    rooms = dict.fromkeys(limited, 0)
    for rater in active:
        limit = limit_of(limited[rater.evaluation_id], rater) or 0
        rooms[rater.evaluation_id] += max(0, limit - done[rater.pk])
    return rooms


def raised_to(evaluation: Evaluation, rater: EvaluationRater) -> int | None:
    """The number of items that the rater is asked for beyond what they were told; None: no more than that."""
    if evaluation.share is None or rater.promised is None or evaluation.share <= rater.promised:
        return None
    return evaluation.share


def promise_accept(*, evaluation: Evaluation, user: User) -> bool:
    """The rater goes on to the number that is asked for now. False if it was not raised."""
    raters = EvaluationRater.objects.filter(
        evaluation=evaluation, user=user, left_at=None, promised__lt=F("evaluation__share")
    )
    share = Evaluation.objects.filter(pk=evaluation.pk).values("share")
    return bool(raters.update(promised=share))


def seconds_an_item(evaluation: Evaluation) -> float:
    """The median time of the evaluation's last ratings; half a minute until there are ten."""
    rated = Assignment.objects.filter(evaluation=evaluation, state=AssignmentState.RATED, seconds__gt=0)
    times = list(rated.order_by("-rated_at").values_list("seconds", flat=True)[:_PACE_OVER])
    return median(times) if len(times) >= _FEWEST_FOR_PACE else UNMEASURED_SECONDS
