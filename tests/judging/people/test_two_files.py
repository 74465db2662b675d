"""Two legacy files side by side: each side has a name, shown everywhere except on the rating desk."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from datasets.models import Version
from evalsite.accounts.models import Project, User
from judging.core.results_file.rating_lines import read_lines
from judging.people import assignments
from judging.people.blindness import proposed_names, sides_of, sides_rename
from judging.people.changes import StudyChange, study_change
from judging.people.gold import gold_add, gold_of_item, item_at
from judging.people.models import Evaluation
from judging.people.rating_batch import ImportedRatings, RatingBatch
from judging.people.rating_export import records
from judging.reports.services import report_document
from judging.transfer.export.files import csv_lines
from judging.transfer.export.records import records as judgements
from tests.conftest import ClientOf
from tests.judging.people.make import give, legacy, make_evaluation, sent

pytestmark = pytest.mark.django_db


@pytest.fixture
def files(project: Project) -> tuple[Version, Version]:
    """Two files whose answers do not name a model."""
    made = legacy(project, False, "one"), legacy(project, False, "two", ("p2", "p1"))
    for version, name in zip(made, ("orpo.jsonl", "base.jsonl.gz"), strict=True):
        version.file_name = name
        version.save(update_fields=["file_name"])
    return made


@pytest.fixture
def evaluation(project: Project, rita: User, files: tuple[Version, Version]) -> Evaluation:
    choice = {"candidates": (), "other_version": files[1]}
    return make_evaluation(project, [rita], version=files[0], scheme="versions", choice=choice)


def rated(evaluation: Evaluation, rita: User) -> Evaluation:
    for held in assignments.claim(evaluation=evaluation, user=rita):
        give(held, "A>B")
    return evaluation


def taken(evaluation: Evaluation, text: str) -> ImportedRatings:
    lines = list(read_lines(text, list(evaluation.criteria.values())))
    return RatingBatch(evaluation, lines).import_lines()


def names(evaluation: Evaluation) -> list[str]:
    return [side.name for side in sides_of(evaluation)]


def posted(client: Client, files: tuple[Version, Version], **more: Any) -> Any:
    chosen = {"kind": "versions", "other_version": files[1].pk, "candidates": [], **more}
    return client.post("/p/physics/evaluations/new/", sent(files[0], [], **chosen))


def test_the_names_are_proposed_from_the_files(files: tuple[Version, Version]) -> None:
    assert proposed_names(*files) == ("orpo", "base")


def test_files_of_one_name_are_distinguished_by_data_set_or_version(files: tuple[Version, Version]) -> None:
    one, two = files
    two.file_name = "ORPO.csv"
    assert proposed_names(one, two) == ("one", "two")
    two.dataset, two.number = one.dataset, 2
    assert proposed_names(one, two) == ("one v1", "one v2")


def test_the_form_is_filled_with_the_twin_and_both_names(
    files: tuple[Version, Version], alice: User, client_of: ClientOf
) -> None:
    page = client_of(alice).get(f"/p/physics/evaluations/new/?version={files[0].pk}").content.decode()
    assert f'<option value="{files[1].pk}" selected>' in page
    assert 'value="orpo"' in page
    assert 'value="base"' in page
    assert "two expects p1" in page  # the preview


def test_another_file_brings_its_own_name_and_a_typed_one_stays(
    project: Project, files: tuple[Version, Version], alice: User, client_of: ClientOf
) -> None:
    third = legacy(project, False, "third")
    data = {
        "part": "sides",
        "other_version": third.pk,
        "name_here": "mine",
        "name_there": "base",
        "version": files[0].pk,
        "kind": "versions",
    }
    part = client_of(alice).get("/p/physics/evaluations/new/", data, headers={"HX-Request": "true"})
    assert 'value="mine"' in part.content.decode()
    assert 'value="upload"' in part.content.decode()


def test_names_are_kept_as_given(files: tuple[Version, Version], alice: User, client_of: ClientOf) -> None:
    assert posted(client_of(alice), files, name_here=" Model X ", name_there="").status_code == 302
    assert names(Evaluation.objects.get()) == ["Model X", "base"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"name_here": "Same", "name_there": "same "}, "different names"),
        ({"name": "Is my orpo better?"}, "contains the model name orpo"),
        ({"criteria-0-guideline": "Prefer base"}, "contains the model name base"),
    ],
)
def test_similar_names_and_names_that_raters_would_read_are_refused(
    files: tuple[Version, Version], alice: User, client_of: ClientOf, more: dict[str, str], said: str
) -> None:
    page = posted(client_of(alice), files, **more)
    assert page.status_code == 422
    assert said in page.content.decode()


def test_an_evaluation_without_names_gets_those_of_the_files(evaluation: Evaluation) -> None:
    assert names(evaluation) == ["orpo", "base"]


def test_two_evaluations_of_the_same_files_have_names_of_their_own(
    project: Project, evaluation: Evaluation, files: tuple[Version, Version], adam: User
) -> None:
    choice = {"candidates": (), "other_version": files[1]}
    second = make_evaluation(project, version=files[0], scheme="versions", choice=choice)
    sides_rename(evaluation=second, here="x", there="y", by=adam)
    assert (names(evaluation), names(second)) == (["orpo", "base"], ["x", "y"])


@pytest.mark.parametrize("address", ["evaluations/{}/", "evaluations/{}/items/", "evaluations/{}/items/1/"])
def test_organisers_pages_name_both_sides(
    evaluation: Evaluation, alice: User, client_of: ClientOf, address: str
) -> None:
    page = client_of(alice).get(f"/p/physics/{address.format(evaluation.run_id)}").content.decode()
    assert "orpo" in page
    assert "base" in page


@pytest.mark.parametrize("address", ["evaluations/{}/", "evaluations/{}/items/1/"])
def test_the_other_data_set_is_linked(
    evaluation: Evaluation, files: tuple[Version, Version], alice: User, client_of: ClientOf, address: str
) -> None:
    page = client_of(alice).get(f"/p/physics/{address.format(evaluation.run_id)}").content.decode()
    for version in files:
        assert f'href="/p/physics/datasets/{version.dataset_id}/v1/">{version.dataset.name} v1</a>' in page


def test_the_list_of_evaluations_names_both_data_sets(
    evaluation: Evaluation, files: tuple[Version, Version], alice: User, client_of: ClientOf
) -> None:
    page = client_of(alice).get("/p/physics/evaluations/").content.decode()
    for version in files:
        assert f'{version.dataset.name} <span class="badge">v1</span>' in page


def test_the_list_of_judgements_and_each_one_name_both_sides(
    evaluation: Evaluation, rita: User, alice: User, client_of: ClientOf
) -> None:
    rated(evaluation, rita)
    client = client_of(alice)
    listed = client.get(f"/p/physics/runs/{evaluation.run_id}/judgements/").content.decode()
    one = evaluation.run.judgements.first()
    page = client.get(f"/p/physics/runs/{evaluation.run_id}/judgements/{one.pk}/").content.decode()
    for text in (listed, page):
        assert "orpo" in text
        assert "vs. base" in text
    item = client.get(f"/p/physics/evaluations/{evaluation.run_id}/items/1/").content.decode()
    for text in (page, item):  # each answer once: the reference is one of the two
        assert text.count("one expects") == text.count("two expects") == 1


def test_exports_name_both_sides(evaluation: Evaluation, rita: User) -> None:
    rated(evaluation, rita)
    assert {(one["candidate"], one["other"]) for one in records(evaluation)} == {("orpo", "base")}
    found = {(one["model"], one["other_model"], one["other_response"]) for one in judgements(evaluation.run)}
    assert found == {("orpo", "base", 1)}
    table = csv.DictReader(b"".join(csv_lines(evaluation.run)).decode("utf-8-sig").splitlines())
    assert {(row["model"], row["other_model"]) for row in table} == {("orpo", "base")}


def test_results_name_the_sides(evaluation: Evaluation, rita: User) -> None:
    assert set(report_document(rated(evaluation, rita).run)["candidates"]) == {"orpo", "base"}


def test_gold_is_given_by_the_names(evaluation: Evaluation) -> None:
    gold = gold_of_item(evaluation, item_at(evaluation, 2, "orpo", "base"), {"preference": "A>B"})
    assert gold_add(evaluation=evaluation, gold=[gold]) == 1
    item = evaluation.items.exclude(gold="").get()
    assert item.other_response is not None
    texts = [json.loads(one.raw)["content"] for one in (item.response, item.other_response)]
    assert texts == ["one expects p2", "two expects p2"]


def test_ratings_of_another_evaluation_are_matched_by_the_names(
    project: Project, evaluation: Evaluation, rita: User, alice: User, client_of: ClientOf
) -> None:
    rated(evaluation, rita)
    line = next(records(evaluation)) | {"item": 99, "key": None}
    second = make_evaluation(
        project,
        [rita],
        version=evaluation.run.version,
        scheme="versions",
        choice={"candidates": (), "other_version": evaluation.other_version},
    )
    found = [taken(second, json.dumps(line))]
    assert [(one.new, one.wrong) for one in found] == [(1, [])]


def test_raters_never_see_the_names(
    evaluation: Evaluation, rita: User, adam: User, client_of: ClientOf
) -> None:
    sides_rename(evaluation=evaluation, here="Secret-X", there="Secret-Y", by=adam)
    client, base = client_of(rita), f"/p/physics/desk/{evaluation.run_id}/"
    held = assignments.claim(evaluation=evaluation, user=rita)[0]
    for address in ("/p/physics/rating/", base, f"{base}{held.token}/", f"{base}mine/"):
        assert names_in(client.get(address)) == []
    for address in (f"{base}items/", f"{base}{held.token}/", f"{base}{held.token}/difference/"):
        assert names_in(client.get(address, headers={"Accept": "application/json"})) == []


def names_in(page: Any) -> list[str]:
    """Names of sides and files that appear on the page."""
    return [name for name in ("Secret", "orpo", "base.jsonl") if name in page.content.decode()]


def test_the_names_are_changed_later(evaluation: Evaluation, alice: User, client_of: ClientOf) -> None:
    address = f"/p/physics/evaluations/{evaluation.run_id}/sides/"
    client, before = client_of(alice), evaluation.run.revision
    assert 'value="orpo"' in client.get(address).content.decode()
    assert client.post(address, {"here": "after", "there": "before"}).status_code == 302
    assert names(evaluation) == ["after", "before"]
    evaluation.run.refresh_from_db()
    assert evaluation.run.revision > before  # stored figures contain the names


def test_what_was_exported_under_other_names_is_known_again(
    evaluation: Evaluation, rita: User, adam: User
) -> None:
    lines = "\n".join(json.dumps(one) for one in records(rated(evaluation, rita)))
    sides_rename(evaluation=evaluation, here="after", there="before", by=adam)
    found = [taken(evaluation, lines)]
    assert [(one.new, one.existing, one.wrong) for one in found] == [(0, 2, [])]


def test_alike_names_are_refused_later_too_and_what_was_typed_stays(
    evaluation: Evaluation, alice: User, client_of: ClientOf
) -> None:
    address = f"/p/physics/evaluations/{evaluation.run_id}/sides/"
    page = client_of(alice).post(address, {"here": "twice", "there": "Twice"})
    assert page.status_code == 422
    assert 'value="twice"' in page.content.decode()
    assert names(evaluation) == ["orpo", "base"]


def test_a_name_that_raters_can_read_is_refused_later_too(evaluation: Evaluation, adam: User) -> None:
    with pytest.raises(ValidationError, match="Raters can read Preference"):
        sides_rename(evaluation=evaluation, here="Preference", there="base", by=adam)


def test_gold_proposes_the_sides_in_the_order_of_the_items(
    evaluation: Evaluation, adam: User, alice: User, client_of: ClientOf
) -> None:
    sides_rename(evaluation=evaluation, here="z", there="a", by=adam)
    page = client_of(alice).get(f"/p/physics/evaluations/{evaluation.run_id}/gold/").content.decode()
    first, second = page.split('<select name="a"')[1].split('<select name="b"')
    assert first.index(">z<") < first.index(">a<")
    assert "selected>a<" in second.split("</select>")[0]


@pytest.mark.parametrize(("who", "status"), [("rita", 403), ("bob", 403), ("alice", 200)])
def test_only_who_runs_evaluations_may_rename(
    request: pytest.FixtureRequest, evaluation: Evaluation, client_of: ClientOf, who: str, status: int
) -> None:
    client = client_of(request.getfixturevalue(who))
    assert client.get(f"/p/physics/evaluations/{evaluation.run_id}/sides/").status_code == status


def test_only_two_files_have_names(project: Project, adam: User) -> None:
    with pytest.raises(ValidationError):
        sides_rename(evaluation=make_evaluation(project), here="a", there="b", by=adam)


def test_rows_that_are_added_are_compared_under_the_same_names(
    project: Project, rita: User, files: tuple[Version, Version]
) -> None:
    choice = {"candidates": (), "other_version": files[1], "sample_size": 1}
    evaluation = make_evaluation(project, [rita], version=files[0], scheme="versions", choice=choice)
    sides = [side.candidate for side in sides_of(evaluation)]
    study_change(evaluation=evaluation, change=StudyChange(1, 0.0, 1), by=rita)
    items = evaluation.items.order_by("number")
    assert [(item.response.candidate, item.other_response.candidate) for item in items] == [tuple(sides)] * 2
    assert len({item.row_id for item in items}) == 2
