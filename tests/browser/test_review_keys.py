"""A reviewer corrects a score by keyboard alone, and stays in the filter."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from evalsite.accounts.models import Project, User
from judging.runs.models import Override
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
