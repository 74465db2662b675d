"""No shortcut acts while a dialog is open, wherever the focus is; every dialog of the site is walked."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from evalsite.accounts.models import Project, User
from judging.people.models import Assignment, Evaluation, Rating
from tests.browser.waiting import until
from tests.judging.people.make import has_read, make_evaluation

pytestmark = pytest.mark.django_db(transaction=True)
Enter = Callable[..., Page]
ON_THE_DESK = {"keys": "h", "ask": "?", "palette": "Control+k", "skip": "s", "mine": "p"}
OPENED_BY_THE_PAGE = ("reading", "feedback")
LOADED = {"#palette": "#palette-hits a", "#mine": "#mine-list a"}
ACTING = ("2", "Enter", "ArrowRight", "u", "?", "h", "Control+k")


@pytest.fixture
def evaluation(project: Project, rita: User) -> Evaluation:
    return make_evaluation(project, [rita], rows=3)


@pytest.fixture
def desk(enter: Enter, evaluation: Evaluation, rita: User) -> Page:
    """The desk with one item rated and the second one shown."""
    has_read(evaluation, rita)
    page = enter(rita, f"/p/physics/desk/{evaluation.run_id}/")
    for key in ("2", "Enter"):
        page.keyboard.press(key)
    until(page, Rating.objects.exists)
    return page


def test_every_dialog_of_the_site_is_walked_here() -> None:
    templates, scripts = Path(settings.BASE_DIR, "templates"), Path(settings.BASE_DIR, "static/js")
    named = [re.findall(r'<dialog\b[^>]* id="(\w+)"', one.read_text()) for one in templates.rglob("*.html")]
    unnamed = [one.name for one in scripts.rglob("*.js") if 'createElement("dialog")' in one.read_text()]
    assert {name for names in named for name in names} == {*ON_THE_DESK, *OPENED_BY_THE_PAGE}
    assert unnamed == ["site.js"]  # the question before a form is sent


def test_keys_that_are_pressed_over_a_dialog_do_not_rate_what_it_covers(desk: Page) -> None:
    for name, key in ON_THE_DESK.items():
        for _ in range(2):
            walk(desk, f"#{name}", lambda key=key: desk.keyboard.press(key))  # type: ignore[misc]
    for name in OPENED_BY_THE_PAGE:
        walk(desk, f"#{name}", lambda name=name: desk.evaluate(f"{name}.showModal()"))  # type: ignore[misc]
    expect(desk.locator("#verdict input:checked")).to_have_count(0)
    assert Rating.objects.count() == 1
    assert Assignment.objects.filter(state="skipped").count() == 0
    desk.keyboard.press("4")
    expect(desk.locator("#verdict input:checked")).to_have_count(1)


def test_keys_that_are_pressed_over_a_question_do_nothing_to_the_page(
    enter: Enter, evaluation: Evaluation, alice: User
) -> None:
    page = enter(alice, f"/p/physics/evaluations/{evaluation.run_id}/")
    closing = page.locator("form[data-confirm] button").first
    walk(page, "body > dialog:not([id])", closing.click)
    evaluation.refresh_from_db()
    assert evaluation.open


def test_only_what_loses_something_is_confirmed_in_red(
    enter: Enter, evaluation: Evaluation, alice: User
) -> None:
    page = enter(alice, f"/p/physics/evaluations/{evaluation.run_id}/")
    page.get_by_role("button", name="Close", exact=True).click()
    yes = page.locator("dialog[open] button").first
    expect(yes).to_have_class("button primary")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Remove", exact=True).first.click()
    expect(yes).to_have_class("button danger")


def walk(page: Page, dialog: str, open_it: Callable[[], None]) -> None:
    """Open a dialog, press keys while nothing in it has the focus, and close it with Escape."""
    open_it()
    opened = page.locator(f"{dialog}[open]")
    expect(opened).to_have_count(1)
    if dialog in LOADED:  # else the focus moves into it afterwards
        expect(page.locator(LOADED[dialog]).first).to_be_visible()
    page.evaluate("document.activeElement.blur()")
    for key in ACTING:
        page.keyboard.press(key)
    expect(page.locator("dialog[open]")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(opened).to_have_count(0)


def test_the_focus_moves_into_the_list_that_replaces_the_one_before(desk: Page) -> None:
    for _ in range(2):
        desk.keyboard.press("p")
        expect(desk.locator("#mine [data-earlier]")).to_be_focused()
        desk.keyboard.press("Escape")
        expect(desk.locator("#mine")).to_be_hidden()


def test_the_focus_moves_into_what_replaces_the_button_for_older_ones(
    desk: Page, evaluation: Evaluation
) -> None:
    desk.route(
        "**/mine/?before=9", lambda route: route.fulfill(body='<a href="/" data-earlier="x">older</a>')
    )
    more = '<p><button type="button" data-more="9">Older</button></p>'
    desk.route("**/mine/?before=", lambda route: route.fulfill(body=more))
    desk.keyboard.press("p")
    expect(desk.locator("[data-more]")).to_be_focused()
    desk.keyboard.press("Enter")
    expect(desk.get_by_role("link", name="older")).to_be_focused()
