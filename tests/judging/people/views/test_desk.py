"""The rating desk over HTTP: JSON for its script, forms without JavaScript."""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from datasets.models import Row
from evalsite.accounts.models import Project, User
from judging.people import assignments
from judging.people.models import Assignment, Evaluation, EvaluationRater, Rating
from tests.conftest import ClientOf
from tests.judging.people.make import QUALITY, give, make_evaluation
from tests.make import a_version

pytestmark = pytest.mark.django_db
JSON = {"Accept": "application/json"}


@pytest.fixture
def evaluation(project: Project, rita: User) -> Evaluation:
    return make_evaluation(project, [rita], rows=3)


@pytest.fixture
def held(evaluation: Evaluation, rita: User) -> Assignment:
    return assignments.claim(evaluation=evaluation, user=rita)[0]


def path(evaluation: Evaluation, *parts: object) -> str:
    return f"/p/physics/desk/{evaluation.run_id}/" + "".join(f"{part}/" for part in parts)


def sent(assignment: Assignment, **more: Any) -> dict[str, Any]:
    return {"v0": "1", "key": str(uuid4()), "seconds": "3.5", **more}


def test_by_forms_alone_a_verdict_leads_to_the_next_item(
    held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    client = client_of(rita)
    answer = client.post(path(evaluation, held.token, "verdict"), sent(held), follow=True)
    assert Rating.objects.get().seconds == 3.5
    assert f'id="item-{held.token}"' not in answer.text


def test_by_forms_alone_a_missing_choice_is_said_and_nothing_typed_is_lost(
    held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    values = sent(held, v0="", comment="wordy")
    answer = client_of(rita).post(path(evaluation, held.token, "verdict"), values)
    assert answer.status_code == 422
    assert "Please choose." in answer.text


def test_the_script_gets_a_fresh_token_and_with_the_next_items_the_progress(
    held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    client = client_of(rita)
    said = client.post(path(evaluation, held.token, "verdict"), sent(held), headers=JSON).json()
    assert (said["open"], said["sentence"], len(said["token"])) == (True, "", 64)
    assert client.get(path(evaluation, "items"), headers=JSON).json()["left"] == 2


def test_a_verdict_is_stored_with_few_queries(
    held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    client, address = client_of(rita), path(evaluation, held.token, "verdict")
    with CaptureQueriesContext(connection) as queries:
        client.post(address, sent(held), headers=JSON)
    assert len(queries) <= 19  # 30 raters at once wait for each other's


@pytest.mark.parametrize("again", [False, True])
def test_criteria_are_queried_once_per_verdict(
    again: bool, held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    client, values = client_of(rita), sent(held)
    if again:
        client.post(path(evaluation, held.token, "verdict"), values, headers=JSON)
        values = sent(held, v0="2", attempt="1")
    with CaptureQueriesContext(connection) as queries:
        client.post(path(evaluation, held.token, "verdict"), values, headers=JSON)
    assert Rating.objects.count() == 1 + again
    assert sum('"judging_runmetric"."definition"' in one["sql"] for one in queries) == 1


def test_a_verdict_and_what_follows_take_few_queries(
    project: Project, rita: User, client_of: ClientOf
) -> None:
    shares = {"gold_share": 0.1, "repeat_share": 0.1}
    evaluation, client = make_evaluation(project, [rita], rows=20, **shares), client_of(rita)
    address = f"/p/physics/desk/{evaluation.run_id}/items/"
    tokens = [item["id"] for item in client.get(address, headers=JSON).json()["items"]]
    held = Assignment.objects.get(token=tokens.pop(0))
    with CaptureQueriesContext(connection) as verdict:
        client.post(path(evaluation, held.token, "verdict"), sent(held), headers=JSON)
    with CaptureQueriesContext(connection) as following:
        client.get(address, {"have": ",".join(tokens)}, headers=JSON)
    assert len(verdict) <= 19
    assert not [query for query in verdict if 'FROM "judging_qualification"' in query["sql"]]
    assert sum('FROM "judging_qualification"' in query["sql"] for query in following) == 1


def test_what_a_request_knows_is_not_queried_again(project: Project, rita: User, client_of: ClientOf) -> None:
    shares = {"gold_share": 0.1, "repeat_share": 0.1}
    evaluation, client = make_evaluation(project, [rita], rows=90, **shares), client_of(rita)
    address = f"/p/physics/desk/{evaluation.run_id}/items/"
    tokens: list[str] = []
    while new := client.get(address, {"have": ",".join(tokens)}, headers=JSON).json()["items"]:
        tokens += [item["id"] for item in new]
    with CaptureQueriesContext(connection) as items:
        client.get(address, {"have": ",".join(tokens)}, headers=JSON)
    with CaptureQueriesContext(connection) as item:
        client.get(path(evaluation, tokens[0]), headers=JSON)
    assert len(items) <= 19
    assert len(item) <= 14


def test_the_same_verdict_sent_twice_is_stored_once(
    held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    client, values = client_of(rita), sent(held)
    for _ in range(2):
        assert client.post(path(evaluation, held.token, "verdict"), values, headers=JSON).status_code == 200
    assert Rating.objects.count() == 1


@pytest.mark.parametrize("nonsense", ["9", "-1", "x", "1.0", "\u0663"])
def test_a_choice_that_is_none_is_refused(
    nonsense: str, held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    values = sent(held, v0=nonsense)
    answer = client_of(rita).post(path(evaluation, held.token, "verdict"), values, headers=JSON)
    assert answer.status_code == 422
    assert list(answer.json()["errors"]) == ["0"]


def test_a_verdict_for_a_closed_evaluation_is_kept_as_a_draft_and_said(
    held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    Evaluation.objects.update(closed_at=timezone.now())
    answer = client_of(rita).post(path(evaluation, held.token, "verdict"), sent(held), headers=JSON)
    assert answer.status_code == 409
    held.refresh_from_db()
    assert json.loads(held.draft)["values"] == {"0": "A>B"}


def test_a_skip_of_a_closed_evaluation_keeps_what_the_form_held(
    held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    Evaluation.objects.update(closed_at=timezone.now())
    skipped = sent(held, reason="unclear", comment="which year?")
    answer = client_of(rita).post(path(evaluation, held.token, "skip"), skipped, headers=JSON)
    assert answer.status_code == 409
    held.refresh_from_db()
    assert json.loads(held.draft) == {"values": {"0": "A>B"}, "comment": "which year?"}


def test_a_verdict_of_someone_who_was_removed_is_kept_as_a_draft(
    held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    EvaluationRater.objects.update(left_at=timezone.now())
    answer = client_of(rita).post(path(evaluation, held.token, "verdict"), sent(held), headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (409, "left")


def test_what_an_earlier_release_left_unsent_in_a_browser_is_accepted(
    held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    client, by_number = client_of(rita), path(evaluation, held.pk, "verdict")
    values = sent(held, shown=str(held.shown_first))
    waiting = client.get(path(evaluation, "items"), {"given": str(held.pk)}, headers=JSON).json()
    assert str(held.token) not in [item["id"] for item in waiting["items"]]
    assert client.post(by_number, values, headers=JSON).status_code == 200
    assert Rating.objects.get().assignment == held


def test_a_rating_of_an_earlier_release_for_the_other_side_is_refused(
    held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    values = sent(held, shown=str(3 - (held.shown_first or 0)))
    answer = client_of(rita).post(path(evaluation, held.pk, "verdict"), values, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (409, "sides_differ")


@pytest.mark.parametrize("name", ["verdict", "skip", "draft", "undo", "give-back", "items", "mine"])
def test_what_another_users_page_sends_is_refused_and_does_nothing(
    name: str, held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    give(held, "A>B")
    before = list(Assignment.objects.values_list("state", "draft"))
    where = path(evaluation, *([held.token] if name in ("verdict", "skip", "draft") else []), name)
    client, headers = client_of(rita), {**JSON, "X-Rater": str(rita.pk + 1)}
    send = client.get if name in ("items", "mine") else client.post
    assert send(where, sent(held, until=timezone.now().isoformat()), headers=headers).status_code == 412
    assert (list(Assignment.objects.values_list("state", "draft")), Rating.objects.count()) == (before, 1)
    assert client.get(path(evaluation, "items"), headers={**JSON, "X-Rater": str(rita.pk)}).status_code == 200


def test_no_reason_for_a_skip_is_chosen_beforehand(
    held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    page = client_of(rita).get(path(evaluation)).text
    reasons = re.findall(r'<input type="radio" name="reason"[^>]*>', page)
    assert len(reasons) == 5
    assert not [one for one in reasons if "checked" in one or "required" not in one]


@pytest.mark.parametrize("shows", [True, False])
def test_the_reference_is_open_if_the_organiser_said_so(
    shows: bool, project: Project, rita: User, client_of: ClientOf
) -> None:
    version = a_version(project)
    turns = [{"role": "user", "content": "question"}, {"role": "assistant", "content": "expected"}]
    Row.objects.filter(version=version).update(raw=json.dumps({"messages": turns}))
    evaluation = make_evaluation(project, [rita], version=version, shows_reference=shows)
    page = client_of(rita).get(path(evaluation)).text
    assert ('<details class="fold" data-reference open>' in page) is shows


def test_what_the_page_has_is_not_sent_again(
    held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    said = client_of(rita).get(path(evaluation, "items"), {"have": str(held.token)}, headers=JSON).json()
    assert str(held.token) not in [item["id"] for item in said["items"]]
    assert len(said["items"]) == 2


def test_a_draft_is_there_again_on_the_next_page(
    held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    client = client_of(rita)
    client.post(path(evaluation, held.token, "draft"), {"v0": "4", "comment": "so far"}, headers=JSON)
    assert "so far" in client.get(path(evaluation)).text


def test_undo_brings_the_item_back_to_the_script(
    held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    give(held, "A>B")
    said = client_of(rita).post(path(evaluation, "undo"), {"key": str(uuid4())}, headers=JSON).json()
    assert [item["id"] for item in said["items"]] == [str(held.token)]


def test_the_list_of_earlier_ones_shows_what_was_said(
    held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    give(held, "A>>B")
    page = client_of(rita).get(path(evaluation, "mine")).text
    assert "A much better" in page
    assert "question" in page


def test_marked_differences_hold_both_answers(
    held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    said = client_of(rita).get(path(evaluation, held.token, "difference"), headers=JSON).json()
    assert all("<mark>" in side for side in said["sides"])


def test_of_one_answer_there_is_nothing_to_mark(project: Project, rita: User, client_of: ClientOf) -> None:
    evaluation = make_evaluation(project, [rita], side_by_side=False, criteria=[QUALITY])
    held = assignments.claim(evaluation=evaluation, user=rita)[0]
    said = client_of(rita).get(path(evaluation, held.token, "difference"), headers=JSON).json()
    assert said["sides"] == ['<div class="text"></div>\n'] * 2


def test_an_item_of_another_evaluation_is_not_there(
    held: Assignment, project: Project, rita: User, client_of: ClientOf
) -> None:
    other = make_evaluation(project, [rita])
    assert client_of(rita).get(path(other, held.token)).status_code == 404


@pytest.mark.parametrize("name", ["alice", "bob", "charlie"])
def test_who_does_not_rate_finds_no_desk(
    name: str, evaluation: Evaluation, cast: dict[str, User], client_of: ClientOf
) -> None:
    assert client_of(cast[name]).get(path(evaluation)).status_code in (403, 404)


def test_without_a_csrf_token_nothing_is_taken(held: Assignment, evaluation: Evaluation, rita: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(rita)
    answer = client.post(path(evaluation, held.token, "verdict"), sent(held), headers=JSON)
    assert answer.status_code == 403
    assert not Rating.objects.exists()


def test_a_verdict_refused_for_a_lost_session_is_taken_after_signing_in_again(
    held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    client, values = client_of(rita), sent(held)
    client.logout()
    assert client.post(path(evaluation, held.token, "verdict"), values, headers=JSON).status_code == 302
    client.force_login(rita)
    for _ in range(2):
        client.post(path(evaluation, held.token, "verdict"), values, headers=JSON)
    assert Rating.objects.count() == 1


def test_a_change_that_was_not_submitted_is_filled_in_and_said(
    held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    give(held, "A>B")
    client, own = client_of(rita), path(evaluation, held.token)
    typed = {"v0": "1", "comment": "On second thought", "attempt": "1"}
    client.post(path(evaluation, held.token, "draft"), typed, headers=JSON)
    page = client.get(own).text
    assert "On second thought" in page
    assert "was not submitted" in page
    client.post(path(evaluation, held.token, "verdict"), typed | {"key": uuid4()}, headers=JSON)
    assert "was not submitted" not in client.get(own).text


@pytest.mark.parametrize(("language", "gap"), [("en", " "), ("zh-hans", "")])
def test_sentences_of_the_status_are_joined_as_in_the_readers_language(
    held: Assignment, evaluation: Evaluation, rita: User, client_of: ClientOf, language: str, gap: str
) -> None:
    page = client_of(rita).get(path(evaluation), headers={"Accept-Language": language})
    assert f'data-gap="{gap}"' in page.text
