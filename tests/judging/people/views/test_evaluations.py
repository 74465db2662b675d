"""The organiser's pages: create, manage and close an evaluation, and which roles may open them."""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from datasets.models import Candidate, Row
from evalsite.accounts.models import Project, Role, User
from evalsite.models import AuditEntry
from judging.people import assignments, ratings
from judging.people.models import Assignment, Evaluation, Item, Rating
from judging.people.sampling import prompt_of
from judging.people.selectors import WHICH
from tests.conftest import ClientOf, member
from tests.judging.people.make import answered, give, legacy, make_evaluation, rate_all, sent
from tests.make import a_version

pytestmark = pytest.mark.django_db


def new(client: Client, data: dict[str, Any]) -> Any:
    return client.post("/p/physics/evaluations/new/", data)


def test_an_analyst_makes_an_evaluation_that_its_raters_find(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    response = new(client_of(alice), sent(answered(a_version(project)), [rita]))
    evaluation = Evaluation.objects.get()
    assert response["Location"] == f"/p/physics/evaluations/{evaluation.run_id}/"
    assert "Round one" in client_of(rita).get("/p/physics/rating/").content.decode()
    assert AuditEntry.objects.filter(action="evaluation.created").count() == 1


def test_the_terms_are_kept_as_chosen(project: Project, alice: User, client_of: ClientOf) -> None:
    terms = {"gold_share": 10, "repeat_share": 20, "overlap": 2, "order": "need", "lease_minutes": 5}
    new(client_of(alice), sent(answered(a_version(project)), [], **terms))
    made = Evaluation.objects.get()
    assert (made.gold_share, made.repeat_share) == (0.1, 0.2)
    assert (made.overlap, made.order, made.lease_minutes) == (2, "need", 5)
    assert made.run.total == 6


def test_an_evaluation_without_raters_does_not_say_that_all_have_rated(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    client = client_of(alice)
    page = client.get(new(client, sent(answered(a_version(project)), []))["Location"]).text
    assert "No raters yet" in page
    assert "still need" not in page


def test_the_same_form_sent_twice_makes_one(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    data, client = sent(answered(a_version(project)), [rita]), client_of(alice)
    assert new(client, data)["Location"] == new(client, data)["Location"]
    assert Evaluation.objects.count() == 1


def test_a_name_that_reveals_a_model_is_refused(project: Project, alice: User, client_of: ClientOf) -> None:
    response = new(client_of(alice), sent(answered(a_version(project)), [], name="ALPHA against the rest"))
    assert response.status_code == 422
    assert "contains the model name alpha" in response.content.decode()


def test_a_guideline_that_reveals_a_model_is_refused(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    data = sent(answered(a_version(project)), [], **{"criteria-0-guideline": "Is beta better?"})
    assert new(client_of(alice), data).status_code == 422
    assert not Evaluation.objects.exists()


def test_a_comparison_of_single_answers_is_refused(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    response = new(client_of(alice), sent(answered(a_version(project)), [], kind="single"))
    assert "needs two answers side by side" in response.content.decode()


def test_a_further_criterion_is_asked_for_without_losing_anything(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    page = new(
        client_of(alice), sent(answered(a_version(project)), [], more="1", name="Kept")
    ).content.decode()
    assert 'name="criteria-1-name"' in page
    assert 'value="Kept"' in page


@pytest.mark.parametrize("answers", [True, False])
def test_a_legacy_version_opens_side_by_side_or_as_it_is(
    project: Project, alice: User, client_of: ClientOf, answers: bool
) -> None:
    version = legacy(project, answers)
    page = client_of(alice).get(f"/p/physics/evaluations/new/?version={version.pk}").content.decode()
    proposed = re.search(r'<input[^>]*name="kind"[^>]*checked', page)
    assert proposed is not None
    assert f'value="{"reference" if answers else "as_it_stands"}"' in proposed[0]
    assert "old expects p1" in page


def test_the_preview_names_no_candidate(project: Project, alice: User, client_of: ClientOf) -> None:
    version = answered(a_version(project))
    for one in version.candidates.all():
        Candidate.objects.filter(pk=one.pk).update(name=f"secret {one.pk}")
    asked = {"part": "preview", **sent(version, [])}
    part = client_of(alice).get("/p/physics/evaluations/new/", asked, headers={"HX-Request": "true"})
    assert "alpha says 1.1" in part.content.decode()
    assert "secret" not in part.content.decode()


def test_the_reference_is_next_to_the_candidate(project: Project, rita: User) -> None:
    version = legacy(project)
    evaluation = make_evaluation(project, [rita], version=version, scheme="reference")
    item = Item.objects.filter(evaluation=evaluation).order_by("number")[0]
    texts = [json.loads(one.raw)["content"] for one in (item.response, item.other_response) if one]
    assert texts == ["says p1", "old expects p1"]
    assert version.candidates.count() == 1


def test_the_references_of_two_versions_meet_where_the_prompts_are_the_same(
    project: Project, rita: User
) -> None:
    one, other = legacy(project, False), legacy(project, False, "newer", ("p2", "p3", "p1"))
    evaluation = make_evaluation(
        project, [rita], version=one, scheme="versions", choice={"candidates": (), "other_version": other}
    )
    others = [item.other_response for item in evaluation.items.order_by("number")]
    found = [json.loads(one.raw)["content"] for one in others if one]
    assert found == ["newer expects p1", "newer expects p2"]


def test_rows_match_by_what_was_asked_not_by_what_was_answered_on_the_way() -> None:
    turns = [
        [{"prompt": "a", "response": answer}, {"prompt": "b", "response": "end"}] for answer in ("x", "y")
    ]
    rows = [Row(raw=json.dumps({"conversation": one})) for one in turns]
    assert prompt_of(rows[0], "legacy_jsonl") == prompt_of(rows[1], "legacy_jsonl")


def test_a_reference_is_scored_as_it_is(project: Project, rita: User) -> None:
    evaluation = make_evaluation(
        project, [rita], version=legacy(project, False), side_by_side=False, choice={"candidates": ()}
    )
    give(assignments.claim(evaluation=evaluation, user=rita)[0], 4)
    assert evaluation.run.judgements.get().candidate.name == "reference"


def test_what_holds_the_references_is_shown_nowhere(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    version = legacy(project)
    make_evaluation(project, [rita], version=version, scheme="reference")
    client = client_of(alice)
    assert client.get(f"/p/physics/datasets/{version.dataset_id}/0/").status_code == 404
    assert "v0" not in client.get(f"/p/physics/datasets/{version.dataset_id}/").content.decode()


def test_the_page_shows_progress_and_repeats(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    ravi = member("ravi", project, Role.RATER)
    evaluation = make_evaluation(project, [rita, ravi], rows=4, overlap=2, repeat_share=0.5)
    for user, value in ((rita, "A=B"), (ravi, "both_bad")):
        while held := assignments.claim(evaluation=evaluation, user=user, count=1):
            give(held[0], value)
    page = client_of(alice).get(f"/p/physics/evaluations/{evaluation.run_id}/").content.decode()
    assert "2 / 2" in page  # repeats
    assert "complete" in page


def test_closing_frees_what_is_held_and_opening_brings_it_back(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    evaluation, client = make_evaluation(project, [rita], rows=1), client_of(alice)
    held = assignments.claim(evaluation=evaluation, user=rita)[0]
    client.post(f"/p/physics/evaluations/{evaluation.run_id}/close/")
    assert assignments.claim(evaluation=evaluation, user=rita) == []
    client.post(f"/p/physics/evaluations/{evaluation.run_id}/reopen/")
    assert assignments.claim(evaluation=evaluation, user=rita) == [held]


def test_a_leaver_keeps_the_verdicts_and_gives_the_rest_back(
    project: Project, alice: User, rita: User
) -> None:
    ravi = member("ravi", project, Role.RATER)
    evaluation = make_evaluation(project, [rita], rows=2)
    one, other = assignments.claim(evaluation=evaluation, user=rita)
    give(one, "A=B")
    assignments.rater_leave(rater=evaluation.raters.get(), by=alice)
    assignments.raters_add(evaluation=evaluation, users=[ravi], by=alice)
    assert [held.item for held in assignments.claim(evaluation=evaluation, user=ravi)] == [other.item]
    assert Rating.objects.count() == 1


def test_a_reassigned_item_goes_to_the_other_and_the_first_gets_it_no_more(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    ravi = member("ravi", project, Role.RATER)
    evaluation = make_evaluation(project, [rita, ravi], rows=1)
    held = assignments.claim(evaluation=evaluation, user=rita)[0]
    to = evaluation.raters.get(user=ravi)
    address = f"/p/physics/evaluations/{evaluation.run_id}/items/{held.item.number}/reassign/"
    client_of(alice).post(address, {"assignment": held.pk, "to": to.pk})
    assert assignments.claim(evaluation=evaluation, user=rita) == []
    assert [one.item for one in assignments.claim(evaluation=evaluation, user=ravi)] == [held.item]


def test_a_verdict_that_comes_after_reassigning_is_kept_as_an_extra_one(
    project: Project, alice: User, rita: User
) -> None:
    ravi = member("ravi", project, Role.RATER)
    evaluation = make_evaluation(project, [rita, ravi], rows=1)
    held = assignments.claim(evaluation=evaluation, user=rita)[0]
    assignments.item_reassign(assignment=held, to=evaluation.raters.get(user=ravi), by=alice)
    assert give(held, "A=B").extra


def test_gold_is_added_by_hand_and_shows_how_a_rater_does(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    evaluation = make_evaluation(
        project, [rita], rows=3, gold_share=1.0, side_by_side=False, models=["alpha"]
    )
    alpha = evaluation.run.version.candidates.get()
    address = f"/p/physics/evaluations/{evaluation.run_id}/gold/"
    response = client_of(alice).post(address, {"row": 2, "a": alpha.pk, "value_0": "3"})
    assert response.status_code == 302
    for _ in range(3):
        give(assignments.claim(evaluation=evaluation, user=rita, count=1)[0], 4)
    assert Item.objects.get(number=2).rated == 1
    assert evaluation.run.judgements.count() == 2
    assert "1 / 1" in client_of(alice).get(f"/p/physics/evaluations/{evaluation.run_id}/").content.decode()


def test_the_row_and_its_answers_are_shown_before_one_is_gold(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    evaluation, client = make_evaluation(project, rows=3, gold_share=0.5), client_of(alice)
    alpha, beta = evaluation.run.version.candidates.order_by("name")
    address = f"/p/physics/evaluations/{evaluation.run_id}/gold/"
    assert "value_0" not in client.get(address).text
    page = client.get(address, {"row": 2, "a": alpha.pk, "b": beta.pk}).text
    for shown in ("question 2", "alpha says 2.1", "beta says 2.1", "value_0", "Use as gold"):
        assert shown in page
    assert not Item.objects.exclude(gold="").exists()


@pytest.mark.parametrize("row", ["9", "0", "x", str(2**31)])
def test_a_row_that_is_not_there_is_reported_and_nothing_is_offered(
    project: Project, alice: User, client_of: ClientOf, row: str
) -> None:
    evaluation = make_evaluation(project, rows=3)
    alpha, beta = evaluation.run.version.candidates.order_by("name")
    address = f"/p/physics/evaluations/{evaluation.run_id}/gold/"
    page = client_of(alice).get(address, {"row": row, "a": alpha.pk, "b": beta.pk})
    assert (page.status_code, "errorlist" in page.text or 'role="alert"' in page.text) == (200, True)
    assert "value_0" not in page.text


def test_the_list_of_items_is_filtered_by_what_became_of_them(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    evaluation = make_evaluation(project, [rita], rows=3)
    rated, skipped, held = assignments.claim(evaluation=evaluation, user=rita, count=3)
    give(rated, "A>B")
    ratings.skip(assignment=skipped, reason="unclear", key=uuid4())
    address, client = f"/p/physics/evaluations/{evaluation.run_id}/items/", client_of(alice)
    shown = {
        which: re.findall(
            r'class="row-link" href="[^"]*/items/(\d+)/"', client.get(address, {"which": which}).text
        )
        for which in WHICH
    }
    assert shown["all"] == ["1", "2", "3"]
    assert shown["done"] == [str(rated.item.number)]
    assert shown["skipped"] == [str(skipped.item.number)]
    assert shown["held"] == [str(held.item.number)]
    assert shown["gold"] == shown["repeats"] == []


def test_an_item_is_used_as_gold_from_its_own_page(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    evaluation, client = make_evaluation(project, rows=3, gold_share=0.5), client_of(alice)
    address = f"/p/physics/evaluations/{evaluation.run_id}/items/2/"
    assert "Use as gold" in client.get(address).text
    page = client.post(f"{address}gold/", {"value_0": "5"}, follow=True).text
    assert Item.objects.get(number=2).gold == '{"0": "both_bad"}'
    assert "Use as gold" not in page
    assert "Known answers" in page


def test_what_a_rater_has_had_is_not_offered_as_gold(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    evaluation = make_evaluation(project, [rita], rows=1)
    assignments.claim(evaluation=evaluation, user=rita)
    address = f"/p/physics/evaluations/{evaluation.run_id}/items/1/"
    assert "cannot be used as gold" in client_of(alice).get(address).text
    page = client_of(alice).post(f"{address}gold/", {"value_0": "5"}, follow=True).text
    assert "A rater has already seen this item" in page
    assert not Item.objects.exclude(gold="").exists()


@pytest.mark.parametrize(("name", "status"), [("bob", 403), ("rita", 403), ("charlie", 404), ("adam", 302)])
def test_who_may_use_an_item_as_gold(
    project: Project, cast: dict[str, User], client_of: ClientOf, name: str, status: int
) -> None:
    address = f"/p/physics/evaluations/{make_evaluation(project, rows=1).run_id}/items/1/gold/"
    assert client_of(cast[name]).post(address, {"value_0": "5"}).status_code == status


def test_what_counts_as_a_hit_is_stated_beside_the_figures(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    evaluation, client = make_evaluation(project, [rita], rows=3, gold_share=0.5), client_of(alice)
    address = f"/p/physics/evaluations/{evaluation.run_id}/"
    says = "A hit is one of the accepted answers"
    assert says in client.get(f"{address}gold/").text
    assert says not in client.get(address).text
    client.post(f"{address}items/2/gold/", {"value_0": "5"})
    assert says in client.get(address).text


def test_a_file_of_gold_is_taken_whole_or_not_at_all(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    from django.core.files.uploadedfile import SimpleUploadedFile

    evaluation = make_evaluation(project, rows=3)
    lines = [
        '{"row": 1, "a": "alpha", "b": "beta", "values": {"preference": "A>B"}}',
        '{"row": 9, "a": "alpha", "b": "beta", "values": {"preference": "A>B"}}',
        '{"row": 1, "a": "alpha", "b": "beta", "values": {"preference": 3}}',
        "[" * 2000,
    ]
    address = f"/p/physics/evaluations/{evaluation.run_id}/gold/"
    page = client_of(alice).post(address, {"file": SimpleUploadedFile("g.jsonl", "\n".join(lines).encode())})
    result = page.content.decode()
    assert page.status_code == 422
    assert all(f"line {number}:" in result for number in (2, 3, 4))
    assert not Item.objects.exclude(gold="").exists()


def test_an_archived_evaluation_is_out_of_sight_and_comes_back(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    evaluation, client = make_evaluation(project, [rita], name="Old one"), client_of(alice)
    client.post(f"/p/physics/evaluations/{evaluation.run_id}/archive/")
    assert "Old one" not in client.get("/p/physics/evaluations/").content.decode()
    assert "Old one" in client.get("/p/physics/evaluations/?archived=1").content.decode()
    client.post(f"/p/physics/evaluations/{evaluation.run_id}/restore/")
    assert "Old one" in client.get("/p/physics/evaluations/").content.decode()


def test_a_human_evaluation_is_no_run_of_workers(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    evaluation, client = make_evaluation(project, [rita], name="By people"), client_of(alice)
    pk = evaluation.run_id
    assert "By people" not in client.get("/p/physics/runs/").content.decode()
    assert client.get(f"/p/physics/runs/{pk}/")["Location"] == f"/p/physics/evaluations/{pk}/"
    assert client.post(f"/p/physics/runs/{pk}/cancel/").status_code == 404


def test_neither_worker_nor_reconciler_touches_it(project: Project, rita: User) -> None:
    from judging.engine.reconcile import reconcile
    from judging.engine.run_worker import runs_to_work_on

    evaluation = make_evaluation(project, [rita])
    reconcile()
    assert evaluation.run_id not in runs_to_work_on("", None)
    evaluation.run.refresh_from_db()
    assert evaluation.run.state == "running"


ORGANISERS = {"alice", "adam", "olga"}
READERS = ORGANISERS | {"bob"}
REVIEWERS = {"bob", "adam", "olga"}
PAGES = [
    ("", READERS),
    ("items/", READERS),
    ("items/1/", READERS),
    ("gold/", ORGANISERS),
    ("import/", ORGANISERS),
    ("differences/", REVIEWERS),
    ("differences/1/", REVIEWERS),
    ("ratings.jsonl", READERS),
    ("ratings.csv", READERS),
    ("ratings.jsonl?names=1", ORGANISERS),
]


@pytest.mark.parametrize(("page", "allowed"), PAGES)
def test_each_page_is_shown_to_those_who_may_see_it(
    project: Project, cast: dict[str, User], client_of: ClientOf, page: str, allowed: set[str]
) -> None:
    evaluation = make_evaluation(project, [cast["rita"]])
    address = f"/p/physics/evaluations/{evaluation.run_id}/{page}"
    found = {name: client_of(user).get(address).status_code for name, user in cast.items()}
    assert found == {name: 200 if name in allowed else 404 if name == "charlie" else 403 for name in cast}


@pytest.mark.parametrize("what", ["close/", "reopen/", "archive/", "restore/", "raters/add/", "import/"])
def test_only_organisers_change_anything(
    project: Project, cast: dict[str, User], client_of: ClientOf, what: str
) -> None:
    evaluation = make_evaluation(project, [cast["rita"]])
    address = f"/p/physics/evaluations/{evaluation.run_id}/{what}"
    refused = {name: client_of(cast[name]).post(address).status_code for name in ("bob", "rita", "charlie")}
    assert refused == {"bob": 403, "rita": 403, "charlie": 404}


def test_an_evaluation_of_another_project_is_not_there(
    project: Project, charlie: User, client_of: ClientOf, rita: User
) -> None:
    evaluation = make_evaluation(project, [rita])
    assert client_of(charlie).get(f"/p/elsewhere/evaluations/{evaluation.run_id}/").status_code == 404
    assert Assignment.objects.count() == 0


def test_a_complete_evaluation_names_what_comes_next(
    project: Project, bob: User, rita: User, client_of: ClientOf
) -> None:
    evaluation, client = make_evaluation(project, [rita], rows=2), client_of(bob)
    address = f"/p/physics/evaluations/{evaluation.run_id}/"
    assert "Next steps" not in client.get(address).text
    rate_all(evaluation, rita, "A=B")
    page = client.get(address, {"part": "progress"}, headers={"HX-Request": "true"}).text
    assert f'href="/p/physics/runs/{evaluation.run_id}/report/"' in page
    assert f'href="/p/physics/evaluations/{evaluation.run_id}/differences/"' in page


def test_an_evaluation_that_wants_gold_items_names_them_as_the_next_step(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    pages = [
        client_of(alice)
        .get(f"/p/physics/evaluations/{make_evaluation(project, gold_share=share).run_id}/")
        .text
        for share in (0.5, 0.0)
    ]
    assert ["Add gold items" in page for page in pages] == [True, False]
