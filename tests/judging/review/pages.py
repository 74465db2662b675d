"""Helpers for tests of judgement pages: URLs, page text, and all pages of a filter."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.http import HttpResponse
from django.urls import reverse

from judging.review import selectors
from judging.review.orders import place_from
from judging.runs.filters import SORTS, Filters
from judging.runs.models import Judgement, JudgementState, Run

ORDERS = [sign + sort for sort in SORTS if sort != "spread" for sign in ("", "-")]
"""Sort orders that include every judgement; `spread` does not."""

SORTED_BY: dict[str, Callable[[Judgement], float | None]] = {
    "position": lambda one: one.position,
    "candidate": lambda one: ["alpha", "beta"].index(one.candidate.name),
    "metric": lambda one: one.run_metric.number,
    "state": lambda one: JudgementState.values.index(one.state_in_force),
    "score": lambda one: one.score_in_force,
    "seconds": lambda one: one.seconds,
}
"""The sort key of each order, for a run with the candidates alpha and beta."""


def address(run: Run, name: str = "judgements", *more: Any) -> str:
    return reverse(f"runs:{name}", args=("physics", run.pk, *more))


def judgement_address(judgement: Judgement, name: str = "judgement", *more: Any) -> str:
    return address(judgement.run, name, judgement.pk, *more)


def text(response: HttpResponse) -> str:
    return re.sub(r"\s+", " ", response.content.decode())


def pages(run: Run, filters: Filters) -> list[list[int]]:
    """Positions on each page, from the first page to the last."""
    found, after = [], None
    while True:
        page = selectors.page(run, filters, after=after)
        found.append([line.judgement.position for line in page.lines])
        if page.next is None:
            return found
        after = place_from(str(page.next))
