"""Ranking answers on the desk, using only the keyboard, and on a phone."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from evalsite.accounts.models import Project, User
from judging.core.people.criteria import Criterion
from judging.people.models import Assignment, Rating
from tests.browser.waiting import until
from tests.judging.people.make import make_evaluation

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def desk(enter: Callable[..., Page], project: Project, rita: User) -> Page:
    evaluation = make_evaluation(
        project,
        [rita],
        rows=2,
        models=("alpha", "beta", "gamma"),
        scheme="rank",
        criteria=[Criterion(name="Preference", scale="rank")],
    )
    return enter(rita, f"/p/physics/desk/{evaluation.run_id}/")


def test_digits_rank_the_answers_one_after_the_other(desk: Page) -> None:
    first = desk.locator(".desk-item:visible").get_attribute("data-item")
    for key in ("2", "1", "1", "3", "Enter"):  # the third answer last, after a second thought
        desk.keyboard.press(key)
    expect(desk.locator(f"#item-{first}")).to_be_hidden()
    until(desk, Rating.objects.exists)
    assignment = Assignment.objects.get(token=first)
    places = json.loads(Rating.objects.get().values)["0"].split(",")
    assert [places[position] for position in assignment.order] == ["2", "1", "3"]
    desk.keyboard.press("Enter")  # nothing is chosen yet
    expect(desk.locator("[data-error]").first).to_have_text("Please choose first.")


def test_on_a_phone_the_tab_follows_the_answer_that_is_ranked(desk: Page) -> None:
    desk.set_viewport_size({"width": 390, "height": 800})
    expect(desk.locator(".desk-side:visible")).to_have_count(1)
    desk.locator(".criterion").nth(1).locator(".scale-choice").first.click()
    expect(desk.locator(".desk-side:visible")).to_have_attribute("data-side", "B")
