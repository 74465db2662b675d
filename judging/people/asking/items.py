"""Items added to an evaluation after it was created, and items that are no longer asked for. Call with the evaluation
locked (`assignments.locked`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, F, Max, Q

from judging.core.people.sampling import first_sides, shuffled
from judging.people.assignments import release, tell_raters
from judging.people.models import Assignment, AssignmentState, Evaluation, EvaluationRater, Item
from judging.people.sampling import Thing
from judging.records.models import Judgement, Run, RunCandidate


@dataclass(frozen=True, slots=True)
class Added:
    """How many items were added, and the responses whose items were there and had been rated."""

    new: int
    rated_before: list[int]


def items_add(
    evaluation: Evaluation, things: Sequence[Thing], *, seed: int, draw: int = 0, by_rule: bool = False
) -> Added:
    """Add an item for each answer, or pair, that has none, in random order after those that are there.

    With `draw`, items that a rule had sent become items of the draw, too: those without a rating are dealt with it,
    the others count with the ratings that they have.
    """
    usual = Item.objects.filter(evaluation=evaluation, gold="", repeat_of=None)
    there = {
        frozenset((item.response_id, item.other_response_id)): item
        for item in usual.filter(row__in={thing.row for thing in things})
    }
    last = Item.objects.filter(evaluation=evaluation).aggregate(number=Max("number"), rank=Max("rank"))
    number, first_rank = last["number"] or 0, -1 if last["rank"] is None else last["rank"]
    new, rated_before = [], []
    sides = first_sides([thing.candidates for thing in things], seed)
    for thing, rank, side in zip(things, shuffled(len(things), seed), sides, strict=True):
        place = first_rank + 1 + rank
        item = there.get(frozenset((thing.response, thing.other)))
        if item is None:
            number += 1
            item = _new_item(evaluation, thing, number, place, draw, by_rule=by_rule)
            item.first_side = side if thing.other else None
            new.append(item)
        elif draw:
            _take_into_draw(evaluation, item, thing, place, draw)
            if item.rated:
                rated_before.append(item.response_id)
    Item.objects.bulk_create(new, batch_size=500)
    _counts_store(evaluation, new)
    if new:
        EvaluationRater.objects.filter(evaluation=evaluation, left_at=None).update(work_told=False)
        tell_raters(evaluation)
    return Added(len(new), rated_before)


def _new_item(
    evaluation: Evaluation, thing: Thing, number: int, rank: int, draw: int, *, by_rule: bool
) -> Item:
    return Item(
        evaluation=evaluation,
        number=number,
        rank=rank,
        row_id=thing.row,
        response_id=thing.response,
        other_response_id=thing.other,
        drawn_with=thing.drawn_with,
        draw=draw,
        sent_by_rule=by_rule,
        needed=evaluation.overlap,
        free=evaluation.overlap,
    )


def _take_into_draw(evaluation: Evaluation, item: Item, thing: Thing, rank: int, draw: int) -> None:
    changes = {"draw": draw, "drawn_with": thing.drawn_with}
    if not item.rated:
        held = Assignment.objects.filter(item=item, state=AssignmentState.LEASED).count()
        seats = {"needed": evaluation.overlap, "free": max(0, evaluation.overlap - held)}
        changes |= {"rank": rank, "gold_removed": False, **seats}
    Item.objects.filter(pk=item.pk).update(**changes)
    Judgement.objects.filter(rating__assignment__item=item).update(drawn_with=thing.drawn_with)


def _counts_store(evaluation: Evaluation, new: Sequence[Item]) -> None:
    """Bring the counts of the evaluation and of its run in line with its items."""
    items = Item.objects.filter(evaluation=evaluation, needed__gt=0)
    evaluation.items_count = items.count()
    evaluation.save(update_fields=["items_count"])
    rows = items.aggregate(rows=Count("row", distinct=True))["rows"]
    more = len(new) * evaluation.overlap * len(evaluation.metrics)
    Run.objects.filter(pk=evaluation.run_id).update(rows=rows, total=F("total") + more)
    added = Item.objects.filter(pk__in=[item.pk for item in new])
    sides = added.values_list("response__candidate", "other_response__candidate")
    candidates = {candidate for pair in sides for candidate in pair if candidate is not None}
    have = set(RunCandidate.objects.filter(run=evaluation.run_id).values_list("candidate", flat=True))
    RunCandidate.objects.bulk_create(
        RunCandidate(run_id=evaluation.run_id, candidate_id=pk) for pk in sorted(candidates - have)
    )


def drawn_items_withdraw(evaluation: Evaluation) -> int:
    """No longer ask for the drawn items that have no rating: those that nobody had are removed, the others are no
    longer dealt. Returns how many."""
    usual = Item.objects.filter(evaluation=evaluation, gold="", repeat_of=None, needed__gt=0, rated=0)
    waiting = usual.filter(drawn_with__isnull=False, for_improving=False)
    count = waiting.count()
    if not count:
        return 0
    release(list(Assignment.objects.filter(item__in=waiting, state=AssignmentState.LEASED)))
    had = Q(assigned__gt=0)
    waiting.filter(had).update(needed=0, free=0, gold_removed=True, drawn_with=None)
    waiting.exclude(had).delete()
    less = count * evaluation.overlap * len(evaluation.metrics)
    Run.objects.filter(pk=evaluation.run_id).update(total=F("total") - less)
    _counts_store(evaluation, [])
    return count
