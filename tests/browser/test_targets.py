"""On a phone, what raters and those who settle their disagreements press is as large as a fingertip."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from evalsite.accounts.models import Project, Role, User
from judging.people import assignments
from judging.people.models import Evaluation
from judging.teamwork.comments import comment_add
from judging.teamwork.models import Notice
from tests.browser.targets import small_targets
from tests.conftest import member
from tests.judging.judged import a_judged_run, first_of, said
from tests.judging.people.make import PREFERENCE, QUALITY, give, make_evaluation

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def phone(enter: Callable[..., Page], bob: User) -> Page:
    page = enter(bob)
    page.set_viewport_size({"width": 390, "height": 844})
    return page


@pytest.fixture
def disagreement(project: Project, rita: User) -> Evaluation:
    """An evaluation of one item on which two raters disagree."""
    raters = [rita, member("ravi", project, Role.RATER)]
    evaluation = make_evaluation(project, raters, rows=1, overlap=2, criteria=[PREFERENCE, QUALITY])
    for user, verdict in zip(raters, (("A>>B", 1), ("both_bad", 5)), strict=True):
        give(assignments.claim(evaluation=evaluation, user=user)[0], *verdict)
    return evaluation


@pytest.mark.parametrize("address", ["differences/", "differences/1/"])
def test_targets_of_an_adjudication_are_as_large_as_a_fingertip(
    phone: Page, disagreement: Evaluation, address: str
) -> None:
    phone.goto(f"{phone.url}p/physics/evaluations/{disagreement.run_id}/{address}")
    assert small_targets(phone) == []


def test_targets_of_the_inbox_are_as_large_as_a_fingertip(
    phone: Page, project: Project, alice: User, bob: User
) -> None:
    judgement = first_of(a_judged_run(project, lambda place: said(place % 10 + 1)))
    comment_add(judgement=judgement, text="@bob look", by=alice)
    assert Notice.objects.filter(user=bob).count() == 1
    phone.goto(f"{phone.url}inbox/")
    assert small_targets(phone) == []


def test_the_rows_of_a_list_of_judgements_hold_their_texts(phone: Page, project: Project) -> None:
    run = a_judged_run(project, lambda place: said(place % 10 + 1))
    phone.goto(f"{phone.url}p/physics/runs/{run.pk}/judgements/")
    rows = phone.locator("tr.linked")
    assert rows.count()
    heights = rows.evaluate_all("rows => rows.map((row) => [row.scrollHeight, row.clientHeight])")
    assert [height for height in heights if height[0] > height[1] + 1] == []
