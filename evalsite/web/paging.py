"""Pagination: short lists by page number, long ones by key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import QueryDict

from evalsite.web.numbers import whole

Item = TypeVar("Item")
Stored = TypeVar("Stored", bound=Model)


def paged(params: QueryDict, items: Sequence[Item], size: int) -> tuple[list[Item], dict[str, Any]]:
    """Return the items of a page and the template's context for it.

    The page number comes from `page`: the first page if it is invalid, the last if it is too large. The context has
    `first` and `last` (from 1), `count` of all items, and the page numbers `previous` and `next` or None.
    """
    page = Paginator(items, size).get_page(whole(params.get("page", "")) or 1)
    return list(page.object_list), {
        "first": page.start_index(),
        "last": page.end_index(),
        "count": page.paginator.count,
        "previous": page.previous_page_number() if page.has_previous() else None,
        "next": page.next_page_number() if page.has_next() else None,
    }


def newest_first(
    rows: QuerySet[Stored], size: int, before: int | None = None
) -> tuple[list[Stored], int | None]:
    """Up to `size` rows with ids below `before`, newest first, and the `before` of the next page or None."""
    older = rows if before is None else rows.filter(pk__lt=before)
    page = list(older.order_by("-pk")[: size + 1])
    return page[:size], page[size - 1].pk if len(page) > size else None
