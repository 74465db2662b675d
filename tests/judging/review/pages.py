"""Helpers for tests of judgement pages: URLs, page text, and all pages of a filter."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.http import HttpResponse
from django.urls import reverse

from judging.filters.judgement_filter import Filters
from judging.filters.orders import ORDERS as ORDERS_BY_NAME
from judging.filters.orders import place_from
from judging.filters.page_limits import LIMITS, Limits
from judging.records.models import Judgement, Run
from judging.review import selectors

ORDERS = [sign + name for name in ORDERS_BY_NAME for sign in ("", "-")]

LIKE_A_LARGE_RUN = Limits(few=-1, entries=20, judgements=20, scattered=20, window=8)
"""Limits with which a small run is searched like a large one: no matches count as few, and pages stop early."""

SORTED_BY: dict[str, Callable[[Judgement], float | None]] = {
    "position": lambda one: one.position,
    "score": lambda one: one.score_in_force,
    "seconds": lambda one: one.seconds,
    "changed": lambda one: one.changed_at,
}
"""The sort key of each order."""


def address(run: Run, name: str = "judgements", *more: Any) -> str:
    return reverse(f"runs:{name}", args=("physics", run.pk, *more))


def judgement_address(judgement: Judgement, name: str = "judgement", *more: Any) -> str:
    return address(judgement.run, name, judgement.pk, *more)


def text(response: HttpResponse) -> str:
    return re.sub(r"\s+", " ", response.content.decode())


def pages(
    run: Run, filters: Filters, *, size: int = selectors.PER_PAGE, limits: Limits = LIMITS
) -> list[list[int]]:
    """Positions on each page of `size` judgements, from the first page to the last."""
    found, after = [], None
    while True:
        page = selectors.page(run, filters, after=after, size=size, limits=limits)
        found.append([line.judgement.position for line in page.lines])
        if page.next is None:
            return found
        after = place_from(str(page.next))
