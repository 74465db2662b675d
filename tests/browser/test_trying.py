"""An organiser tries a draft's items by keyboard, and on a phone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from evalsite.accounts.models import Project, User
from judging.core.people.criteria import Criterion
from tests.judging.people.make import make_evaluation

pytestmark = pytest.mark.django_db(transaction=True)
Enter = Callable[..., Page]


def test_a_ranking_is_tried_and_on_a_phone_the_tab_follows(
    enter: Enter, project: Project, alice: User
) -> None:
    rank = Criterion(name="Preference", scale="rank")
    models = ("alpha", "beta", "gamma")
    ranking = make_evaluation(project, models=models, scheme="rank", criteria=[rank], draft=True)
    page = enter(alice, f"/p/physics/evaluations/{ranking.run_id}/items/1/try/")
    page.set_viewport_size({"width": 390, "height": 780})
    page.keyboard.press("1")
    expect(page.get_by_role("button", name="B", exact=True)).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("2")
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    expect(page.locator("[role=status]", has_text="would be accepted")).to_contain_text("A > B = C")


def test_spans_are_tried_by_keyboard(enter: Enter, project: Project, alice: User) -> None:
    errors = Criterion(name="Errors", scale="spans", categories=("Accuracy",))
    marking = make_evaluation(project, models=["alpha"], side_by_side=False, criteria=[errors], draft=True)
    page = enter(alice, f"/p/physics/evaluations/{marking.run_id}/items/1/try/")
    for key in ("ArrowRight", "1", "w", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("[role=status]", has_text="would be accepted")).to_contain_text("Accuracy −5")
