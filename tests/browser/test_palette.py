"""Ctrl+K opens the command palette on any page; arrow keys and Enter choose an entry."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from evalsite.accounts.models import User
from judging.metrics.models import Metric
from tests.judging.metrics.conftest import live, metric, server, version

__all__ = ["live", "metric", "server", "version"]  # fixtures

Enter = Callable[..., Page]


def test_the_palette_goes_to_a_metric_by_its_name(enter: Enter, alice: User, metric: Metric) -> None:
    page = enter(alice, "/p/physics/")
    page.keyboard.press("Control+k")
    expect(page.locator("#palette-hits")).to_contain_text("New run")
    page.keyboard.type(metric.name)
    expect(page.locator("#palette-hits a")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{page.url.split('/p/')[0]}/p/physics/metrics/{metric.pk}/")


def test_arrows_walk_through_what_was_found(enter: Enter, alice: User, metric: Metric) -> None:
    page = enter(alice, "/p/physics/")
    page.get_by_role("link", name="Search").click()
    expect(page.locator("#palette-hits")).to_contain_text("New run")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#palette-hits a").nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#palette input[type=search]")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
