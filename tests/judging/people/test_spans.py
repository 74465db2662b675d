"""Marked spans: stored, exported and imported, in figures, decided, side by side on the item's page."""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import uuid4

import pytest
from django.core.exceptions import ValidationError

from datasets.models import Response
from evalsite.accounts.models import Project, User
from judging.core.people.criteria import Criterion, ValuesRefused
from judging.core.results_file.rating_lines import read_lines
from judging.people import assignments
from judging.people.adjudication import differing
from judging.people.gold import gold_add, gold_read
from judging.people.models import Adjudication, Assignment, Evaluation, Item, Rating
from judging.people.outcomes import item_kinds
from judging.people.progress import Hits, gold_hits
from judging.people.qualification import queue
from judging.people.qualification.feedback import training_feedback
from judging.people.qualification.services import qualification_change
from judging.people.rater_figures import study_ratings
from judging.people.rating_batch import RatingBatch
from judging.people.rating_export import csv_lines, people_of
from judging.records.models import Judgement, Run
from judging.reports.figures import for_page
from judging.reports.frames import run_frame
from judging.reports.people_result import results_of
from judging.reports.selectors import series_of
from judging.reports.services import report_document
from tests.api import Api
from tests.conftest import ClientOf
from tests.judging.people.make import PREFERENCE, answered, give, lines_of, make_evaluation, sent
from tests.make import a_version

pytestmark = pytest.mark.django_db
ERRORS = Criterion(name="Errors", scale="spans", categories=("Accuracy", "Style"))
ANSWER = "😀译文 <b>is</b> wrong"
MAJOR = {"start": 1, "end": 3, "label": "Accuracy", "severity": -5}
MINOR = {"start": 2, "end": 9, "label": "Style", "severity": -1}


def make_marking(project: Project, raters: list[User], **more: Any) -> Evaluation:
    version = more.pop("version", None) or a_version(project, rows=1, models=("alpha",))
    Response.objects.filter(row__version=version).update(raw=json.dumps({"content": ANSWER}))
    fixed: dict[str, Any] = {"side_by_side": False, "criteria": [ERRORS], "overlap": 2}
    return make_evaluation(project, raters, version=version, **{**fixed, **more})


@pytest.fixture
def evaluation(project: Project, rita: User, ravi: User) -> Evaluation:
    return make_marking(project, [rita, ravi])


def held(evaluation: Evaluation, user: User) -> Assignment:
    (assignment,) = assignments.claim(evaluation=evaluation, user=user, count=1)
    return assignment


def mark(evaluation: Evaluation, user: User, *spans: dict[str, Any]) -> Rating:
    return give(held(evaluation, user), json.dumps(spans))


@pytest.fixture
def marked(evaluation: Evaluation, rita: User, ravi: User) -> Evaluation:
    """Rita marks two overlapping spans, Ravi nothing."""
    mark(evaluation, rita, MINOR, MAJOR)
    mark(evaluation, ravi)
    return evaluation


def test_the_sum_is_the_score_and_the_spans_stay_with_the_rating(marked: Evaluation) -> None:
    assert list(Judgement.objects.order_by("pk").values_list("value", flat=True)) == ["-6", "0"]
    assert Judgement.objects.earliest("pk").score == -6
    stored = json.loads(json.loads(Rating.objects.earliest("pk").values)["0"])
    assert stored == [MAJOR, MINOR]


def test_a_span_beyond_the_answer_is_refused(evaluation: Evaluation, rita: User) -> None:
    with pytest.raises(ValuesRefused):
        mark(evaluation, rita, MAJOR | {"end": len(ANSWER) + 1})


@pytest.mark.parametrize(
    ("criteria", "side_by_side"),
    [([ERRORS, PREFERENCE], True), ([ERRORS, Criterion(name="b", scale="spans", categories=("x",))], False),
     ([Criterion(name="Errors", scale="spans")], False)],
)  # fmt: skip
def test_spans_are_marked_in_single_answers_under_one_criterion_with_labels(
    project: Project, criteria: list[Criterion], side_by_side: bool
) -> None:
    with pytest.raises(ValidationError):
        make_evaluation(project, criteria=criteria, side_by_side=side_by_side)


def test_sums_count_in_figures_without_a_scale(marked: Evaluation) -> None:
    assert sorted(run_frame(marked.run)["value"]) == [-6, 0]
    assert list(item_kinds(marked).values()) == [{0: "split"}]
    assert [entry.difference for entry in differing(marked)] == [1.0]
    assert [value.value for value in study_ratings(marked).values] == [-6, 0]


def test_the_result_shows_the_mean_of_the_sums(marked: Evaluation) -> None:
    run = Run.objects.get(pk=marked.run_id)
    stored = for_page(run)
    assert stored is not None
    document = report_document(run, stored.figures)
    (result,) = results_of(run, document, series_of([run.project_id])[run.project_id])
    assert [line.value for line in result.lines] == [-3]
    assert result.lines[0].shares == [("Accuracy", 1, "−5 × 1"), ("Style", 1, "−1 × 1")]


def test_an_export_has_sums_and_spans_and_can_be_imported_again(
    marked: Evaluation, project: Project, rita: User, ravi: User
) -> None:
    first, _second = lines_of(marked)
    assert (first["values"], first["spans"]) == ({"Errors": -6}, {"Errors": [MAJOR, MINOR]})
    for text in (json.dumps(first), b"".join(csv_lines(marked)).decode("utf-8-sig")):
        other = make_marking(project, [rita, ravi], version=marked.run.version)
        assert not RatingBatch(other, list(read_lines(text, [ERRORS]))).import_lines().wrong
        stored = Rating.objects.filter(rater__evaluation=other).earliest("pk")
        assert json.loads(stored.values) == json.loads(Rating.objects.earliest("pk").values)


def test_exports_of_judgements_have_the_spans_too(marked: Evaluation) -> None:
    judgements = list(Judgement.objects.select_related("rating", "run_metric").order_by("pk"))
    assert [of["spans"] for of in people_of(judgements).values()] == [[MAJOR, MINOR], []]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ({"values": {"Errors": -5}}, "value_not_on_scale"),
        ({"values": {"Errors": -4}, "spans": {"Errors": [MAJOR]}}, "value_not_on_scale"),
        ({"values": {}, "spans": {"Errors": "x"}}, "value_not_on_scale"),
        ({"values": {}, "spans": [MAJOR]}, "spans"),
        ({"values": {}, "spans": {"Other": [MAJOR]}}, "no_criterion"),
    ],
)
def test_bad_spans_in_a_file_are_refused(evaluation: Evaluation, line: dict[str, Any], code: str) -> None:
    line = {"row": 1, "candidate": "alpha", "rater": "R1", **line}
    batch = RatingBatch(evaluation, list(read_lines(json.dumps(line), [ERRORS])))
    assert [wrong.code for wrong in batch.import_lines().wrong] == [code]


def gold_line(known: object) -> str:
    return json.dumps({"row": 1, "a": "alpha", "values": {"Errors": known}})


@pytest.mark.parametrize(
    ("spans", "hit"),
    [
        ([MAJOR], True),
        ([MAJOR | {"start": 2, "end": 5}], True),  # overlaps
        ([MAJOR, MINOR], True),  # the sum is off by 1
        ([], False),
        ([MAJOR | {"label": "Style"}], False),
        ([MAJOR | {"start": 3, "end": 5}], False),
        ([MAJOR | {"start": 0, "end": 9}, MAJOR | {"start": 3, "end": 5}], False),  # the sum is off by 5
    ],
)
def test_known_spans_are_hit_by_overlap_and_label_with_a_sum_nearby(
    spans: list[dict[str, Any]], hit: bool, evaluation: Evaluation, rita: User
) -> None:
    gold, wrong = gold_read(evaluation, gold_line([MAJOR]))
    gold_add(evaluation=evaluation, gold=gold)
    rater = evaluation.raters.get(user=rita)
    give(assignments.assign(evaluation, rater, Item.objects.get()), json.dumps(spans))
    assert (wrong, list(gold_hits(evaluation).values())) == ([], [Hits(int(hit), 1)])


@pytest.mark.parametrize(
    "known", [[MAJOR | {"end": 99}], {"value": [MAJOR], "within": -1}, {"value": 3}, {"values": []}]
)
def test_known_spans_that_are_none_are_refused(known: object, evaluation: Evaluation) -> None:
    assert [wrong.line for wrong in gold_read(evaluation, gold_line(known))[1]] == [1]


def test_known_spans_are_marked_on_the_gold_page_and_changed(
    evaluation: Evaluation, alice: User, client_of: ClientOf
) -> None:
    client, address = client_of(alice), f"/p/physics/evaluations/{evaluation.run_id}/"
    place = {"row": "1", "a": str(evaluation.run.run_candidates.get().candidate_id)}
    assert "data-spans" in client.get(f"{address}gold/", place).text
    sent = place | {"v0": json.dumps([MAJOR]), "within_0": "2", "reason": ""}
    assert client.post(f"{address}gold/", sent).status_code == 302
    assert "−5 · Accuracy −5 (sum within 2)" in client.get(f"{address}gold/").text
    change = f"{address}items/{Item.objects.get().number}/gold/change/"
    assert "&quot;start&quot;:1" in client.get(change).text
    assert client.post(change, {"v0": "[]", "within_0": "0"}).status_code == 302
    assert json.loads(Item.objects.get().gold) == {"0": {"spans": "[]", "within": 0}}
    [known] = Api(alice).get(f"projects/physics/evaluations/{evaluation.run_id}/gold").json()["items"]
    assert known["values"] == {"Errors": {"value": [], "within": 0}}


def test_a_training_quotes_the_expected_spans(evaluation: Evaluation, rita: User, alice: User) -> None:
    gold_add(evaluation=evaluation, gold=gold_read(evaluation, gold_line([MAJOR]))[0])
    training = [Item.objects.get().pk]
    qualification_change(evaluation=evaluation, training=training, items=0, mark=1, by=alice)
    [assignment], _entry = queue.claim(rater=evaluation.raters.get(user=rita))
    feedback = training_feedback(give(assignment, "[]").assignment)
    assert feedback is not None
    assert [(part.expected, part.own, part.hit) for part in feedback.criteria] == [
        ("−5 · Accuracy −5 “译文”", "0", False)
    ]


def test_raters_spans_stand_side_by_side_on_the_items_page(
    marked: Evaluation, alice: User, client_of: ClientOf
) -> None:
    page = client_of(alice).get(f"/p/physics/evaluations/{marked.run_id}/items/1/").content.decode()
    assert "−6 · Accuracy −5, Style −1" in page
    assert (
        '<mark title="Accuracy −5">译</mark><mark title="Accuracy −5&nbsp;· Style −1"><u>文</u></mark>'
        in page
    )
    assert "Nothing to mark" in page
    assert "Use as gold" not in page


def test_an_adjudication_chooses_a_raters_spans(marked: Evaluation, bob: User, client_of: ClientOf) -> None:
    address = f"/p/physics/evaluations/{marked.run_id}/differences/1/"
    client = client_of(bob)
    page = client.get(address).content.decode()
    place = re.search(r'value="(\d)" data-digit="\d"><span>−6 · Accuracy −5', page)
    assert place is not None
    assert client.post(address, {"value_0": place[1], "reason": "Checked."}).status_code == 302
    assert json.loads(json.loads(Adjudication.objects.get().values)["0"]) == [MAJOR, MINOR]
    assert [line["adjudicated"] for line in lines_of(marked)] == [{"Errors": -6}] * 2
    assert lines_of(marked)[1]["adjudicated_spans"] == {"Errors": [MAJOR, MINOR]}
    frame = run_frame(marked.run)
    assert list(frame[(frame["source"] == "adjudicator").to_numpy()]["value"]) == [-6]


def test_the_form_starts_marking_with_proposed_labels(
    project: Project, rita: User, client_of: ClientOf, alice: User
) -> None:
    version = answered(a_version(project, rows=2))
    form = {**sent(version, [rita]), "kind": "spans"}
    client, new = client_of(alice), "/p/physics/evaluations/new/"
    part = {**form, "part": "criteria", "criteria-0-guideline": ""}
    assert "Terminology" in client.get(new, part, headers={"HX-Request": "true"}).content.decode()
    form |= {"criteria-0-scale": "spans", "criteria-0-name": "Errors"}
    assert "Enter 1 to 9 labels" in client.post(new, form).content.decode()
    assert client.post(new, form | {"criteria-0-categories": "Accuracy\r\nStyle"}).status_code == 302
    assert Evaluation.objects.get().criteria[0].categories == ("Accuracy", "Style")


def test_the_desk_works_without_its_script_and_keeps_carriage_returns(
    evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    Response.objects.update(raw=json.dumps({"content": "a\r\n\x00<"}))
    assignment, client = held(evaluation, rita), client_of(rita)
    page = client.get(f"/p/physics/desk/{evaluation.run_id}/").content.decode()
    assert "Labels and severities: Accuracy, Style; -1 -5 -10</p>" in page
    assert "data-spans>a&#13;\n\ufffd&lt;</div>" in page
    address = f"/p/physics/desk/{evaluation.run_id}/{assignment.token}/verdict/"
    values = json.dumps([MAJOR])
    assert client.post(address, {"key": str(uuid4()), "v0": ""}).status_code == 422
    assert client.post(address, {"key": str(uuid4()), "v0": values}).status_code == 302


@pytest.mark.parametrize("address", ["", "gold/", "items/", "ratings.csv", "raters/{rater}/"])
def test_every_page_of_the_evaluation_opens(
    marked: Evaluation, alice: User, client_of: ClientOf, address: str
) -> None:
    rater = marked.raters.order_by("pk")[0].pk
    base = f"/p/physics/evaluations/{marked.run_id}/"
    assert client_of(alice).get(base + address.format(rater=rater)).status_code == 200


def test_pages_with_agreement_say_that_it_is_of_sums(
    marked: Evaluation, alice: User, client_of: ClientOf
) -> None:
    client, address = client_of(alice), f"/p/physics/evaluations/{marked.run_id}/"
    rater = marked.raters.order_by("pk")[0]
    result = f"/p/physics/runs/{marked.run_id}/people-result/"
    pages = [client.get(page).text for page in (f"{address}raters/{rater.pk}/", f"{address}items/", result)]
    assert ["which passages they marked is not compared" in page for page in pages] == [True] * 3
