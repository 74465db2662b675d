"""The pilot of a study: its first items, in the random order in which items are assigned."""

from __future__ import annotations

from judging.people.models import Evaluation, Item


def pilot_bound_store(evaluation: Evaluation, *, begin: bool = False) -> None:
    """Store up to which rank items belong to the pilot; call it after ordinary items have become gold. With `begin`
    also where no pilot runs yet. Call with the evaluation locked."""
    if evaluation.pilot_below is None and not begin:
        return
    size = evaluation.pilot_items
    ranks = Item.objects.filter(evaluation=evaluation, needed__gt=0).order_by("rank")
    last = ranks.values_list("rank", flat=True)[size - 1 : size].first() if size else None
    evaluation.pilot_below = None if last is None else last + 1
    Evaluation.objects.filter(pk=evaluation.pk).update(pilot_below=evaluation.pilot_below)
