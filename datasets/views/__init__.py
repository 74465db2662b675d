"""The pages of data sets: guard, form, service, render."""

from __future__ import annotations

from django.http import HttpRequest


def part_wanted(request: HttpRequest) -> bool:
    """Did htmx ask, for a part of the page?"""
    return request.headers.get("HX-Request") == "true"


def number_asked(request: HttpRequest, name: str) -> int | None:
    """A number in the address, as large as a line's may be; None if there is none."""
    text = request.GET.get(name, "")
    return min(int(text[:12]), 2**31 - 1) if text.isdecimal() else None
