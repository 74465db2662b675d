"""The site's layout in a browser, with the CSP enabled."""

from collections.abc import Callable

import pytest
from django.conf import LazySettings
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from evalsite.accounts.models import Project, User
from tests.conftest import PASSWORD
from tests.judging.judged import a_judged_run

pytestmark = pytest.mark.django_db(transaction=True)
Enter = Callable[..., Page]
PLACES = """() => [...document.querySelectorAll(".site-header :is(.brand, .find, .site-nav a, .avatar), h1")].map(
    (part) => Math.round(part.getBoundingClientRect().left)).join(" ")"""


def test_signing_in_leads_to_the_page_that_was_asked_for(
    page: Page, live_server: LiveServer, olga: User
) -> None:
    page.goto(f"{live_server.url}/projects/new/")
    page.get_by_label("Username").fill("olga")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(f"{live_server.url}/projects/new/")


def test_dark_colours_are_chosen_at_once_and_kept(enter: Enter, alice: User) -> None:
    page = enter(alice)
    page.locator("summary", has_text="Alice").click()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_chinese_is_one_click_away(enter: Enter, alice: User) -> None:
    page = enter(alice)
    page.get_by_role("button", name="中文").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("评测大模型的回答")


def test_the_question_mark_lists_the_keys_but_not_while_typing(enter: Enter, adam: User) -> None:
    page = enter(adam, "/p/physics/people/")
    page.get_by_label("Username").first.press("?")
    expect(page.locator("#keys")).to_be_hidden()
    page.locator("h1").click()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()


def test_removing_someone_is_asked_first(enter: Enter, adam: User, rita: User) -> None:
    page = enter(adam, "/p/physics/people/")
    remove = page.get_by_role("row", name="rita").get_by_role("button", name="Remove")
    remove.click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("row", name="rita")).to_be_visible()
    remove.click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_role("row", name="rita")).to_be_hidden()


@pytest.mark.parametrize("path", ["/", "/p/physics/", "/p/physics/people/", "/password/"])
def test_no_page_is_wider_than_a_phone(enter: Enter, adam: User, path: str) -> None:
    page = enter(adam)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(page.url.rstrip("/") + path)
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_the_skip_link_is_the_first_stop(enter: Enter, alice: User) -> None:
    page = enter(alice)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()


def test_a_form_beyond_the_limit_is_not_sent_and_keeps_its_text(
    enter: Enter, olga: User, settings: LazySettings
) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 2000
    page = enter(olga, "/projects/new/")
    page.get_by_label("Name").evaluate("(field) => { field.value = 'x'.repeat(3000); }")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.locator("#toasts")).to_contain_text("Forms are limited to 2 kB")
    expect(page.get_by_label("Name")).to_have_value("x" * 3000)


def test_a_form_that_is_sent_offline_keeps_its_text(enter: Enter, olga: User) -> None:
    page = enter(olga, "/projects/new/")
    page.get_by_label("Name").fill("Chemistry")
    page.context.set_offline(True)
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.locator("#toasts")).to_contain_text("You are offline")
    page.context.set_offline(False)
    expect(page.get_by_label("Name")).to_have_value("Chemistry")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("heading", name="Chemistry")).to_be_visible()


def test_the_header_stands_still_from_page_to_page(enter: Enter, adam: User, project: Project) -> None:
    run = a_judged_run(project, rows=1)
    places = set()
    for path in ("", "runs/", "runs/new/", f"runs/{run.pk}/", f"runs/{run.pk}/items/", "people/"):
        page = enter(adam, f"/p/physics/{path}")
        page.set_viewport_size({"width": 1920, "height": 800})
        places.add(page.evaluate(PLACES))
    page.set_viewport_size({"width": 1280, "height": 800})
    assert len(places) == 1


def test_a_wide_header_is_one_line_and_a_narrow_one_two(enter: Enter, adam: User, project: Project) -> None:
    page = enter(adam, "/p/physics/")
    page.evaluate(
        "document.querySelector('.site-bar > .menu > summary > span').append(' of the whole department')"
    )
    heights = {}
    for width in (800, 1000, 1050, 1100, 1150, 1200, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        heights[width] = page.evaluate("document.querySelector('.site-header').offsetHeight")
    assert heights[800] == heights[1000]
    assert {heights[width] for width in (1050, 1100, 1150, 1200, 1280)} == {49}


def test_a_number_field_with_letters_is_explained_by_the_page(
    enter: Enter, alice: User, project: Project
) -> None:
    run = a_judged_run(project, rows=1)
    page = enter(alice, f"/p/physics/datasets/{run.version.dataset_id}/v{run.version.number}/rows/")
    field = page.get_by_label("Go to line")
    field.press_sequentially("1e")
    field.press("Enter")
    expect(page.locator(".errorlist")).to_have_text("Enter a number.")
    field.fill("1")
    field.press("Enter")
    page.wait_for_url("**/rows/1/")
