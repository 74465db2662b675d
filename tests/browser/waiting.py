"""Waiting in tests of pages, for what `expect` cannot see."""

from __future__ import annotations

import time
from collections.abc import Callable

from playwright.sync_api import Page

PATIENCE = 120_000
"""Milliseconds after which a test gives up on a page; nothing that the product promises."""


def until(page: Page, true: Callable[[], object]) -> None:
    """Wait for something; meanwhile the page's events come through."""
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < PATIENCE / 1000, "it did not happen"
        page.wait_for_timeout(20)


def arrived(page: Page) -> None:
    """Wait until the page that is shown has all its scripts: a key or a click before is the browser's alone."""
    page.wait_for_load_state("load")
