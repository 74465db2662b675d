"""The third and later answers of items whose answers are ranked, and hidden repeats, which have the same answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from judging.people.models import FurtherAnswer, Item

_BATCH = 500


def further_add(items: Iterable[tuple[Item, Iterable[int]]]) -> None:
    """Store further answers of stored items: (item, ids of responses in order)."""
    further = (
        FurtherAnswer(item=item, place=place, response_id=response)
        for item, responses in items
        for place, response in enumerate(responses, 3)
    )
    FurtherAnswer.objects.bulk_create(further, batch_size=_BATCH)


def repeats_create(items: Iterable[Item], after: int) -> list[Item]:
    """Store a hidden repeat of each of these items, all of one evaluation, numbered from `after` + 1 on."""
    repeats = [
        Item(
            evaluation_id=item.evaluation_id,
            number=number,
            rank=item.rank,
            row_id=item.row_id,
            response_id=item.response_id,
            other_response_id=item.other_response_id,
            first_side=item.first_side,
            repeat_of=item,
            needed=0,
            free=0,
        )
        for number, item in enumerate(items, after + 1)
    ]
    repeats = Item.objects.bulk_create(repeats, batch_size=_BATCH)
    _further_copy(repeats)
    return repeats


def _further_copy(repeats: Sequence[Item]) -> None:
    """Give repeats the further answers of the items that they repeat."""
    if not any(repeat.is_ranked for repeat in repeats):
        return
    by_item: dict[int | None, list[int]] = defaultdict(list)
    further = FurtherAnswer.objects.filter(item__evaluation=repeats[0].evaluation_id).order_by(
        "item", "place"
    )
    for item, response in further.values_list("item", "response"):
        by_item[item].append(response)
    further_add((repeat, by_item[repeat.repeat_of_id]) for repeat in repeats)
