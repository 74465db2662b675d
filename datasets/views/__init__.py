"""The pages of data sets: guard, form, service, render."""

from __future__ import annotations

from django.http import HttpRequest


def part_wanted(request: HttpRequest) -> bool:
    """Did htmx ask, for a part of the page?"""
    return request.headers.get("HX-Request") == "true"
