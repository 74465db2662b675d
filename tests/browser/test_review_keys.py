"""A reviewer overrides a score using only the keyboard and stays in the filter."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from evalsite.accounts.models import Project, User
from judging.records.models import Override
from tests.judging.judged import a_judged_run, said
from tests.judging.review.pages import judgement_address

Enter = Callable[..., Page]


def test_a_score_is_overridden_by_keyboard_and_the_place_is_kept(
    enter: Enter, bob: User, project: Project
) -> None:
    run = a_judged_run(project, lambda place: said(place + 1))
    first, second = run.judgements.filter(candidate__name="beta").order_by("position")[:2]
    page = enter(bob, judgement_address(first) + "?candidate=beta")
    page.keyboard.press("e")
    page.keyboard.type("9")
    page.keyboard.press("Tab")
    page.keyboard.type("It is right, just terse.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".verdict .badge", has_text="overridden")).to_be_visible()
    assert Override.objects.get().score == 9
    page.keyboard.press("c")
    page.keyboard.type("j")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.wait_for_url(f"**{judgement_address(second)}?candidate=beta")


def test_from_a_row_of_the_list_to_an_override_and_back_without_the_mouse(
    enter: Enter, bob: User, project: Project
) -> None:
    run = a_judged_run(project, lambda place: said(place + 1))
    address = f"/p/physics/runs/{run.pk}/judgements/"
    page = enter(bob, address + "?candidate=beta")
    for key in ("j", "j", "k", "j", "Enter"):
        page.keyboard.press(key)
    second = run.judgements.filter(candidate__name="beta").order_by("position")[1]
    page.wait_for_url(f"**{judgement_address(second)}?candidate=beta")
    override(page, "9")
    page.keyboard.press("u")
    page.wait_for_url(f"**{address}?*")
    page.keyboard.press("j")
    expect(page.locator("a.row-link:focus")).to_have_text(str(second.row.line))


def test_in_the_grid_the_keys_stay_in_the_filter_and_the_next_override_starts_again(
    enter: Enter, bob: User, project: Project
) -> None:
    run = a_judged_run(project, lambda place: said(place + 1))
    page = enter(bob, f"/p/physics/runs/{run.pk}/items/?candidate=beta")
    page.keyboard.press("j")
    expect(page.locator("#panel h2").first).to_have_text("Row 1 · beta")
    override(page, "9")
    expect(page.locator("#panel details[open]")).to_have_count(0)
    page.keyboard.press("j")
    expect(page.locator("#panel h2").first).to_have_text("Row 2 · beta")
    page.keyboard.press("o")
    page.wait_for_url("**/judgements/*/?candidate=beta")


def override(page: Page, value: str) -> None:
    page.keyboard.press("e")
    page.keyboard.type(value)
    page.keyboard.press("Tab")
    page.keyboard.type("It is right.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".verdict .badge", has_text="overridden")).to_be_visible()
