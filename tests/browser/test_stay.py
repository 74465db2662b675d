"""What a user does during a request survives when the response replaces that part of the page."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from datasets.models import Version
from evalsite.accounts.models import User
from judging.metrics.models import Metric
from tests.browser.holding import held_back
from tests.judging.metrics.conftest import live, metric, server, version

__all__ = ["live", "metric", "server", "version"]  # fixtures

Enter = Callable[..., Page]
NAME = "#names button[data-insert='{{ data.topic }}']"


@pytest.fixture
def editor(enter: Enter, alice: User, metric: Metric, version: Version) -> Page:
    """A metric's editor in a window narrow enough for its tables to scroll."""
    page = enter(alice, f"/p/physics/metrics/{metric.pk}/")
    page.wait_for_selector("code-editor .prism-code-editor:visible")
    page.set_viewport_size({"width": 240, "height": 800})
    return page


def type_newer(page: Page) -> Callable[[], None]:
    """Type a template and hold its preview back; return a function that releases it and waits for it."""
    let_go = held_back(page, "**/preview/")
    page.locator("#id_judge-0-template").press("Control+a")
    page.keyboard.insert_text("newer")

    def see() -> None:
        let_go()
        expect(page.locator("#prompt")).to_have_text("newer")

    return see


def test_what_was_opened_stays_open(editor: Page) -> None:
    see = type_newer(editor)
    editor.click("#names summary")
    see()
    expect(editor.locator("#names")).to_have_attribute("open", "")


def test_what_was_closed_again_stays_closed(editor: Page) -> None:
    editor.click("#names summary")
    see = type_newer(editor)
    editor.click("#names summary")
    see()
    expect(editor.locator("#names")).not_to_have_attribute("open", "")


def test_the_keyboard_stays_on_its_button(editor: Page) -> None:
    editor.click("#names summary")
    see = type_newer(editor)
    editor.focus(NAME)
    see()
    expect(editor.locator(NAME)).to_be_focused()


def test_a_table_stays_scrolled(editor: Page) -> None:
    editor.click("#names summary")
    see = type_newer(editor)
    editor.evaluate("document.querySelector('#names .table-wrap').scrollLeft = 20")
    see()
    assert editor.evaluate("document.querySelector('#names .table-wrap').scrollLeft") == 20
