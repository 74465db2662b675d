"""The list of judgements in tests: addresses, what a page says, every page of a filter."""

from __future__ import annotations

import re
from typing import Any

from django.http import HttpResponse
from django.urls import reverse

from judging.review import selectors
from judging.review.places import place_from
from judging.runs.filters import Filters
from judging.runs.models import Run


def address(run: Run, name: str = "judgements", *more: Any) -> str:
    return reverse(f"runs:{name}", args=("physics", run.pk, *more))


def text(response: HttpResponse) -> str:
    return re.sub(r"\s+", " ", response.content.decode())


def pages(run: Run, filters: Filters) -> list[list[int]]:
    """The positions on each page, from the first to the last."""
    found, after = [], None
    while True:
        page = selectors.page(run, filters, after=after)
        found.append([line.judgement.position for line in page.lines])
        if page.next is None:
            return found
        after = place_from(str(page.next))
