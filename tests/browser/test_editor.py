"""The code editor behaves like an ordinary field: for labels, forms, htmx and input methods."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from evalsite.accounts.models import User

pytestmark = [pytest.mark.urls("tests.browser.editor_page"), pytest.mark.django_db(transaction=True)]
Enter = Callable[..., Page]


def test_what_is_written_in_the_editor_is_sent_with_the_form(enter: Enter, alice: User) -> None:
    page = enter(alice, "/editor/")
    page.get_by_label("Prompt").fill("Say {{ question }}")
    page.locator("#send").click()
    expect(page.locator("#preview")).to_have_text("Say {{ question }}")


def test_htmx_follows_the_editor(enter: Enter, alice: User) -> None:
    page = enter(alice, "/editor/")
    page.get_by_label("Prompt").press_sequentially("live ")
    expect(page.locator("#preview")).to_contain_text("LIVE")


def test_jinja_is_coloured(enter: Enter, alice: User) -> None:
    page = enter(alice, "/editor/")
    page.get_by_label("Prompt").fill("Say {{ question }}")
    expect(page.locator(".pce-line .token.variable")).to_have_text("question")


def test_an_input_method_composes_undisturbed(enter: Enter, alice: User) -> None:
    page = enter(alice, "/editor/")
    field = page.get_by_label("Prompt")
    field.fill("")
    composer = page.context.new_cdp_session(page)
    composer.send("Input.imeSetComposition", {"text": "ping", "selectionStart": 4, "selectionEnd": 4})
    composer.send("Input.imeSetComposition", {"text": "评测", "selectionStart": 2, "selectionEnd": 2})
    composer.send("Input.insertText", {"text": "评测"})
    expect(field).to_have_value("评测")


def test_escape_then_tab_leaves_the_editor(enter: Enter, alice: User) -> None:
    page = enter(alice, "/editor/")
    page.get_by_label("Prompt").focus()
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(page.locator("#send")).to_be_focused()


def test_tab_walks_through_the_editor_until_something_is_typed(enter: Enter, alice: User) -> None:
    page = enter(alice, "/editor/")
    prompt = page.get_by_label("Prompt")
    page.locator("#send").focus()
    page.keyboard.press("Shift+Tab")
    expect(prompt).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("#send")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("End")
    page.keyboard.press("Tab")
    expect(prompt).to_be_focused()


def test_without_scripts_it_is_a_plain_field(page: Page, alice: User, enter: Enter) -> None:
    # Empty, not aborted: the browser may report an aborted request at any time, even after the test.
    page.route("**/*.js", lambda route: route.fulfill(body="", content_type="text/javascript"))
    enter(alice, "/editor/")
    page.locator("textarea[name=prompt]").fill("plain")
    page.locator("#send").click()
    expect(page.locator("#preview")).to_have_text("plain")
