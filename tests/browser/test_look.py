"""Looking and grouping by keyboard and by dragging; a note is saved while it is written."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from evalsite.accounts.models import Project, User
from judging.look.groups import group_create
from judging.look.models import Look, Note, NoteGroup
from tests.browser.waiting import until
from tests.judging.look.make import a_look, noted

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def look(project: Project, alice: User) -> Look:
    return a_look(project, alice)


def test_an_answer_is_noted_by_keyboard_and_saved_while_typing(
    enter: Callable[..., Page], look: Look, alice: User
) -> None:
    page = enter(alice, f"/p/physics/look/{look.pk}/1/")
    page.keyboard.press("c")
    page.keyboard.type("The date is wrong")
    until(page, lambda: Note.objects.filter(text="The date is wrong", passed=None).exists())
    for key in ("Escape", "k", "Enter"):
        page.keyboard.press(key)
    expect(page).to_have_url(f"{page.url.partition('/p/')[0]}/p/physics/look/{look.pk}/2/")
    assert Note.objects.values_list("passed", "new_kind").get() == (False, True)


def test_notes_are_put_into_groups_by_key_and_by_dragging(
    enter: Callable[..., Page], look: Look, alice: User
) -> None:
    for place in (1, 2):
        noted(look, alice, place)
    group = group_create(look=look, user=alice, name="Dates")
    page = enter(alice, f"/p/physics/look/{look.pk}/groups/")
    for chosen in (2, 0):
        page.keyboard.press("a")
        expect(page.locator("[name=chosen]:checked")).to_have_count(chosen)
    page.keyboard.press("j")
    page.keyboard.press("1")
    until(page, lambda: group.notes.count() == 1)
    expect(page.locator("[data-drop='0'] [data-note]")).to_have_count(1)
    page.drag_and_drop("[data-drop='0'] [data-note]", f"[data-drop='{group.pk}'] h2")
    until(page, lambda: group.notes.count() == 2)
    expect(page.get_by_text("Every note is in a group.")).to_be_visible()
    assert NoteGroup.objects.count() == 1
