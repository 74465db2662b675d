"""Wait in browser tests for conditions that `expect` cannot check."""

from __future__ import annotations

import time
from collections.abc import Callable

from playwright.sync_api import Page

TIMEOUT_MS = 120_000
"""Milliseconds until a browser test gives up; not a promise of the product."""


def until(page: Page, true: Callable[[], object]) -> None:
    """Wait until `true()` is truthy while the page's events are processed."""
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < TIMEOUT_MS / 1000, "it did not happen"
        page.wait_for_timeout(20)


def arrived(page: Page) -> None:
    """Wait until the page has loaded its scripts; they do not see earlier keys and clicks."""
    page.wait_for_load_state("load")
