"""The pages: one answer at a time without scores and names, notes kept, groups by hand without JavaScript."""

from __future__ import annotations

import pytest
from django.test import Client

from evalsite.accounts.models import Project, User
from judging.look.groups import group_create
from judging.look.models import Look, Note, NoteGroup
from tests.conftest import ClientOf
from tests.judging.look.make import a_look, a_run_of, noted
from tests.make import a_version

BASE = "/p/physics/look/"


@pytest.fixture
def page(alice: User, client_of: ClientOf) -> Client:
    return client_of(alice)


@pytest.fixture
def look(project: Project, alice: User) -> Look:
    return a_look(project, alice)


def text_of(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def test_a_run_leads_to_a_draw_and_its_first_answer(page: Client, project: Project) -> None:
    run = a_run_of(project, rows=60)
    assert f"{BASE}new/?run={run.pk}" in text_of(page, f"/p/physics/runs/{run.pk}/")
    assert "30 rows, drawn at random, are set aside first" in text_of(page, f"{BASE}new/?run={run.pk}")
    response = page.post(f"{BASE}new/?run={run.pk}", {"size": 20})
    look = Look.objects.get()
    assert response.headers["Location"] == f"{BASE}{look.pk}/1/"


def test_a_filter_of_the_list_goes_along(page: Client, project: Project) -> None:
    run = a_run_of(project, rows=60)
    assert f"{BASE}new/?run={run.pk}&amp;filter=most%3D3.0" in text_of(
        page, f"/p/physics/runs/{run.pk}/judgements/?most=3"
    )
    page.post(f"{BASE}new/?run={run.pk}&filter=most%3D3", {"size": 20})
    assert Look.objects.get().query == "?most=3.0"


def test_a_data_set_without_answers_says_what_to_do(page: Client, project: Project) -> None:
    version = a_version(project, models=())
    assert "Attach answers" in text_of(page, f"{BASE}new/?version={version.pk}")


def test_a_run_that_has_judged_nothing_says_so(page: Client, project: Project) -> None:
    run = a_run_of(project, rows=3)
    run.judgements.all().delete()
    assert "The run has judged no answer yet." in text_of(page, f"{BASE}new/?run={run.pk}")


def test_fewer_than_twenty_answers_are_all_shown(page: Client, project: Project) -> None:
    run = a_run_of(project, rows=10)
    assert "fewer than 20" in text_of(page, f"{BASE}new/?run={run.pk}")
    page.post(f"{BASE}new/?run={run.pk}", {"size": 20})
    assert Look.objects.get().size == 5


def test_a_project_without_answers_offers_an_upload(page: Client) -> None:
    assert "No answers to look at" in text_of(page, f"{BASE}new/")


def test_the_answer_is_shown_without_name_and_score(page: Client, look: Look) -> None:
    shown = text_of(page, f"{BASE}{look.pk}/1/")
    assert "question" in shown
    assert "Because. Score" not in shown
    assert ">alpha<" not in shown


def test_submitting_stores_the_note_and_leads_on(page: Client, look: Look) -> None:
    response = page.post(
        f"{BASE}{look.pk}/1/", {"text": "wrong", "passed": "0", "new_kind": "on", "seen": "0"}
    )
    assert response.headers["Location"] == f"{BASE}{look.pk}/2/"
    assert list(Note.objects.values_list("text", "passed", "new_kind")) == [("wrong", False, True)]


def test_without_a_verdict_the_note_is_stored_and_the_page_asks(page: Client, look: Look) -> None:
    response = page.post(f"{BASE}{look.pk}/1/", {"text": "hm", "seen": "0"})
    assert response.status_code == 422
    assert "Please choose." in response.content.decode()
    assert Note.objects.get().text == "hm"


def test_a_note_changed_elsewhere_is_shown_beside_ones_own(page: Client, look: Look, alice: User) -> None:
    noted(look, alice, 1, "first")
    response = page.post(f"{BASE}{look.pk}/1/", {"text": "second", "passed": "0", "seen": "0"})
    assert response.status_code == 409
    shown = response.content.decode()
    assert "first" in shown
    assert "second" in shown
    assert Note.objects.get().text == "first"


def test_the_script_stores_a_note_and_learns_its_number(page: Client, look: Look) -> None:
    response = page.post(f"{BASE}{look.pk}/1/note/", {"text": "wro", "seen": "0"})
    assert response.json() == {"seen": 1}
    assert page.post(f"{BASE}{look.pk}/1/note/", {"text": "other", "seen": "0"}).status_code == 409


def test_after_the_last_answer_come_the_groups(page: Client, look: Look, alice: User) -> None:
    for place in range(1, look.size):
        noted(look, alice, place)
    response = page.post(f"{BASE}{look.pk}/{look.size}/", {"passed": "1", "seen": "0"})
    assert response.headers["Location"] == f"{BASE}{look.pk}/groups/"


def test_ten_failures_without_a_new_kind_are_said(page: Client, look: Look, alice: User) -> None:
    for place in range(1, 11):
        noted(look, alice, place)
    assert "under a quarter of the failures" in text_of(page, f"{BASE}{look.pk}/11/")


def test_few_failures_offer_a_draw_by_score(page: Client, look: Look, alice: User) -> None:
    for place in range(1, 21):
        noted(look, alice, place, passed=True)
    assert look.run is not None
    address = f"{BASE}new/?run={look.run_id}&amp;draw=score"
    assert address in text_of(page, f"{BASE}{look.pk}/groups/")
    response = page.post(
        address.replace("&amp;", "&"), {"size": 20, "by_score_of": look.run.metrics.get().pk}
    )
    assert response.status_code == 302
    assert Look.objects.latest("pk").weighted


def test_notes_are_grouped_with_checkboxes_and_a_select(page: Client, look: Look, alice: User) -> None:
    note = noted(look, alice, 1)
    page.post(
        f"{BASE}{look.pk}/groups/move/",
        {"chosen": f"{note.pk}-0", "into": "new", "name": "Wrong date", "act": "move"},
    )
    assert NoteGroup.objects.get(name="Wrong date").notes.get() == note
    assert "Wrong date" in text_of(page, f"{BASE}{look.pk}/groups/")


def test_a_definition_typed_while_somebody_changed_the_group_stays(
    page: Client, look: Look, alice: User, bob: User
) -> None:
    noted(look, alice, 1)
    group = group_create(look=look, user=bob, name="a")
    address = f"{BASE}{look.pk}/groups/{group.pk}/"
    page.post(address, {"name": "a", "definition": "theirs", "seen": "0"})
    response = page.post(address, {"name": "a", "definition": "mine", "seen": "0"})
    assert response.status_code == 409
    assert "mine" in response.content.decode()


def test_disagreements_are_shown_with_both_notes(page: Client, look: Look, alice: User, bob: User) -> None:
    noted(look, alice, 1, "too long")
    noted(look, bob, 1, "fine to me", passed=True)
    shown = text_of(page, f"{BASE}{look.pk}/groups/")
    assert "People disagree on" in shown
    assert "fine to me" in shown


def test_the_page_of_groups_does_not_send_people_to_itself(page: Client, look: Look, alice: User) -> None:
    for place in range(1, look.size + 1):
        noted(look, alice, place)
    said = "without a new kind"
    leads = f'<a href="{BASE}{look.pk}/groups/">Put the notes into groups</a>'
    for address, links in ((f"{BASE}{look.pk}/1/", 1), (f"{BASE}{look.pk}/groups/", 0)):
        shown = page.get(address).content.decode()
        assert (said in shown, shown.count(leads)) == (True, links)


def test_without_an_endpoint_grouping_by_hand_goes_on(page: Client, look: Look, alice: User) -> None:
    noted(look, alice, 1)
    assert "The project has no endpoint yet." in text_of(page, f"{BASE}{look.pk}/groups/")


def test_a_reviewer_looks_but_asks_no_model(look: Look, bob: User, client_of: ClientOf) -> None:
    noted(look, bob, 1)
    shown = text_of(client_of(bob), f"{BASE}{look.pk}/groups/")
    assert "An analyst or an administrator can ask a model" in shown
    assert "Write a judge for this" not in shown


def test_the_list_shows_how_far_each_look_is(page: Client, look: Look, alice: User) -> None:
    noted(look, alice, 1)
    assert look.name in text_of(page, BASE)
