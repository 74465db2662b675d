"""Answers that are ranked: the items, the order shown, the comparisons stored, changes, imports, figures."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from evalsite.accounts.models import Project, User
from judging.core.people.criteria import Criterion
from judging.core.results_file.rating_lines import read_lines
from judging.people import assignments, ratings
from judging.people.adjudication import adjudicate, differing
from judging.people.gold import gold_add, gold_read
from judging.people.guidelines.services import GuidelineTexts, guideline_change
from judging.people.models import Assignment, Evaluation, Item, Rating
from judging.people.progress import Hits, gold_hits
from judging.people.rating_batch import RatingBatch
from judging.people.rating_export import csv_lines
from judging.records.models import Judgement, Run
from judging.reports.frames import run_frame
from tests.conftest import ClientOf
from tests.judging.people.make import PREFERENCE, answered, give, lines_of, make_evaluation, sent
from tests.make import a_version

pytestmark = pytest.mark.django_db
RANK = Criterion(name="Preference", scale="rank")
MODELS = ("alpha", "beta", "gamma")


def make_ranking(
    project: Project, raters: list[User], models: tuple[str, ...] = MODELS, **more: object
) -> Evaluation:
    return make_evaluation(
        project,
        raters,
        models=models,
        scheme="rank",
        criteria=[RANK],
        **{"rows": 1, **more},  # type: ignore[arg-type]
    )


@pytest.fixture
def evaluation(project: Project, rita: User, ravi: User) -> Evaluation:
    return make_ranking(project, [rita, ravi], overlap=2)


def held(evaluation: Evaluation, user: User) -> Assignment:
    (assignment,) = assignments.claim(evaluation=evaluation, user=user, count=1)
    return assignment


def as_answers(assignment: Assignment, *places: int) -> str:
    """The ranking as its rater sees it, from the places of the answers in the item's order."""
    return ",".join(str(places[position]) for position in assignment.order)


def current(**filters: object) -> list[tuple[str, str, str]]:
    rows = Judgement.objects.filter(current=True, **filters).order_by("position")
    pairs = rows.values_list("response__candidate__name", "other_response__candidate__name", "value")
    return [(a, b, json.loads(value)) for a, b, value in pairs]


def test_an_item_has_the_answers_of_all_candidates_to_its_row(evaluation: Evaluation) -> None:
    (item,) = Item.objects.filter(evaluation=evaluation)
    assert item.candidate_names == list(MODELS)
    assert Run.objects.get(pk=evaluation.run_id).total == 6  # three pairs, two raters


def test_rows_with_fewer_than_three_answers_are_left_out(project: Project, rita: User) -> None:
    version = a_version(project, rows=2, models=MODELS)
    version.candidates.get(name="gamma").answers.filter(row__line=1).delete()
    assert make_ranking(project, [rita], version=version).items_count == 1


@pytest.mark.parametrize("models", [("a", "b"), tuple("abcdefg")])
def test_three_to_six_candidates_are_ranked(project: Project, models: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError):
        make_ranking(project, [], models=models)


@pytest.mark.parametrize(
    ("scheme", "criteria"), [("rank", [PREFERENCE]), ("rank", [RANK, PREFERENCE]), ("every_pair", [RANK])]
)
def test_a_ranking_and_other_scales_do_not_mix(
    project: Project, scheme: str, criteria: list[Criterion]
) -> None:
    with pytest.raises(ValidationError):
        make_evaluation(project, models=MODELS, scheme=scheme, criteria=criteria)


def test_a_rating_is_stored_as_the_comparisons_that_it_implies(evaluation: Evaluation, rita: User) -> None:
    assignment = held(evaluation, rita)
    rating = give(assignment, as_answers(assignment, 2, 1, 2))
    assert json.loads(rating.values) == {"0": "2,1,2"}
    assert current() == [("alpha", "beta", "B>A"), ("alpha", "gamma", "A=B"), ("beta", "gamma", "A>B")]


def test_each_comparison_knows_which_answer_stood_first(evaluation: Evaluation, rita: User) -> None:
    assignment = held(evaluation, rita)
    give(assignment, "1,2,3")  # the answer shown first is the best
    for shown_first, value in Judgement.objects.values_list("shown_first", "value"):
        assert json.loads(value or "") == ("A>B" if shown_first == 1 else "B>A")


def test_the_second_rater_sees_the_answers_in_the_reverse_order(
    evaluation: Evaluation, rita: User, ravi: User
) -> None:
    assert held(evaluation, rita).order == held(evaluation, ravi).order[::-1]


def test_a_double_submit_makes_one_rating(evaluation: Evaluation, rita: User) -> None:
    assignment, key = held(evaluation, rita), uuid4()
    give(assignment, "1,2,3", key=key)
    assert give(assignment, "1,2,3", key=key).repeated
    assert give(assignment, "3,2,1").repeated
    assert (Rating.objects.count(), Judgement.objects.count()) == (1, 3)


def test_a_change_replaces_all_comparisons_and_undo_brings_them_back(
    evaluation: Evaluation, rita: User
) -> None:
    assignment = held(evaluation, rita)
    give(assignment, as_answers(assignment, 1, 2, 3))
    before = current()
    values = {0: as_answers(assignment, 3, 2, 1)}
    ratings.change(assignment=assignment, values=values, key=uuid4())
    assert [value for *_, value in current()] == ["B>A"] * 3
    ratings.undo(evaluation=evaluation, user=rita, key=uuid4())
    assert current() == before
    ratings.undo(evaluation=evaluation, user=rita, key=uuid4())
    assert current() == []
    draft = json.loads(Assignment.objects.get(pk=assignment.pk).draft)
    assert draft["values"] == {"0": as_answers(assignment, 1, 2, 3)}


def test_the_run_counts_pairs_and_the_item_counts_ratings(evaluation: Evaluation, rita: User) -> None:
    give(held(evaluation, rita), "1,2,3")
    assert Run.objects.get(pk=evaluation.run_id).scored == 3
    assert Item.objects.get(evaluation=evaluation).rated == 1


def test_every_figure_takes_the_comparisons_of_a_row_as_one_unit(
    evaluation: Evaluation, rita: User, ravi: User
) -> None:
    for user in (rita, ravi):
        give(held(evaluation, user), "1,2,3")
    frame = run_frame(evaluation.run)
    assert (len(frame), frame["unit"].nunique()) == (6, 1)


def test_a_hidden_repeat_shows_the_reverse_order_and_makes_no_judgement(project: Project, rita: User) -> None:
    evaluation = make_ranking(project, [rita], rows=8, repeat_share=0.5)
    while found := assignments.claim(evaluation=evaluation, user=rita, count=9):
        for assignment in found:
            give(assignment, "1,2,3")
    repeats = Assignment.objects.filter(item__repeat_of__isnull=False)
    assert repeats
    for repeat in repeats:
        first = Assignment.objects.get(item=repeat.item.repeat_of)
        assert repeat.order == first.order[::-1]
    assert Judgement.objects.count() == 8 * 3


def test_opposite_rankings_differ_and_an_adjudication_decides_each_pair(
    evaluation: Evaluation, rita: User, ravi: User, alice: User
) -> None:
    for user, places in ((rita, (1, 2, 3)), (ravi, (3, 2, 1))):
        assignment = held(evaluation, user)
        give(assignment, as_answers(assignment, *places))
    assert [entry.difference for entry in differing(evaluation)] == [1.0]
    item = Item.objects.get(evaluation=evaluation)
    adjudicate(item=item, values={0: "1,2,2"}, reason="Checked.", by=alice)
    frame = run_frame(evaluation.run)
    decided = frame[(frame["source"] == "adjudicator").to_numpy()]
    assert sorted(zip(decided["candidate"], decided["other"], decided["label"], strict=True)) == [
        ("alpha", "beta", "A>B"),
        ("alpha", "gamma", "A>B"),
        ("beta", "gamma", "A=B"),
    ]


def test_an_export_names_the_candidates_and_can_be_imported_again(
    evaluation: Evaluation, project: Project, rita: User, ravi: User
) -> None:
    assignment = held(evaluation, rita)
    give(assignment, as_answers(assignment, 2, 1, 2))
    (line,) = lines_of(evaluation)
    assert line["values"] == {"Preference": {"alpha": 2, "beta": 1, "gamma": 2}}
    assert line["shown_order"] == [MODELS[position] for position in assignment.order]
    other = make_ranking(project, [rita, ravi], version=evaluation.run.version)
    for text in (json.dumps(line), b"".join(csv_lines(evaluation)).decode("utf-8-sig")):
        batch = RatingBatch(other, list(read_lines(text, [RANK])))
        imported = batch.import_lines()
        assert not imported.wrong
    stored = Assignment.objects.get(evaluation=other)
    assert (stored.order, json.loads(stored.rating.values)) == (assignment.order, {"0": "2,1,2"})  # type: ignore[union-attr]
    assert Judgement.objects.filter(run=other.run_id).count() == 3


@pytest.mark.parametrize(
    ("places", "code"),
    [
        ({"alpha": 1, "beta": 2}, "value_missing"),
        ({"alpha": 1, "beta": 2, "gamma": 9}, "value_not_on_scale"),
        ({"alpha": 1, "beta": 2, "delta": 3}, "no_candidate"),
    ],
)
def test_a_bad_ranking_in_a_file_is_refused(
    evaluation: Evaluation, places: dict[str, int], code: str
) -> None:
    line = {"row": 1, "rater": "R1", "values": {"Preference": places}}
    batch = RatingBatch(evaluation, list(read_lines(json.dumps(line), [RANK])))
    assert [wrong.code for wrong in batch.import_lines().wrong] == [code]


def test_gold_is_a_ranking_of_a_row_in_the_sample(project: Project, rita: User) -> None:
    evaluation = make_ranking(project, [rita], rows=2, gold_share=1.0)
    known = {"row": 1, "values": {"Preference": {"alpha": 1, "beta": 2, "gamma": 2}}}
    items, wrong = gold_read(evaluation, json.dumps(known))
    assert not wrong
    gold_add(evaluation=evaluation, gold=items)
    assert Run.objects.get(pk=evaluation.run_id).total == 3
    while found := assignments.claim(evaluation=evaluation, user=rita, count=9):
        for assignment in found:
            give(assignment, as_answers(assignment, 1, 2, 2))
    assert list(gold_hits(evaluation).values()) == [Hits(1, 1)]


def test_the_form_starts_a_ranking(project: Project, rita: User, client_of: ClientOf, alice: User) -> None:
    version = answered(a_version(project, rows=2, models=MODELS))
    form = {**sent(version, [rita]), "kind": "rank", "criteria-0-scale": "rank"}
    page = client_of(alice).post("/p/physics/evaluations/new/", form)
    assert page.status_code == 302
    assert Evaluation.objects.get().scheme == "rank"


def test_choosing_to_rank_proposes_a_ranking(
    project: Project, client_of: ClientOf, alice: User, rita: User
) -> None:
    version = answered(a_version(project, rows=2, models=MODELS))
    form = {**sent(version, [rita]), "kind": "rank", "part": "criteria", "criteria-0-guideline": ""}
    page = client_of(alice).get("/p/physics/evaluations/new/", form, headers={"HX-Request": "true"})
    assert '<option value="rank" selected>' in page.content.decode()


def test_the_form_says_how_many_candidates_can_be_ranked(
    project: Project, client_of: ClientOf, alice: User, rita: User
) -> None:
    version = answered(a_version(project, rows=2, models=MODELS))
    form = {**sent(version, [rita]), "kind": "rank", "criteria-0-scale": "rank"}
    form["candidates"] = form["candidates"][:2]
    page = client_of(alice).post("/p/physics/evaluations/new/", form)
    assert "Choose three to six candidates" in page.content.decode()


def desk_form(client: Client, evaluation: Evaluation, assignment: Assignment, **values: str) -> int:
    url = f"/p/physics/desk/{evaluation.run_id}/{assignment.token}/verdict/"
    return client.post(url, {"key": str(uuid4()), **values}).status_code


def test_a_ranking_is_given_by_the_pages_form(
    evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    assignment = held(evaluation, rita)
    client = client_of(rita)
    assert client.get(f"/p/physics/desk/{evaluation.run_id}/").status_code == 200
    assert (
        desk_form(client, evaluation, assignment, **{"v0.1": "0", "v0.2": "0"}) == 422
    )  # one place is missing
    assert desk_form(client, evaluation, assignment, **{"v0.1": "0", "v0.2": "0", "v0.3": "1"}) == 302
    assert sorted(json.loads(Rating.objects.get().values)["0"].split(",")) == ["1", "1", "2"]


def test_organisers_see_the_ranking_with_names(
    evaluation: Evaluation, rita: User, alice: User, client_of: ClientOf
) -> None:
    assignment = held(evaluation, rita)
    give(assignment, as_answers(assignment, 2, 1, 2))
    page = client_of(alice).get(f"/p/physics/evaluations/{evaluation.run_id}/items/1/").content.decode()
    assert "beta &gt; alpha = gamma" in page
    judgement = Judgement.objects.get(response__candidate__name="beta", current=True)
    page = (
        client_of(alice)
        .get(f"/p/physics/runs/{evaluation.run_id}/judgements/{judgement.pk}/")
        .content.decode()
    )
    assert "vs. gamma" in page


@pytest.mark.parametrize("address", ["", "gold/", "items/", "ratings.csv", "raters/{rater}/"])
def test_every_page_of_the_evaluation_opens(
    evaluation: Evaluation, rita: User, alice: User, client_of: ClientOf, address: str
) -> None:
    give(held(evaluation, rita), "1,2,3")
    rater = evaluation.raters.order_by("pk")[0].pk
    base = f"/p/physics/evaluations/{evaluation.run_id}/"
    assert client_of(alice).get(base + address.format(rater=rater)).status_code == 200
    assert client_of(alice).get(f"/p/physics/runs/{evaluation.run_id}/report/").status_code == 200


def test_repeats_under_a_new_guideline_have_all_answers(
    evaluation: Evaluation, rita: User, alice: User
) -> None:
    give(held(evaluation, rita), "1,2,3")
    texts = GuidelineTexts("Read all.", {0: "Which is best?"})
    guideline_change(evaluation=evaluation, texts=texts, seen=1, by=alice)
    repeat = Item.objects.get(evaluation=evaluation, repeat_of__isnull=False)
    assert repeat.candidate_names == list(MODELS)


def test_an_export_has_the_texts_of_all_ranked_answers(evaluation: Evaluation, rita: User) -> None:
    give(held(evaluation, rita), "1,2,3")
    (line,) = lines_of(evaluation, texts=True)
    answers = [json.loads(answer.raw)["content"] for answer in Item.objects.get().answers]
    assert [line["response"], line["other_response"], *line["further_responses"]] == answers
    assert (
        json.dumps(answers[2:], ensure_ascii=False).replace('"', '""')
        in b"".join(csv_lines(evaluation, texts=True)).decode()
    )


def test_of_more_than_six_candidates_the_form_says_so_before_and_in_the_preview(
    project: Project, rita: User, alice: User, client_of: ClientOf
) -> None:
    version = answered(a_version(project, rows=1, models=[f"model {n}" for n in range(8)]))
    client, form = client_of(alice), sent(version, [rita], kind="rank")
    page = client.get(f"/p/physics/evaluations/new/?version={version.pk}").text
    assert "at most six of the 8 candidates" in page
    preview = client.get(
        "/p/physics/evaluations/new/", form | {"part": "preview"}, headers={"HX-Request": "true"}
    )
    assert "Choose three to six candidates to rank." in preview.text
