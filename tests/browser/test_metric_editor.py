"""The metric editor in a browser: the preview updates while typing, and a trial's reply is streamed."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Error, Page, Route, expect

from datasets.models import Version
from evalsite.accounts.models import User
from judging.core.judges.scripted import ScriptedJudge
from judging.endpoints.models import Endpoint, EndpointLoad
from judging.metrics.models import Metric
from tests.browser.waiting import TIMEOUT_MS, until
from tests.conftest import PASSWORD
from tests.judging.metrics.conftest import live, metric, server, version

__all__ = ["live", "metric", "server", "version"]  # fixtures

Enter = Callable[..., Page]

TYPE_AND_GO_ON_AT_ONCE = """(text) => {
    document.execCommand("insertText", false, text);
    document.getElementById("go-next").click();
}"""
CHOOSE_AND_WAIT_FOR_NOTHING = """() => {
    const choice = document.getElementById("row_response");
    choice.selectedIndex = [...choice.options].findIndex((one) => one.label.startsWith("bee"));
    for (const name of ["input", "change"]) choice.dispatchEvent(new Event(name, { bubbles: true }));
}"""


@pytest.fixture
def editor(enter: Enter, alice: User, metric: Metric, version: Version) -> Page:
    page = enter(alice, f"/p/physics/metrics/{metric.pk}/")
    page.wait_for_selector("code-editor .prism-code-editor:visible")
    return page


def typed(page: Page, text: str) -> None:
    field = page.locator("#id_judge-0-template")
    field.press("Control+a")
    field.press("Delete")
    page.keyboard.insert_text(text)


def test_the_preview_follows_the_typing(editor: Page) -> None:
    typed(editor, "Look: {{ data.question }} {{ data.nothing }}")
    expect(editor.locator("#prompt mark")).to_have_text(["What is 1+1?"])
    expect(editor.locator("#prompt .missing")).to_have_text("data.nothing")


def test_the_last_of_quick_edits_wins(editor: Page) -> None:
    for text in ("{% for i in range(10**9) %}{% endfor %}", "first", "last {{ response.content }}"):
        typed(editor, text)
        editor.wait_for_timeout(350)
    expect(editor.locator("#prompt")).to_have_text("last ant says 1")


def test_the_next_row_keeps_what_is_typed(editor: Page) -> None:
    typed(editor, "Only {{ data.question }}")
    editor.click("#go-next")
    expect(editor.locator("#prompt")).to_contain_text("Only <b>bold</b>")


def test_the_next_row_is_not_overtaken_by_what_was_typed_just_before(editor: Page) -> None:
    held: list[Route] = []
    editor.route("**/preview/", lambda route: held.append(route))
    editor.locator("#id_judge-0-template").press("Control+a")
    editor.evaluate(TYPE_AND_GO_ON_AT_ONCE, "Only {{ data.question }}")
    editor.wait_for_timeout(600)  # longer than the typing delay before a request
    until(editor, lambda: held)
    assert len(held) == 1
    held[0].continue_()
    expect(editor.locator("#prompt")).to_contain_text("Only <b>bold</b>")


def test_another_answer_is_shown_when_it_is_chosen(editor: Page) -> None:
    editor.select_option("#row_response", label="bee · 1")
    expect(editor.locator("#prompt")).to_contain_text("bee says 1")


def test_a_choice_is_not_undone_by_an_answer_that_was_on_its_way(editor: Page) -> None:
    held: list[Route] = []
    editor.route("**/preview/", lambda route: held.append(route), times=1)
    with editor.expect_request("**/preview/"):
        typed(editor, "Newer {{ response.content }}")
    until(editor, lambda: held)
    editor.evaluate(CHOOSE_AND_WAIT_FOR_NOTHING)
    held[0].continue_()
    expect(editor.locator("#prompt")).to_have_text("Newer bee says 1")


def test_a_preview_that_takes_long_says_so(editor: Page) -> None:
    held: list[Route] = []
    editor.route("**/preview/", lambda route: held.append(route))
    typed(editor, "Newer {{ response.content }}")
    expect(editor.locator("#preview-state")).to_have_text("Rendering…")
    editor.unroute("**/preview/")  # the page may ask again meanwhile
    for route in held:
        with contextlib.suppress(Error):  # one that the page gave up
            route.continue_()
    expect(editor.locator("#preview-state")).to_be_empty()
    expect(editor.locator("#prompt")).to_have_text("Newer ant says 1")


@pytest.mark.parametrize("status", [500, 0])
def test_a_failed_preview_leaves_no_older_one_and_is_tried_again_by_a_click(
    editor: Page, console: list[str], status: int
) -> None:
    expect(editor.locator("#prompt")).to_be_visible()
    editor.route(
        "**/preview/",
        lambda route: route.fulfill(status=status, body="") if status else route.abort(),
        times=1,
    )
    typed(editor, "Newer {{ response.content }}")
    expect(editor.locator("#preview-state")).to_contain_text("The preview failed")
    expect(editor.locator("#prompt")).to_have_count(0)
    editor.click("#preview-state button")
    expect(editor.locator("#prompt")).to_have_text("Newer ant says 1")
    expect(editor.locator("#preview-state")).to_be_empty()
    console.clear()


def test_the_editor_says_how_the_keyboard_leaves_it(editor: Page) -> None:
    field = editor.locator("#id_judge-0-template")
    hint = editor.locator("code-editor:has(#id_judge-0-template) + .editor-hint")
    expect(hint).to_be_hidden()
    field.focus()
    expect(hint).to_be_visible()
    expect(hint).to_have_text("Press Esc, then Tab to leave the editor")
    editor.keyboard.press("Escape")
    expect(hint).to_have_text("Tab now goes to the next field")
    editor.keyboard.press("Tab")
    expect(hint).to_be_hidden()
    expect(field).not_to_be_focused()


def test_a_click_on_a_name_inserts_it(editor: Page) -> None:
    typed(editor, "")
    expect(editor.locator("#prompt mark")).to_have_count(0)
    editor.click("#names summary")
    editor.click("#names button[data-insert='{{ data.topic }}']")
    expect(editor.locator("#prompt mark")).to_have_text(["sums"])


def test_a_line_in_a_message_leads_to_the_editor_s_line(editor: Page) -> None:
    typed(editor, "one\ntwo {{ data.nothing }}")
    editor.click("#preview [data-goto='2']")
    assert editor.evaluate("document.activeElement.selectionStart") == len("one\n")


def test_a_trial_ends_with_reply_and_score(editor: Page, server: ScriptedJudge) -> None:
    editor.click("#try")
    expect(editor.locator("#trial .score")).to_have_text("7")
    editor.click("#trial [data-dismiss]")
    expect(editor.locator("#trial")).to_be_empty()


def test_a_trial_can_be_stopped(editor: Page, server: ScriptedJudge) -> None:
    server.server.script = lambda _: "Score: [[7]]"
    server.server._delay = lambda: TIMEOUT_MS / 1000
    editor.click("#try")
    editor.click("#trial [data-stop]")
    expect(editor.locator("#trial")).to_be_empty()
    until(editor, lambda: not any(EndpointLoad.objects.values_list("workers", flat=True)))


SIGNED_OUT = "You are signed out. What you typed is still here: sign in again in another tab, then try again."


@pytest.mark.parametrize("lost", ["evalsite_session", None])
def test_a_trial_after_the_session_ended_says_to_sign_in_again_and_then_works(
    editor: Page, server: ScriptedJudge, alice: User, console: list[str], lost: str | None
) -> None:
    typed(editor, "Typed {{ response.content }}")
    expect(editor.locator("#prompt")).to_have_text("Typed ant says 1")
    editor.context.clear_cookies(**({"name": lost} if lost else {}))
    editor.click("#try")
    expect(editor.locator("#toasts")).to_have_text(re.compile(re.escape(SIGNED_OUT)))
    expect(editor.locator("#trial")).to_be_empty()
    expect(editor.locator("#id_judge-0-template")).to_have_value("Typed {{ response.content }}")
    sign_in_elsewhere(editor, alice)
    editor.click("#try")
    expect(editor.locator("#trial .score")).to_have_text("7")
    console.clear()


def sign_in_elsewhere(page: Page, user: User) -> None:
    """Sign in in another tab, which changes session and CSRF token."""
    tab = page.context.new_page()
    tab.goto(page.url)
    tab.get_by_label("Username").fill(user.username)
    tab.get_by_label("Password").fill(PASSWORD)
    tab.locator("main button.primary").click()
    tab.wait_for_url(page.url)
    tab.wait_for_load_state("networkidle")  # the end of a request of a closed tab is not reported
    tab.close()


def test_a_preview_after_the_session_ended_shows_no_sign_in_page(editor: Page, console: list[str]) -> None:
    editor.context.clear_cookies(name="evalsite_session")
    typed(editor, "Newer")
    expect(editor.locator("#toasts")).to_have_text(re.compile(re.escape(SIGNED_OUT)))
    expect(editor.locator("#preview form, #lint form")).to_have_count(0)
    console.clear()


def test_an_expression_is_asked_for_only_where_one_is_used(editor: Page) -> None:
    expect(editor.locator("[data-pattern]")).to_be_hidden()
    editor.select_option("#id_judge-0-parse", "regex")
    expect(editor.locator("[data-pattern]")).to_be_visible()


def test_a_connection_is_tested_within_the_page(enter: Enter, alice: User, live: Endpoint) -> None:
    page = enter(alice, f"/p/physics/endpoints/{live.pk}/")
    page.get_by_role("button", name="Test connection").click()
    expect(page.locator("#connection")).to_contain_text("Connected")
