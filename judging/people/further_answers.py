"""The third and later answers of items whose answers are ranked."""

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


def further_copy(repeats: Sequence[Item]) -> None:
    """Give stored repeats, all of one evaluation, the further answers of the items that they repeat."""
    if not any(repeat.is_ranked for repeat in repeats):
        return
    by_item: dict[int | None, list[int]] = defaultdict(list)
    further = FurtherAnswer.objects.filter(item__evaluation=repeats[0].evaluation_id).order_by(
        "item", "place"
    )
    for item, response in further.values_list("item", "response"):
        by_item[item].append(response)
    further_add((repeat, by_item[repeat.repeat_of_id]) for repeat in repeats)
