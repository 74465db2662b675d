"""Requests as no browser sends them."""

from __future__ import annotations

from typing import Any


class Unread:
    """A request body that must not be read."""

    def read(self, *_: Any) -> bytes:
        raise AssertionError("the body was read")

    readline = read
