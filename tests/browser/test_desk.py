"""The rating desk in a browser, using only the keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from urllib.parse import parse_qs
from uuid import uuid4

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Page, Route, expect

from datasets.models import Row
from evalsite.accounts.models import Project, Role, User
from judging.core.people.criteria import Criterion
from judging.people import assignments
from judging.people.assignments import raters_add
from judging.people.gold import gold_add, gold_of_item
from judging.people.guidelines.models import GuidelineReading
from judging.people.guidelines.services import GuidelineTexts, guideline_change
from judging.people.models import Assignment, Evaluation, Rating
from judging.people.qualification.services import qualification_change
from judging.people.services import evaluation_close, evaluation_reopen
from judging.records.models import Judgement
from tests.browser.targets import small_targets
from tests.browser.waiting import until
from tests.conftest import member
from tests.judging.checklists.helpers import RUBRIC, with_rubrics
from tests.judging.people.make import QUALITY, has_read, make_evaluation
from tests.judging.people.make import give as give_rating

pytestmark = pytest.mark.django_db(transaction=True)
Enter = Callable[..., Page]
LOOKS_AGAIN_AT_NO_TIME = (
    "const set = setInterval; window.setInterval = (what, after) => after < 30000 && set(what, after);"
)


@pytest.fixture
def desk(enter: Enter, project: Project, rita: User) -> Callable[..., Page]:
    """Open the desk of a new evaluation as Rita, for example desk(rows=20)."""

    def opened(**wanted: object) -> Page:
        evaluation = make_evaluation(project, [rita], **wanted)  # type: ignore[arg-type]
        has_read(evaluation, rita)
        page = enter(rita, f"/p/physics/desk/{evaluation.run_id}/")
        expect(shown(page)).to_have_count(1)
        return page

    return opened


def shown(page: Page):  # type: ignore[no-untyped-def]
    return page.locator(".desk-item:visible")


def item_of(page: Page) -> str:
    return shown(page).get_attribute("data-item") or ""


def open_earlier(page: Page, token: str) -> None:
    """Open one's own rated item again."""
    page.keyboard.press("p")
    page.locator(f"[data-earlier='{token}']").click()
    expect(page.locator(f"#item-{token}")).to_be_visible()


def give(page: Page, *keys: str) -> None:
    """Press the keys and wait for the next item."""
    before = item_of(page)
    for key in keys:
        page.keyboard.press(key)
    expect(page.locator(f"#item-{before}")).to_be_hidden()


def sent(page: Page) -> None:
    """Wait until no unsent ratings are left in local storage."""
    held = "Object.keys(localStorage).some((name) => name.startsWith('desk-'))"
    until(page, lambda: not page.evaluate(held))


def test_twenty_verdicts_one_undone_and_one_skipped_are_exactly_what_is_stored(
    desk: Callable[..., Page],
) -> None:
    page = desk(rows=21)
    for number in range(19):
        give(page, "ArrowRight" if number % 2 else "ArrowLeft", "Enter")
    undone = item_of(page)
    give(page, "1", "Enter")
    page.keyboard.press("u")
    expect(page.locator(f"#item-{undone}")).to_be_visible()
    give(page, "s", "2", "Enter")
    give(page, "3", "Enter")
    sent(page)
    assert Assignment.objects.filter(state="rated").count() == 20
    skipped = Assignment.objects.get(state="skipped")
    assert str(skipped.token) == undone
    assert skipped.ratings.latest("pk").reason == "no_knowledge"
    assert Judgement.objects.filter(current=True).count() == 20


def test_each_verdict_is_stored_for_the_answer_that_was_shown(desk: Callable[..., Page]) -> None:
    page = desk(rows=6)
    for _ in range(6):
        give(page, "ArrowLeft", "Enter")
    sent(page)
    found = Judgement.objects.values_list("shown_first", "value")
    assert {(first, json.loads(value or "")) for first, value in found} == {(1, "A>B"), (2, "B>A")}


def test_what_is_given_without_a_connection_is_kept_said_and_sent_later(
    desk: Callable[..., Page], console: list[str]
) -> None:
    page = desk(rows=4)
    page.context.set_offline(True)
    give(page, "2", "Enter")
    give(page, "4", "Enter")
    expect(page.locator("#status")).to_contain_text("Offline, 2 ratings waiting to be sent")
    assert not Rating.objects.exists()
    page.context.set_offline(False)
    expect(page.locator("#status")).to_contain_text("All ratings are sent")
    assert Rating.objects.count() == 2
    console.clear()


def test_without_a_connection_the_page_lasts_for_ten_items_and_then_says_what_waits(
    desk: Callable[..., Page], console: list[str]
) -> None:
    page = desk(rows=12)
    expect(page.locator(".desk-item")).to_have_count(10)
    page.context.set_offline(True)
    for _ in range(10):
        give(page, "2", "Enter")
    expect(page.get_by_role("heading", name="Offline, 10 ratings waiting to be sent")).to_be_visible()
    expect(page.get_by_text("You're done")).to_be_hidden()
    page.context.set_offline(False)
    expect(shown(page)).to_have_count(1)
    for _ in range(2):
        give(page, "2", "Enter")
    expect(page.get_by_text("You're done")).to_be_visible()
    assert Rating.objects.count() == 12
    console.clear()


def test_a_closed_page_gives_back_what_it_kept_for_later(desk: Callable[..., Page]) -> None:
    page = desk(rows=6)
    expect(page.locator(".desk-item")).to_have_count(6)
    page.keyboard.press("c")
    page.keyboard.type("half a thought")
    page.goto("about:blank")
    until(page, lambda: Assignment.objects.filter(state="leased").count() == 1)
    until(page, Assignment.objects.filter(state="leased", draft__contains="half a thought").exists)


def test_a_page_that_is_loaded_again_keeps_its_items(desk: Callable[..., Page]) -> None:
    page = desk(rows=4)
    expect(page.locator(".desk-item")).to_have_count(4)
    page.reload()
    expect(page.locator(".desk-item")).to_have_count(4)
    assert Assignment.objects.count() == 4


def test_an_evaluation_that_is_closed_meanwhile_says_so_and_keeps_what_was_given(
    desk: Callable[..., Page], alice: User, console: list[str]
) -> None:
    page = desk(rows=4)
    give(page, "2", "Enter")
    sent(page)
    evaluation_close(evaluation=Evaluation.objects.get(), by=alice)
    late = item_of(page)
    page.keyboard.press("4")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="This evaluation was closed")).to_be_visible()
    expect(page.locator("#verdict")).to_be_hidden()
    expect(page.get_by_role("button", name="Undo")).to_be_hidden()
    expect(page.get_by_text("You're done")).to_be_hidden()
    sent(page)  # the server's refusal is logged
    assert json.loads(Assignment.objects.get(token=late).draft)["values"] == {"0": "B>A"}
    console.clear()


def test_the_conversation_opens_at_its_last_question(desk: Callable[..., Page]) -> None:
    page = desk(rows=1)
    turns = [{"role": role, "content": "So it was said. " * 300} for role in ("user", "assistant")]
    Row.objects.update(raw=json.dumps({"messages": [*turns, {"role": "user", "content": "And the end?"}]}))
    page.reload()
    expect(page.get_by_text("And the end?")).to_be_in_viewport()


@pytest.mark.parametrize(("width", "beside"), [(1280, "#items"), (390, "#verdict")], ids=["wide", "phone"])
def test_the_guideline_opens_beside_what_is_worked_on(
    width: int, beside: str, desk: Callable[..., Page]
) -> None:
    page = desk(rows=1)
    page.set_viewport_size({"width": width, "height": 800})
    page.keyboard.press("g")
    expect(page.locator("#guideline")).to_be_visible()
    one, two = page.locator("#guideline").bounding_box(), page.locator(beside).bounding_box()
    assert one
    assert two
    assert one["x"] >= two["x"] + two["width"] or one["y"] + one["height"] <= two["y"]
    for key in ("3", "g"):
        page.keyboard.press(key)
    expect(page.locator("#guideline")).to_be_hidden()
    expect(page.get_by_label("Equal")).to_be_checked()


def test_the_guideline_is_read_first_and_again_after_a_change(
    enter: Enter, project: Project, rita: User, alice: User
) -> None:
    evaluation = make_evaluation(project, [rita])
    page = enter(rita, f"/p/physics/desk/{evaluation.run_id}/")
    reading, shown_item = page.locator("#reading"), item_of(page)
    expect(reading).to_contain_text("Which one helps more?")
    page.keyboard.press("Enter")
    expect(reading).to_be_hidden()
    assert item_of(page) == shown_item
    until(page, lambda: GuidelineReading.objects.get().understood_at is not None)
    guideline_change(evaluation=evaluation, texts=GuidelineTexts("Read twice."), seen=1, by=alice)
    give(page, "2", "Enter")
    expect(reading).to_contain_text("The guideline has changed")
    expect(reading).to_contain_text("Read twice.")
    page.get_by_role("button", name="Understood").click()
    give(page, "2", "Enter")
    until(page, lambda: Rating.objects.count() == 2)
    assert sorted(Rating.objects.values_list("guideline_version", flat=True)) == [1, 2]


def test_a_training_item_stays_until_the_expected_answer_was_read(
    enter: Enter, project: Project, rita: User, alice: User
) -> None:
    evaluation = make_evaluation(project, [rita], rows=2, side_by_side=False, criteria=[QUALITY])
    items = list(evaluation.items.order_by("number")[:2])
    gold = [gold_of_item(evaluation, item, {"quality": 4}, "One fact is missing.") for item in items]
    gold_add(evaluation=evaluation, gold=gold)
    training = [item.pk for item in items]
    qualification_change(evaluation=evaluation, training=training, items=0, mark=0.8, by=alice)
    has_read(evaluation, rita)
    page = enter(rita, f"/p/physics/desk/{evaluation.run_id}/")
    feedback, first = page.locator("#feedback"), item_of(page)
    for key in ("5", "Enter"):
        page.keyboard.press(key)
    expect(feedback).to_contain_text("One fact is missing.")
    assert item_of(page) == first
    page.keyboard.press("Enter")
    expect(page.locator(f"#item-{first}")).to_be_hidden()
    expect(page.locator("#verdict")).to_be_visible()


def test_a_lost_session_loses_no_verdict(
    desk: Callable[..., Page], enter: Enter, rita: User, console: list[str]
) -> None:
    page = desk(rows=4)
    cookies = page.context.cookies()
    page.context.clear_cookies()
    give(page, "2", "Enter")
    expect(page.locator("#status")).to_contain_text("Signed out, 1 rating waiting to be sent")
    page.context.add_cookies(cookies)
    page.evaluate(
        "window.dispatchEvent(new Event('focus'))"
    )  # the user returns from the tab used for signing in
    expect(page.locator("#status")).to_contain_text("All ratings are sent")
    assert Rating.objects.count() == 1
    console.clear()


def test_what_is_given_while_someone_else_is_signed_in_waits_for_its_rater(
    desk: Callable[..., Page], project: Project, rita: User, console: list[str]
) -> None:
    page = desk(rows=4, overlap=2)
    give(page, "2", "Enter")
    sent(page)
    ravi, mine = member("ravi", project, Role.RATER), page.context.cookies()
    raters_add(evaluation=Evaluation.objects.get(), users=[ravi])
    has_read(Evaluation.objects.get(), ravi)
    give_rating(assignments.claim(evaluation=Evaluation.objects.get(), user=ravi)[0], "A>B")
    page.reload()  # so that the server, not the page, knows what the last rating was
    page.context.add_cookies(session_of(ravi, mine))
    page.keyboard.press("u")
    give(page, "4", "Enter")
    expect(page.locator("#status")).to_contain_text(
        "Somebody else has signed in here, 2 ratings by rita waiting"
    )
    assert Assignment.objects.filter(rater__user=ravi, state="leased").count() == 1
    page.context.add_cookies(mine)  # type: ignore[arg-type]
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    sent(page)
    assert [(one.rater.user, one.kind) for one in Rating.objects.order_by("pk")] == [
        (rita, "verdict"), (ravi, "verdict"), (rita, "undo"), (rita, "verdict"),
    ]  # fmt: skip
    console.clear()


def test_the_next_users_page_says_whose_ratings_wait_and_keeps_them(
    desk: Callable[..., Page], project: Project, rita: User, console: list[str]
) -> None:
    page = desk(rows=4, overlap=2)
    ravi, mine = member("ravi", project, Role.RATER), page.context.cookies()
    raters_add(evaluation=Evaluation.objects.get(), users=[ravi])
    has_read(Evaluation.objects.get(), ravi)
    page.context.clear_cookies()
    give(page, "4", "Enter")
    expect(page.locator("#status")).to_contain_text("Signed out, 1 rating waiting")
    page.context.add_cookies(session_of(ravi, mine))
    page.reload()
    expect(page.locator("#others")).to_contain_text("1 rating by rita has not been sent yet")
    give(page, "2", "Enter")
    until(page, Rating.objects.filter(rater__user=ravi).exists)
    page.context.add_cookies(mine)  # type: ignore[arg-type]
    page.reload()
    sent(page)
    expect(page.locator("#others")).to_be_hidden()
    assert set(Rating.objects.values_list("rater__user__username", flat=True)) == {"ravi", "rita"}
    console.clear()


def session_of(user: User, cookies: list[dict[str, str]]) -> list[dict[str, str]]:
    """The session cookie of another user, in the place of one of `cookies`."""
    client, name = Client(), settings.SESSION_COOKIE_NAME
    client.force_login(user)
    return [{**one, "value": client.cookies[name].value} for one in cookies if one["name"] == name]


def test_the_way_to_sign_in_again_leads_back_to_the_page_and_to_what_was_typed(
    desk: Callable[..., Page], console: list[str]
) -> None:
    page = desk(rows=2)
    cookies, first = page.context.cookies(), item_of(page)
    page.context.clear_cookies()
    page.keyboard.press("c")
    page.keyboard.type("half a thought")
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    link = page.get_by_role("link", name="Sign in again")
    expect(link).to_have_attribute("href", re.compile(r"\?next=/p/physics/desk/\d+/$"))
    link.click()
    page.wait_for_url("**/sign-in/**")
    page.context.add_cookies(cookies)  # type: ignore[arg-type]
    page.reload()  # who is signed in is led on
    expect(page.locator(f"#item-{first}")).to_be_visible()
    expect(page.locator("textarea[name=comment]")).to_have_value("half a thought")
    console.clear()


def test_earlier_ratings_after_the_session_ended_say_so_and_show_no_sign_in_page(
    desk: Callable[..., Page], console: list[str]
) -> None:
    page = desk(rows=2)
    page.context.clear_cookies()
    page.keyboard.press("d")
    page.keyboard.press("p")
    expect(page.locator("#status")).to_contain_text("Signed out")
    expect(page.locator("#mine")).to_be_hidden()
    expect(page.locator("#mine form")).to_have_count(1)  # its own
    assert console == []


def test_what_the_desk_sends_names_items_by_token_and_no_side(desk: Callable[..., Page]) -> None:
    page, requests = desk(rows=3), []
    page.on("request", lambda request: requests.append(f"{request.url} {request.post_data or ''}"))
    page.keyboard.press("d")
    give(page, "2", "Enter")
    give(page, "s", "1", "Enter")
    sent(page)
    fields = {name for one in requests for name in parse_qs(one.rpartition(" ")[2], keep_blank_values=True)}
    assert fields == {"v0", "comment", "attempt", "seconds", "key", "reason", "guideline"}
    assert [one for one in requests if re.search(r"/desk/\d+/\d+/", one)] == []


def test_what_an_earlier_release_left_unsent_in_the_browser_is_sent(
    desk: Callable[..., Page], rita: User
) -> None:
    page = desk(rows=2)
    held = Assignment.objects.get(token=item_of(page))
    fields = {"v0": "1", "comment": "", "shown": str(held.shown_first), "attempt": "0", "seconds": 2}
    tokens = page.locator("#items").get_attribute("data-items-url")
    entry = {
        "key": str(uuid4()), "at": "000000000000001", "item": str(held.pk), "fields": fields, "tokens": tokens,
        "url": f"/p/physics/desk/{held.evaluation.run_id}/{held.pk}/verdict/",
    }  # fmt: skip
    name = f"desk-{held.evaluation.run_id}-{rita.pk}/{entry['at']}/{entry['key']}"
    page.evaluate("([name, entry]) => localStorage.setItem(name, JSON.stringify(entry))", [name, entry])
    page.reload()
    sent(page)
    until(page, lambda: Rating.objects.exists())
    assert Rating.objects.get().assignment == held


def test_a_reload_loses_neither_the_draft_nor_what_waits(desk: Callable[..., Page]) -> None:
    page = desk(rows=4)
    page.keyboard.press("5")
    page.keyboard.press("c")
    with page.expect_response(lambda answer: "better+reasons" in (answer.request.post_data or "")):
        page.keyboard.type("better reasons")
    page.reload()
    expect(page.locator("textarea[name=comment]")).to_have_value("better reasons")
    expect(page.get_by_label("B much better")).to_be_checked()


def test_what_is_typed_waits_while_an_earlier_one_is_looked_at(desk: Callable[..., Page]) -> None:
    page = desk(rows=3)
    first = item_of(page)
    give(page, "2", "Enter")
    sent(page)
    page.keyboard.press("c")
    page.keyboard.type("half a thought")
    page.keyboard.press("Escape")
    open_earlier(page, first)
    page.get_by_role("link", name="Back to the queue").click()
    expect(page.locator(f"#item-{first}")).to_be_hidden()
    expect(page.locator("textarea[name=comment]")).to_have_value("half a thought")


def test_what_is_typed_is_kept_when_the_page_is_left_at_once(desk: Callable[..., Page]) -> None:
    page = desk(rows=2)
    page.keyboard.press("c")
    page.keyboard.type("half a thought")
    page.goto("about:blank")
    kept = Assignment.objects.filter(draft__contains="half a thought")
    until(page, kept.exists)
    assert kept.count() == 1


def test_nothing_is_submitted_before_a_choice(desk: Callable[..., Page]) -> None:
    page = desk(rows=2)
    before = item_of(page)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").filter(has_text="Please choose")).to_be_visible()
    assert item_of(page) == before


def test_shortcuts_are_off_while_typing_and_while_an_input_method_composes(desk: Callable[..., Page]) -> None:
    page = desk(rows=2)
    page.keyboard.press("c")
    page.keyboard.type("12us")
    expect(page.locator("textarea[name=comment]")).to_have_value("12us")
    page.keyboard.press("Escape")
    page.evaluate(
        "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '4', bubbles: true, isComposing: true}))"
    )
    expect(page.locator("#verdict input:checked")).to_have_count(0)
    page.keyboard.press("4")
    expect(page.locator("#verdict input:checked")).to_have_count(1)


def test_chinese_is_typed_by_an_input_method_without_a_key_acting(desk: Callable[..., Page]) -> None:
    page = desk(rows=2)
    before = item_of(page)
    page.keyboard.press("c")
    method = page.context.new_cdp_session(page)
    typed = {"selectionStart": 2, "selectionEnd": 2}
    method.send("Input.imeSetComposition", {"text": "ni", **typed})
    for key in ("1", "Enter", "u"):  # part of an IME composition: choose a character, accept it
        composing = {"type": "rawKeyDown", "key": key, "windowsVirtualKeyCode": 229}
        method.send("Input.dispatchKeyEvent", composing)
    method.send("Input.insertText", {"text": "你好"})
    expect(page.locator("textarea[name=comment]")).to_have_value("你好")
    expect(page.locator("#verdict input:checked")).to_have_count(0)
    page.keyboard.press("Escape")
    give(page, "2", "Enter")
    sent(page)
    assert (str(Rating.objects.get().assignment.token), Rating.objects.get().comment) == (before, "你好")


def test_digits_fill_the_scales_one_after_the_other_also_behind_a_text(desk: Callable[..., Page]) -> None:
    notes = QUALITY.__class__(name="notes", scale="text", required=False)
    tone = QUALITY.__class__(name="tone", scale="ten")
    why = QUALITY.__class__(name="why", scale="text", required=False)
    page = desk(rows=2, side_by_side=False, criteria=[notes, QUALITY, why, tone])
    give(page, "4", "0", "Enter")
    sent(page)
    assert json.loads(Rating.objects.get().values) == {"1": 4, "3": 10}


def test_digits_fill_a_reopened_item_from_its_first_criterion(desk: Callable[..., Page]) -> None:
    page = desk(rows=2, side_by_side=False, criteria=[QUALITY, QUALITY.__class__(name="tone", scale="ten")])
    give(page, "4", "9", "Enter")
    page.keyboard.press("u")
    active = page.locator(".criterion[aria-current=true]")
    expect(active).to_contain_text("quality")
    page.keyboard.press("2")
    expect(active).to_contain_text("tone")
    expect(active).to_be_focused()
    give(page, "7", "Enter")
    sent(page)
    counted = Assignment.objects.get(state="rated").rating
    assert counted
    assert json.loads(counted.values) == {"0": 2, "1": 7}


def test_the_active_criterion_is_marked_by_a_sign_beside_its_name(desk: Callable[..., Page]) -> None:
    page = desk(rows=1, side_by_side=False, criteria=[QUALITY, QUALITY.__class__(name="tone", scale="ten")])
    sign = "(legend) => getComputedStyle(legend, '::before').visibility"
    signs = [one.evaluate(sign) for one in page.locator(".criterion legend").all()]
    assert signs == ["visible", "hidden"]


def test_an_earlier_verdict_is_changed_and_the_first_one_stays_in_the_history(
    desk: Callable[..., Page],
) -> None:
    page = desk(rows=3)
    first = item_of(page)
    give(page, "2", "Enter")
    sent(page)
    open_earlier(page, first)
    expect(page.get_by_label("A better")).to_be_checked()
    give(page, "4", "Enter")
    sent(page)
    assert [rating.kind for rating in Rating.objects.order_by("pk")] == ["verdict", "change"]
    assert Judgement.objects.filter(current=True).count() == 1


def test_undo_after_a_reload_brings_the_last_one_back(desk: Callable[..., Page]) -> None:
    page = desk(rows=3)
    first = item_of(page)
    give(page, "2", "Enter")
    sent(page)
    page.reload()
    page.keyboard.press("u")
    expect(page.locator(f"#item-{first}")).to_be_visible()
    expect(page.get_by_label("A better")).to_be_checked()


def test_two_tabs_make_one_verdict(desk: Callable[..., Page], rita: User) -> None:
    page = desk(rows=3)
    other = page.context.new_page()
    other.goto(page.url)
    same = item_of(page)
    assert item_of(other) == same
    give(page, "1", "Enter")
    sent(page)
    give(other, "5", "Enter")
    expect(other.get_by_text("in another tab")).to_be_visible()
    sent(page)
    assert [json.loads(each.values) for each in Rating.objects.filter(assignment__token=same)] == [
        {"0": "A>>B" if Assignment.objects.get(token=same).shown_first == 1 else "B>>A"}
    ]
    open_earlier(other, same)
    expect(other.get_by_text("was not submitted")).to_be_visible()
    expect(other.get_by_label("B much better")).to_be_checked()


def test_a_change_that_meets_a_closed_evaluation_is_filled_in_when_it_is_reopened(
    desk: Callable[..., Page], alice: User, console: list[str]
) -> None:
    page = desk(rows=2)
    first = item_of(page)
    give(page, "2", "Enter")
    sent(page)
    open_earlier(page, first)
    evaluation_close(evaluation=Evaluation.objects.get(), by=alice)
    page.locator("textarea[name=comment]").fill("on second thought")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="This evaluation was closed")).to_be_visible()
    sent(page)
    evaluation_reopen(evaluation=Evaluation.objects.get(), by=alice)
    page.goto(f"{page.url.split('/desk/')[0]}/desk/{Evaluation.objects.get().run_id}/{first}/")
    expect(page.locator("textarea[name=comment]")).to_have_value("on second thought")
    console.clear()


def test_what_was_typed_offline_is_there_when_the_page_is_opened_again(
    desk: Callable[..., Page], console: list[str]
) -> None:
    page = desk(rows=2)
    first, address = item_of(page), page.url
    page.context.set_offline(True)
    page.keyboard.press("c")
    page.keyboard.type("half a thought")
    page.goto("about:blank")
    page.context.set_offline(False)
    page.goto(address)
    expect(page.locator(f"#item-{first}")).to_be_visible()
    expect(page.locator("textarea[name=comment]")).to_have_value("half a thought")
    console.clear()


def test_the_next_item_is_there_before_the_server_has_answered(desk: Callable[..., Page]) -> None:
    page, held = desk(rows=4), []
    page.route("**/verdict/", lambda route: held.append(route))
    give(page, "3", "Enter")
    expect(shown(page)).to_have_count(1)
    until(page, lambda: held)
    assert not Rating.objects.exists()
    held[0].continue_()
    sent(page)
    assert Rating.objects.count() == 1


def test_who_is_quicker_than_the_connection_gets_the_rest_as_soon_as_it_has_caught_up(
    page: Page, desk: Callable[..., Page]
) -> None:
    page.add_init_script(LOOKS_AGAIN_AT_NO_TIME)
    desk(rows=12)
    held: list[Route] = []
    page.route("**/verdict/", lambda route: held.append(route), times=1)
    for _ in range(10):
        give(page, "2", "Enter")
    expect(page.locator("#done")).to_be_visible()
    until(page, lambda: held)
    held[0].continue_()
    for _ in range(2):
        give(page, "2", "Enter")
    sent(page)
    assert Rating.objects.count() == 12


def test_differences_are_marked_and_unmarked(desk: Callable[..., Page]) -> None:
    page = desk(rows=2)
    page.keyboard.press("d")
    expect(shown(page).locator("mark").first).to_be_visible()
    page.keyboard.press("d")
    expect(shown(page).locator("mark")).to_have_count(0)


def test_at_the_end_the_desk_says_so(desk: Callable[..., Page]) -> None:
    page = desk(rows=1)
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="You're done")).to_be_visible()


def test_on_a_phone_the_answers_are_tabs_and_the_form_is_pinned(desk: Callable[..., Page]) -> None:
    page = desk(rows=2)
    page.set_viewport_size({"width": 390, "height": 800})
    expect(shown(page).locator("[data-side='B']")).to_be_hidden()
    shown(page).get_by_role("button", name="B", exact=True).click()
    expect(shown(page).locator("[data-side='B']")).to_be_visible()
    assert page.locator("#verdict").bounding_box()["y"] < 800  # type: ignore[index]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_on_a_phone_every_target_is_as_large_as_a_fingertip(desk: Callable[..., Page]) -> None:
    page = desk(rows=2)
    page.set_viewport_size({"width": 390, "height": 800})
    give(page, "2", "Enter")
    sent(page)
    assert small_targets(page) == []
    for key, dialog in (("s", "#skip"), ("p", "#mine"), ("h", "#keys"), ("?", "#ask")):
        page.keyboard.press(key)
        expect(page.locator(dialog)).to_be_visible()
        if key == "p":
            expect(page.locator("[data-earlier]")).to_be_visible()
        assert small_targets(page) == []
        page.keyboard.press("Escape")


def test_a_skip_waits_for_its_reason_and_another_reason_for_its_text(desk: Callable[..., Page]) -> None:
    page = desk(rows=2)
    page.keyboard.press("s")
    expect(page.locator("#skip input:checked")).to_have_count(0)
    page.get_by_role("button", name="Skip Enter").last.click()
    expect(page.locator("#skip-missing")).to_be_visible()
    page.keyboard.press("5")
    page.keyboard.press("Enter")
    expect(page.locator("#skip")).to_be_visible()
    page.keyboard.type("5 facts I cannot check")
    page.keyboard.press("Enter")
    expect(page.locator("#skip")).to_be_hidden()
    sent(page)
    skipped = Rating.objects.get()
    assert (skipped.reason, skipped.comment) == ("other", "5 facts I cannot check")
    page.keyboard.press("s")
    expect(page.locator("#skip input:checked")).to_have_count(0)


def test_the_reference_stays_folded_once_it_was_folded(desk: Callable[..., Page]) -> None:
    page = desk(rows=3, shows_reference=True)
    turns = [{"role": "user", "content": "question"}, {"role": "assistant", "content": "expected"}]
    Row.objects.update(raw=json.dumps({"messages": turns}))
    page.reload()
    reference = shown(page).locator("[data-reference]")
    expect(reference).to_have_attribute("open", "")
    reference.locator("summary").click()
    give(page, "2", "Enter")
    expect(reference).not_to_have_attribute("open", "")
    page.reload()
    expect(reference).not_to_have_attribute("open", "")
    reference.locator("summary").click()
    give(page, "2", "Enter")
    expect(reference).to_have_attribute("open", "")


def test_a_checklist_is_rated_line_by_line_and_follows_the_item(
    enter: Enter, project: Project, rita: User
) -> None:
    version = with_rubrics(project, [RUBRIC, RUBRIC[:2]], models=["alpha"])
    criteria = [Criterion(name="checklist", scale="checklist")]
    evaluation = make_evaluation(
        project, [rita], version=version, side_by_side=False, criteria=criteria, order="need", seed=1
    )
    page = enter(rita, f"/p/physics/desk/{evaluation.run_id}/")
    lines = page.locator(".criterion")
    count = lines.count()
    page.keyboard.press("Enter")
    expect(lines.first.locator("[data-error]")).to_have_text("Please choose first.")
    for _ in range(count):
        page.keyboard.press("3")
    give(page, "Enter")
    expect(lines).to_have_count(5 - count)
    expect(page.locator(".criterion :checked")).to_have_count(0)
    page.keyboard.press("u")
    expect(page.locator(".criterion :checked")).to_have_count(count)
    page.set_viewport_size({"width": 390, "height": 800})
    assert not small_targets(page)
