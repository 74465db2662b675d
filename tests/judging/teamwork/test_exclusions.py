"""An answer excluded by a reviewer is not part of the run's figures; report and exports state this."""

from __future__ import annotations

import csv
import io

import pytest

from evalsite.accounts.models import Project, User
from judging.filters.judgement_filter import ANYTHING, Filters
from judging.people import assignments
from judging.records.models import Judgement, Run
from judging.reports.frames import run_frame
from judging.reports.labels import left_out_sentences
from judging.reports.services import report_document
from judging.runs.rerun.rejudge import Selection, run_rejudge
from judging.teamwork.batches import change_many, undo
from judging.teamwork.marks import Change, Kind, change_one
from judging.transfer.export.files import csv_lines
from judging.transfer.export.records import records
from tests.judging.judged import a_judged_run, first_of, judge, said
from tests.judging.people.make import give, make_evaluation

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(project: Project) -> Run:
    """Three rows; alpha's answers got 1, beta's 9."""
    return a_judged_run(project, lambda place: said(1 if place % 2 == 0 else 9))


def exclude(run: Run, by: User, **filters: object) -> object:
    change = Change(Kind.EXCLUDE, reason="wrong language")
    return change_many(run=run, filters=Filters(**filters), change=change, by=by)


def responses(run: Run, candidate: str = "alpha") -> int:
    cell = report_document(Run.objects.get(pk=run.pk))["candidates"][candidate]["quality"]
    return int(cell["responses"])


def test_figures_leave_excluded_answers_out_until_the_exclusion_is_withdrawn(run: Run, bob: User) -> None:
    one = first_of(run)
    before = responses(run)
    change_one(judgement=one, change=Change(Kind.EXCLUDE, reason="wrong language"), by=bob)
    assert (before, responses(run)) == (3, 2)
    change_one(judgement=one, change=Change(Kind.INCLUDE), by=bob)
    assert responses(run) == 3


def test_an_exclusion_outlives_another_attempt(run: Run, bob: User) -> None:
    exclude(run, bob, line=1)
    run_rejudge(run=run, selection=Selection(ANYTHING), user=None)
    judge(run, lambda _: said(5))
    assert sorted(set(run_frame(run)["row"])) == [2, 3]


def test_the_report_says_how_many_are_excluded_by_which_user_and_why(run: Run, bob: User) -> None:
    exclude(run, bob, line=1)
    left_out = report_document(run)["left_out"]
    assert left_out["excluded"] == 2
    assert left_out["excluded_by"] == [{"by": "bob", "reason": "wrong language", "judgements": 2}]
    assert left_out_sentences(left_out) == ["2 judgements excluded by bob: wrong language"]
    assert left_out_sentences(left_out, named=False) == ["2 judgements excluded."]  # for shared reports


def test_all_of_a_candidate_may_be_excluded(run: Run, bob: User) -> None:
    action = exclude(run, bob, candidate="alpha")
    assert set(run_frame(run)["candidate"]) == {"beta"}
    undo(action=action, by=bob)
    assert responses(run) == 3


def test_a_comparison_is_left_out_whichever_of_its_answers_is_excluded(
    project: Project, rita: User, bob: User
) -> None:
    evaluation = make_evaluation(project, [rita], rows=2, scheme="every_pair")
    for item in assignments.claim(evaluation=evaluation, user=rita, count=2):
        give(item, "A>B")
    first, second = Judgement.objects.filter(run=evaluation.run).order_by("position")
    change = Change(Kind.EXCLUDE, reason="x")
    change_one(judgement=first, change=change, by=bob)
    assert list(run_frame(evaluation.run)["row"]) == [second.row.line]


def test_exports_show_what_is_excluded(run: Run, bob: User) -> None:
    exclude(run, bob, line=1)
    found = [(one["line"], one.get("excluded", {}).get("by")) for one in records(run)]
    assert found == [(1, "bob"), (1, "bob"), (2, None), (2, None), (3, None), (3, None)]
    table = csv.DictReader(io.StringIO(b"".join(csv_lines(run)).decode("utf-8-sig")))
    assert [row["exclusion_reason"] for row in table] == ["wrong language"] * 2 + [""] * 4


def test_exports_of_a_run_without_exclusions_are_as_ever(run: Run) -> None:
    assert b"excluded" not in b"".join(csv_lines(run))
