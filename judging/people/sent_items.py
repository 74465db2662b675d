"""Items sent to those who adjudicate. What they decide about items that were sent together counts once all are decided:
until then, whoever looks at the figures could tell which of them was in doubt."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence

from django.db import IntegrityError, transaction

from evalsite.accounts.models import User
from evalsite.audit import Action
from judging.people.assignments import audit
from judging.people.models import Adjudication, Evaluation, SentItem


class SentBefore(Exception):
    """One of the items was sent before."""


@transaction.atomic
def items_send(*, evaluation: Evaluation, items: Sequence[int], by: User) -> None:
    """Send items (ids) to those who adjudicate, together. Raises SentBefore."""
    together = uuid.uuid4()
    try:
        with transaction.atomic():
            SentItem.objects.bulk_create(
                SentItem(item_id=item, together=together, by=by) for item in sorted(items)
            )
    except IntegrityError:
        raise SentBefore from None
    audit(Action.ITEMS_SENT, evaluation, by, items=len(items))


def sent_items(evaluation: Evaluation) -> set[int]:
    """Ids of the items that were sent."""
    return set(SentItem.objects.filter(item__evaluation=evaluation).values_list("item", flat=True))


def decided_items(evaluation: Evaluation) -> set[int]:
    """Ids of the items that were adjudicated."""
    return set(Adjudication.objects.filter(item__evaluation=evaluation).values_list("item", flat=True))


def half_decided(evaluation: Evaluation) -> set[int]:
    """Ids of the items of which one that was sent with them is not decided yet: their earlier labels count."""
    groups: dict[uuid.UUID, set[int]] = defaultdict(set)
    for item, together in SentItem.objects.filter(item__evaluation=evaluation).values_list(
        "item", "together"
    ):
        groups[together].add(item)
    decided = decided_items(evaluation) if groups else set()
    return set[int]().union(*(items for items in groups.values() if not items <= decided))
