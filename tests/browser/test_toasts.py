"""Toasts do not cover a form's submit button."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from evalsite.accounts.models import Project, User
from tests.judging.people.make import QUALITY, has_read, make_evaluation

pytestmark = pytest.mark.django_db(transaction=True)
Enter = Callable[..., Page]
SIZES = ((1280, 800), (390, 800))
COVERED = """() => {
    const notices = [...document.querySelectorAll('#toasts > .notice')].map((one) => one.getBoundingClientRect());
    const submits = [...document.querySelectorAll('form button:not([type=button]), input[type=submit]')];
    return submits.filter((one) => one.checkVisibility()).filter((one) => {
        const box = one.getBoundingClientRect();
        return notices.some((notice) => notice.left < box.right && notice.right > box.left
            && notice.top < box.bottom && notice.bottom > box.top);
    }).map((one) => one.textContent.trim());
}"""
SETTLED = """() => Promise.all(
    document.getElementById('toasts').getAnimations({subtree: true}).map((one) => one.finished)
)"""
LONG = "Something went wrong on the server. What you typed is still here; try again."


def toasted(page: Page, *texts: str) -> Page:
    for text in texts:
        detail = {"text": text, "kind": "error"}
        page.evaluate("(detail) => document.dispatchEvent(new CustomEvent('toast', {detail}))", detail)
    expect(page.locator("#toasts > .notice")).to_have_count(len(texts))
    page.evaluate(SETTLED)
    return page


@pytest.mark.parametrize("size", SIZES, ids=["wide", "phone"])
def test_on_the_desk_a_toast_leaves_the_whole_form_free(
    size: tuple[int, int], enter: Enter, project: Project, rita: User
) -> None:
    criteria = [QUALITY, QUALITY.__class__(name="tone", scale="ten")]
    evaluation = make_evaluation(project, [rita], side_by_side=False, criteria=criteria)
    has_read(evaluation, rita)
    page = enter(rita, f"/p/physics/desk/{evaluation.run_id}/")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    toasted(page, LONG, "Saved.")
    assert page.evaluate(COVERED) == []
    notices = page.locator("#toasts").bounding_box()
    form = page.locator("#verdict").bounding_box()
    assert notices
    assert form
    assert notices["y"] + notices["height"] <= form["y"]


@pytest.mark.parametrize("size", SIZES, ids=["wide", "phone"])
def test_a_toast_keeps_off_a_submit_button_while_the_page_scrolls(
    size: tuple[int, int], enter: Enter, olga: User, project: Project
) -> None:
    page = enter(olga, "/p/physics/endpoints/new/")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    submit = page.locator("main form button:not([type=button])").last
    toasted(page, LONG)
    for where in ("end", "center", "start"):
        submit.evaluate("(button, block) => button.scrollIntoView({block})", where)
        page.evaluate("new Promise(requestAnimationFrame)")
        assert page.evaluate(COVERED) == []
