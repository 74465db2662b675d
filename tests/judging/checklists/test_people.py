"""People rate the lines of a row's rubric at the desk; what they say counts like a judge's checklist."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
from django.core.exceptions import ValidationError

from datasets.models import Row
from evalsite.accounts.models import Project, User
from judging.core.checklists import checklist_from
from judging.core.people.criteria import Criterion, ValuesRefused
from judging.core.results_file.rating_lines import read_lines
from judging.people import assignments
from judging.people.adjudication import differing
from judging.people.changes import StudyChange, rows_left, study_change
from judging.people.judgements import rating_forget
from judging.people.models import Assignment, Evaluation, Rating
from judging.people.rating_batch import RatingBatch
from judging.people.rating_export import csv_lines, jsonl_lines
from judging.records.models import Judgement
from judging.reports.figures import current_figures
from judging.transfer.export.results import results_lines
from tests.conftest import ClientOf
from tests.judging.checklists.helpers import RUBRIC, with_rubrics
from tests.judging.people.make import give, make_evaluation, rate_all

pytestmark = pytest.mark.django_db
CHECKLIST = Criterion(name="checklist", scale="checklist")
_MARKS = re.compile(r'"?\{"+1"+[^}]*\}"?')
"""The marks of a checklist in a file of ratings."""


def an_evaluation(project: Project, *raters: User, rubrics: int = 1, **more: object) -> Evaluation:
    version = with_rubrics(project, [RUBRIC] * rubrics, models=["alpha"])
    return make_evaluation(
        project,
        raters,
        version=version,
        side_by_side=False,
        criteria=[CHECKLIST],
        **more,  # type: ignore[arg-type]
    )


@pytest.fixture
def held(project: Project, rita: User) -> Assignment:
    evaluation = an_evaluation(project, rita)
    return assignments.claim(evaluation=evaluation, user=rita)[0]


def test_the_value_is_the_share_of_points(held: Assignment) -> None:
    give(held, "met,not_met,not_met")
    judgement = Judgement.objects.get()
    checklist = checklist_from(judgement.checklist)
    assert judgement.state == "scored"
    assert judgement.score == pytest.approx(7 / 11)
    assert checklist is not None
    assert [criterion.met for criterion in checklist.criteria] == [True, False, False]


def test_who_cannot_tell_leaves_the_value_open_with_its_bounds(held: Assignment) -> None:
    give(held, "met,open,not_met")
    judgement, run = Judgement.objects.get(), held.evaluation.run
    run.refresh_from_db()
    assert (judgement.state, judgement.value) == ("unparsed", None)
    assert judgement.detail == "1/3: 0.636…1"
    assert (run.unparsed, run.scored, run.total) == (1, 0, 1)


@pytest.mark.parametrize(
    ("value", "code"), [("met,,met", "missing"), ("met", "not_on_scale"), ("met,met,yes", "not_on_scale")]
)
def test_every_line_needs_one_of_the_three_marks(held: Assignment, value: str, code: str) -> None:
    with pytest.raises(ValuesRefused) as refused:
        give(held, value)
    assert refused.value.codes == {0: code}


def test_the_desk_shows_the_rows_criteria_and_stores_what_is_chosen(
    held: Assignment, rita: User, client_of: ClientOf
) -> None:
    address, client = f"/p/physics/desk/{held.evaluation.run_id}/", client_of(rita)
    page = client.get(address).text
    assert "names a dose" in page
    assert "quot;points" not in page
    draft = {"v0.1": "0", "comment": "so far"}
    client.post(f"{address}{held.token}/draft/", draft)
    assert 'data-values="{&quot;0.1&quot;: 0}"' in client.get(address).text
    sent = {"v0.1": "0", "v0.2": "2", "v0.3": "1", "key": str(uuid4())}
    client.post(f"{address}{held.token}/verdict/", sent)
    assert json.loads(Rating.objects.get().values) == {"0": "met,open,not_met"}
    assert "1 met · 1 not met · 1 can&#x27;t tell" in client.get(f"{address}mine/").text


def test_a_missing_line_is_asked_for(held: Assignment, rita: User, client_of: ClientOf) -> None:
    address = f"/p/physics/desk/{held.evaluation.run_id}/{held.token}/verdict/"
    answer = client_of(rita).post(address, {"v0.1": "0", "v0.3": "1", "key": str(uuid4())})
    assert answer.status_code == 422
    assert "Please choose." in answer.text
    assert 'name="v0.1" value="0" data-digit="1" checked' in answer.text


def test_raters_who_differ_on_a_line_are_adjudicated_line_by_line(
    project: Project, rita: User, ravi: User, olga: User, client_of: ClientOf
) -> None:
    evaluation = an_evaluation(project, rita, ravi, overlap=2)
    rate_all(evaluation, rita, "met,met,not_met")
    rate_all(evaluation, ravi, "met,not_met,open")
    assert [entry.difference for entry in differing(evaluation)] == [pytest.approx(2 / 3)]
    client, address = client_of(olga), f"/p/physics/evaluations/{evaluation.run_id}/differences/1/"
    assert "names a dose" in client.get(address).text
    sent = {"value_0.1": "0", "value_0.2": "1", "value_0.3": "1", "reason": "clear"}
    assert client.post(address, sent).status_code == 302
    (decision,) = evaluation.items.get().adjudications.all()
    assert json.loads(decision.values) == {"0": "met,not_met,not_met"}
    cell = current_figures(evaluation.run).figures.report["people_candidates"]["alpha"]["checklist"]
    assert cell["mean"] == pytest.approx(7 / 11)
    lines = [json.loads(line) for line in results_lines(evaluation.run)]
    decided = [line["value"] for line in lines if line.get("role") == "adjudicator"]
    assert decided == [True, False, False]


def test_the_report_tells_criteria_and_where_people_disagree(
    project: Project, rita: User, ravi: User
) -> None:
    evaluation = an_evaluation(project, rita, ravi, overlap=2, rubrics=2)
    rate_all(evaluation, rita, "met,met,not_met")
    rate_all(evaluation, ravi, "met,not_met,not_met")
    report = current_figures(evaluation.run).figures.report
    cell = report["people_candidates"]["alpha"]["checklist"]
    assert cell["mean"] == pytest.approx((1 + 7 / 11) / 2)
    assert [criterion["met"] for criterion in cell["criteria"]] == [4, 2, 0]
    (checklists,) = report["checklists"]
    assert [(entry["answers"], entry["percent"], entry["ac1"]) for entry in checklists["agreement"]] == [
        (2, 1.0, 1.0),
        (2, 0.0, -1.0),
        (2, 1.0, 1.0),
    ]
    assert {entry["criterion"]: entry["people_disagree"] for entry in checklists["health"]} == {
        "names a dose": 0,
        "is kind": 2,
        "recommends antibiotics": 0,
    }
    assert [raters["metric"] for raters in report["raters"]] == ["checklist"]


def test_ratings_leave_as_a_line_for_each_criterion(held: Assignment) -> None:
    give(held, "met,open,not_met")
    lines = [json.loads(line) for line in results_lines(held.evaluation.run)]
    assert [(line["criterion"], line["value"]) for line in lines] == [("1", True), ("2", None), ("3", False)]
    (record,) = [json.loads(line) for line in jsonl_lines(held.evaluation)]
    assert record["values"] == {"checklist": {"1": "met", "2": "open", "3": "not_met"}}


@pytest.mark.parametrize("lines_of", [jsonl_lines, csv_lines])
@pytest.mark.parametrize("old", [False, True])
def test_ratings_of_a_checklist_can_be_imported_again(
    held: Assignment, lines_of: Callable[..., Iterator[bytes]], old: bool
) -> None:
    give(held, "met,open,not_met")
    text = b"".join(lines_of(held.evaluation)).decode("utf-8-sig")
    if old:
        text = _MARKS.sub('"met,open,not_met"', text)
        assert "met,open,not_met" in text
    batch = list(read_lines(text, [CHECKLIST]))
    rating_forget(held.evaluation, Rating.objects.get())
    imported = RatingBatch(Evaluation.objects.get(), batch).import_lines()
    assert (imported.new, imported.wrong) == (1, [])
    assert json.loads(Rating.objects.get().values) == {"0": "met,open,not_met"}


@pytest.mark.parametrize(
    ("marks", "code"),
    [
        ({"1": True, "2": None, "3": False}, ""),
        ({"1": True, "9": False}, "no_line"),
        ({"1": True}, "value_missing"),
        ({"1": "maybe", "2": True, "3": True}, "value_not_on_scale"),
    ],
)
def test_marks_in_a_file_are_those_of_the_rubric(
    held: Assignment, marks: dict[str, object], code: str
) -> None:
    line = {"item": held.item.number, "rater": "rita", "values": {"checklist": marks}}
    batch = list(read_lines(json.dumps(line), [CHECKLIST]))
    imported = RatingBatch(held.evaluation, batch).import_lines()
    assert [refused.code for refused in imported.wrong] == [code] * bool(code)


def test_rows_without_a_rubric_are_left_out(project: Project, rita: User) -> None:
    version = with_rubrics(project, [RUBRIC, "no list"], models=["alpha"])
    evaluation = make_evaluation(project, [rita], version=version, side_by_side=False, criteria=[CHECKLIST])
    assert (evaluation.items_count, evaluation.run.rubric_rows_left_out) == (1, 1)


def test_rows_that_are_added_have_a_rubric(project: Project, rita: User) -> None:
    version = with_rubrics(project, [RUBRIC, "no list", RUBRIC, RUBRIC], models=["alpha"])
    first = Row.objects.get(version=version, line=1)
    evaluation = make_evaluation(
        project,
        [rita],
        version=version,
        side_by_side=False,
        criteria=[CHECKLIST],
        choice={"rows": {first.pk: 0.25}},
    )
    assert rows_left(evaluation) == 2
    study_change(evaluation=evaluation, change=StudyChange(1, 0.0, 1), by=rita)
    assert [round(item.drawn_with or 0, 2) for item in evaluation.items.all()] == [0.67, 0.67]


def test_a_checklist_without_any_rubric_is_refused(project: Project, rita: User) -> None:
    version = with_rubrics(project, ["no list"], models=["alpha"])
    with pytest.raises(ValidationError, match="None of these rows has a rubric"):
        make_evaluation(project, [rita], version=version, side_by_side=False, criteria=[CHECKLIST])


def test_pass_or_fail_is_said_so_to_raters(project: Project, rita: User, client_of: ClientOf) -> None:
    evaluation = make_evaluation(
        project, [rita], side_by_side=False, criteria=[Criterion(name="sound", scale="pass_fail")]
    )
    page = client_of(rita).get(f"/p/physics/desk/{evaluation.run_id}/").text
    assert "Pass <kbd>1</kbd>" in page
    assert "Yes" not in page
