"""Requests held back until the test releases them."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, Route


def held_back(page: Page, address: str) -> Callable[[], None]:
    """Hold back the next request to `address`; return a function that releases it."""
    held: list[Route] = []
    page.route(address, lambda route: held.append(route), times=1)

    def let_go() -> None:
        while not held:
            page.wait_for_timeout(20)
        held.pop().continue_()

    return let_go
