"""Marking spans on the desk, using only the keyboard, and on a phone."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from datasets.models import Response
from evalsite.accounts.models import Project, User
from judging.core.people.criteria import Criterion
from judging.people.models import Evaluation, Rating
from judging.records.models import Judgement
from tests.browser.waiting import until
from tests.judging.people.make import make_evaluation
from tests.make import a_version

pytestmark = pytest.mark.django_db(transaction=True)
ANSWER = "😀译文\r\nThe <b>cat</b> sat down."  # code points: The at 5…8, <b>cat</b> at 9…19, sat at 20…23


@pytest.fixture
def evaluation(project: Project, rita: User) -> Evaluation:
    version = a_version(project, rows=2, models=("alpha",))
    Response.objects.update(raw=json.dumps({"content": ANSWER}))
    errors = Criterion(name="Errors", scale="spans", categories=("Accuracy", "Style"))
    return make_evaluation(project, [rita], version=version, side_by_side=False, criteria=[errors])


@pytest.fixture
def desk(enter: Callable[..., Page], evaluation: Evaluation, rita: User) -> Page:
    page = enter(rita, f"/p/physics/desk/{evaluation.run_id}/")
    expect(page.locator("[data-marker]")).to_be_visible()  # its module is loaded later than the page
    return page


def press(desk: Page, keys: str) -> None:
    for key in keys.split():
        desk.keyboard.press(key)


def marks() -> list[tuple[str, str, int]]:
    spans = json.loads(json.loads(Rating.objects.get().values)["0"])
    return [(ANSWER[span["start"] : span["end"]], span["label"], span["severity"]) for span in spans]


def test_two_overlapping_spans_are_marked_by_keyboard(desk: Page) -> None:
    text = desk.locator(".desk-item:visible [data-spans]")
    desk.keyboard.press("Enter")
    expect(desk.locator("[data-error]").first).to_contain_text("nothing to mark")
    while desk.evaluate("getSelection().toString()") != "The":
        desk.keyboard.press("ArrowRight")
    while not desk.evaluate("getSelection().toString()").endswith("cat"):
        desk.keyboard.press("Shift+ArrowRight")
    press(desk, "2 w")  # Style, major
    desk.keyboard.press("K")
    while desk.evaluate("getSelection().toString()") != "sat":
        desk.keyboard.press("ArrowRight")
    press(desk, "< < < < < < < < < > , 1 q")  # back over "cat</b>", without the last letter: Accuracy, minor
    expect(text.locator("u")).to_have_text("cat")
    expect(desk.locator("[data-marks]")).to_contain_text("Sum: −6")
    assert text.evaluate("text => text.textContent") == ANSWER
    desk.keyboard.press("Enter")
    until(desk, Rating.objects.exists)
    assert marks() == [("The <b>cat", "Style", -5), ("cat</b> sa", "Accuracy", -1)]
    assert json.loads(Judgement.objects.get().value or "") == -6


def test_a_span_is_changed_and_removed_by_keyboard_and_comes_back_with_undo(desk: Page) -> None:
    press(desk, "ArrowRight 1 q ArrowRight 1 e 2 q K Delete Enter")
    until(desk, Rating.objects.exists)
    assert [(label, severity) for _text, label, severity in marks()] == [("Style", -1)]
    desk.keyboard.press("U")
    expect(desk.locator("[data-marks] [data-span]")).to_have_count(1)
    press(desk, "K Delete 0 Enter")
    until(desk, lambda: Rating.objects.filter(kind="verdict").count() == 2)
    assert json.loads(Rating.objects.filter(kind="verdict").latest("pk").values) == {"0": "[]"}


def test_on_a_phone_selected_text_is_marked_by_buttons(desk: Page) -> None:
    desk.set_viewport_size({"width": 390, "height": 800})
    desk.locator(".desk-item:visible [data-spans]").click(click_count=3)  # ends behind the text
    expect(desk.locator("[data-picked]")).to_contain_text("Which label?")
    desk.locator(".desk-item:visible [data-spans]").evaluate(
        "text => getSelection().setBaseAndExtent(text.firstChild, 2, text.firstChild, 4)"
    )
    expect(desk.locator("[data-picked]")).to_contain_text("译文")
    desk.locator("button[data-label=Style]").click()
    desk.locator("button[data-severity='-10']").click()
    expect(desk.locator("[data-spans] mark:visible")).to_have_text("译文")
    desk.keyboard.press("Enter")
    until(desk, Rating.objects.exists)
    assert marks() == [("译文", "Style", -10)]
