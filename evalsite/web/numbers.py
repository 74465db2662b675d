"""Validation of numbers in requests: ones too large for the database match nothing."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest
from django.utils.deprecation import MiddlewareMixin

LARGEST = 2**63 - 1


def whole(text: str) -> int | None:
    """Parse a non-negative number that fits a database column; else None."""
    number = int(text) if text.isdecimal() and len(text) < 20 else None
    return number if number is not None and number <= LARGEST else None


class NumbersMiddleware(MiddlewareMixin):
    """Responds 404 to URLs with larger numbers, which databases reject in queries."""

    def process_view(self, request: HttpRequest, view: Any, arguments: Any, named: dict[str, Any]) -> None:
        if any(isinstance(value, int) and value > LARGEST for value in named.values()):
            raise Http404
