"""Requests that no browser would send."""

from __future__ import annotations

from typing import Any


class Unread:
    """A request body that raises AssertionError when read."""

    def read(self, *_: Any) -> bytes:
        raise AssertionError("the body was read")

    readline = read
