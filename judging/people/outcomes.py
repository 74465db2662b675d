"""The kind of each item's outcome, by criterion: agreed, equal, split, near, single (core/people/item_outcomes.py)."""

from __future__ import annotations

from collections.abc import Collection

from judging.core.people.item_outcomes import ItemKind, kind_of_item
from judging.people.models import SENT_ONLY, Evaluation, Item
from judging.people.progress import rated
from judging.records.seal import sealed_items

Kinds = dict[int, ItemKind]  # criterion number → kind


def item_kinds(evaluation: Evaluation, items: Collection[int] | None = None) -> dict[int, Kinds]:
    """{item: kinds} of the ordinary items that have ratings; with `items` only of these.

    Criteria of free text have no kind, items of a sealed test are left out.
    """
    criteria = {
        number: criterion for number, criterion in evaluation.criteria.items() if criterion.scale != "text"
    }
    sealed = Item.objects.filter(evaluation=evaluation, row__in=sealed_items(evaluation.run))
    hidden = set(sealed.values_list("pk", flat=True))
    kinds: dict[int, Kinds] = {}
    for item, by_rater in rated(evaluation, items).items():
        if item in hidden:
            continue
        values = {
            number: [values[number] for values in by_rater.values() if number in values]
            for number in criteria
        }
        kinds[item] = {
            number: kind_of_item(criteria[number], said) for number, said in values.items() if said
        }
    return kinds


def items_of_kind(evaluation: Evaluation, kind: str) -> list[int]:
    """Ids of the items whose outcome is of this kind under at least one criterion, as results count them: without
    those that a rule sent and no draw drew."""
    sent = set(Item.objects.filter(SENT_ONLY, evaluation=evaluation).values_list("pk", flat=True))
    kinds_of = item_kinds(evaluation)
    return [item for item, kinds in kinds_of.items() if kind in kinds.values() and item not in sent]
