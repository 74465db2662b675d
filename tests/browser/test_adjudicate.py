"""Adjudicating using only the keyboard; the form stays visible even with long answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from datasets.models import Response
from evalsite.accounts.models import Project, Role, User
from judging.people import assignments
from judging.people.models import Adjudication
from tests.browser.waiting import until
from tests.conftest import member
from tests.judging.people.make import PREFERENCE, QUALITY, give, make_evaluation

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("width", [1280, 390])
def test_a_difference_is_decided_by_keyboard_with_the_form_in_sight(
    enter: Callable[..., Page], project: Project, rita: User, bob: User, width: int
) -> None:
    ravi = member("ravi", project, Role.RATER)
    evaluation = make_evaluation(project, [rita, ravi], rows=1, overlap=2, criteria=[PREFERENCE, QUALITY])
    Response.objects.update(raw='{"content": "' + "A long answer. \\n\\n" * 200 + '"}')
    for user, said in ((rita, ("A>>B", 1)), (ravi, ("both_bad", 5))):
        give(assignments.claim(evaluation=evaluation, user=user)[0], *said)
    page = enter(bob, f"/p/physics/evaluations/{evaluation.run_id}/differences/1/")
    page.set_viewport_size({"width": width, "height": 800})
    button = page.get_by_role("button", name="Decide")
    expect(button).to_be_in_viewport(ratio=1)
    page.mouse.wheel(0, 5000)
    expect(button).to_be_in_viewport(ratio=1)
    for key in ("0", "4", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_role("alert").filter(has_text="Write the reason.")).to_be_visible()
    expect(page.locator("#id_reason")).to_be_focused()
    page.keyboard.type("Both miss the point.")
    page.keyboard.press("Control+Enter")
    until(page, lambda: Adjudication.objects.exists())
    made = Adjudication.objects.get()
    assert (made.values, made.reason) == ('{"0": "both_bad", "1": 4}', "Both miss the point.")
