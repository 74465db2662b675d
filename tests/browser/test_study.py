"""A study walked by five people in two languages: from the pasted list of names to the payment sheet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from openpyxl import load_workbook
from playwright.sync_api import Page, expect

from evalsite.accounts.models import Project, Role, User
from judging.people.gold import gold_add, gold_read
from judging.people.models import Evaluation, Item
from judging.people.qualification.services import qualification_change
from tests.browser.waiting import until
from tests.conftest import member
from tests.judging.people.make import make_evaluation

pytestmark = pytest.mark.django_db(transaction=True)
Enter = Callable[..., Page]
PASSWORD = "a quite good password"
GOLD = '{"row": 1, "a": "alpha", "values": {"quality": 5}, "reason": "It is complete."}'


@pytest.fixture
def ravi(project: Project) -> User:
    return member("ravi", project, Role.RATER)


@pytest.fixture
def evaluation(project: Project, alice: User, ravi: User) -> Evaluation:
    """A draft whose first item is training."""
    User.objects.filter(pk__in=(alice.pk, ravi.pk)).update(language="zh-hans")
    study = make_evaluation(project, [], rows=4, side_by_side=False, models=["alpha"], overlap=2, draft=True)
    gold, wrong = gold_read(study, GOLD)
    assert not wrong
    gold_add(evaluation=study, gold=gold)
    training = [Item.objects.exclude(gold="").get().pk]
    qualification_change(evaluation=study, training=training, items=0, mark=1, by=alice)
    return study


def rate_all(desk: Page, key: str, done: str) -> None:
    """Read the guideline, the training's answer, and rate whatever comes, by keyboard alone."""
    expect(desk.locator("#reading button").first).to_be_focused()
    desk.keyboard.press("Enter")  # understood
    expect(desk.locator("#reading")).to_be_hidden()
    shown = desk.locator(".desk-item:visible, [data-case=nothing]:visible")
    while expect(shown).to_have_count(1) or desk.locator(".desk-item:visible").count():
        item = desk.locator(f"#{desk.locator('.desk-item:visible').get_attribute('id')}")
        training = item.get_attribute("data-training") is not None
        desk.keyboard.press(key)
        desk.keyboard.press("Enter")
        if training:
            expect(desk.locator("#feedback")).to_contain_text("It is complete.")
            desk.keyboard.press("Enter")
        expect(item).to_be_hidden()
    expect(desk.locator("#done")).to_contain_text(done)
    desk.goto("about:blank")  # it must not ask on behalf of the next person


def test_five_people_walk_a_study_to_its_payment_sheet(
    enter: Enter, evaluation: Evaluation, adam: User, alice: User, rita: User, ravi: User, tmp_path: Path
) -> None:
    address = f"/p/physics/evaluations/{evaluation.run_id}/"
    page = enter(adam, f"{address}inviting/")
    page.fill("[name=text]", "Rita\nRavi\nDora Lind <dora@x.example>")
    page.get_by_role("button", name="Check the list").click()
    page.get_by_role("button", name="Create 1 link, add 2 members").click()
    link = page.locator("code", has_text="/join/").inner_text()

    page.context.clear_cookies()
    page.goto(link)
    for field, value in {"username": "dora", "password1": PASSWORD, "password2": PASSWORD}.items():
        page.fill(f"[name={field}]", value)
    page.get_by_role("button", name="Create account and join").click()
    expect(page.locator("main")).to_contain_text("It appears here once it opens.")

    enter(alice, address)
    page.get_by_role("button", name="开放", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="开放", exact=True).click()
    until(page, lambda: Evaluation.objects.get().open)
    page.goto("about:blank")

    enter(rita, "/p/physics/rating/")
    page.get_by_role("link", name="Rate", exact=True).click()
    rate_all(page, "5", "You're done")
    rate_all(enter(ravi, f"/p/physics/desk/{evaluation.run_id}/"), "4", "已全部评完")

    enter(alice, f"{address}payment/")
    with page.expect_download() as download:
        page.get_by_role("link", name="Excel（带姓名）").click()
    download.value.save_as(tmp_path / "payment.xlsx")
    head, *rows = load_workbook(tmp_path / "payment.xlsx").active.values  # type: ignore[union-attr]
    worked = [dict(zip(head, row, strict=True)) for row in rows]
    assert [(row["rater"], row["training"]) for row in worked] == [("rita", 1), ("ravi", 1)]
    assert all(row["items"] >= 2 for row in worked)  # a third of the ratings; the rest is held for Dora
