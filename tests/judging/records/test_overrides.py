"""Overrides belong to an answer and a metric: they survive further attempts until withdrawn."""

from __future__ import annotations

import csv
import io
import threading
from typing import Any

import pandas as pd
import pytest
from django.db import connection, transaction

from evalsite.accounts.models import Project, Role, User
from evalsite.models import AuditEntry
from judging.engine import chunks, planning
from judging.engine.write_buffer import WriteBatch, write
from judging.filters.conditions import matching
from judging.filters.counts import counts_by_state, counts_in_force, reasons
from judging.filters.judgement_filter import ANYTHING, UNSCORED, Filters
from judging.people import assignments, ratings
from judging.records.definitions import definition_now
from judging.records.models import Judgement, Override, Run
from judging.records.overrides import OverrideConflict, override_add, override_withdraw, run_lock
from judging.reports.services import report_document
from judging.runs import services
from judging.runs.rerun import reparse
from judging.runs.rerun.rejudge import run_rejudge
from judging.runs.rerun.selection import Selection
from judging.transfer.export.files import csv_lines, parquet_blocks
from judging.transfer.export.records import records
from tests.conftest import member
from tests.judging.judged import a_judged_run, failed, first_of, judge, said
from tests.judging.people.make import give, make_evaluation

pytestmark = pytest.mark.django_db
ITEMS = 6


@pytest.fixture
def run(project: Project) -> Run:
    """Three rows with two answers each, all scored 7."""
    return a_judged_run(project, lambda _: said(7))


def set_to(judgement: Judgement, value: Any, by: User, **more: Any) -> Override:
    return override_add(judgement=judgement, value=value, reason="seen", by=by, **more)


def judge_again(run: Run) -> None:
    run_rejudge(run=run, selection=Selection(ANYTHING), user=None)


def current(judgement: Judgement) -> Judgement:
    return Judgement.objects.get(run=judgement.run_id, response=judgement.response_id, current=True)


def in_force(judgement: Judgement) -> tuple[int, str | None, str, str | None, float | None]:
    """Of the current attempt: number, own value, and state, value and score in force."""
    now = current(judgement)
    return now.attempt, now.value, now.state_in_force, now.value_in_force, now.score_in_force


# —— later attempts


def test_an_override_stays_in_force_when_its_item_is_judged_again(run: Run, bob: User) -> None:
    one = first_of(run)
    set_to(one, 3, bob)
    judge_again(run)
    judge(run, lambda _: said(9))
    assert in_force(one) == (2, "9", "scored", "3", 3.0)


def test_an_override_and_its_withdrawal_are_changes_until_the_item_is_judged_again(
    run: Run, bob: User
) -> None:
    one = first_of(run)
    assert one.changed_at == one.finished_at
    assert current(one).changed_at < set_to(one, 3, bob).at.timestamp() == current(one).changed_at
    withdrawn = override_withdraw(judgement=one, reason="no", by=bob)
    assert current(one).changed_at == withdrawn.at.timestamp()
    judge_again(run)
    judge(run, lambda _: said(9))
    assert current(one).changed_at == current(one).finished_at


def test_an_item_that_waits_to_be_judged_again_keeps_its_override(run: Run, bob: User) -> None:
    one = first_of(run)
    set_to(one, 3, bob)
    judge_again(run)
    assert in_force(one) == (2, None, "scored", "3", 3.0)
    assert current(one).state == "not_run"


def test_only_the_current_attempt_is_overridden(run: Run, bob: User) -> None:
    one = first_of(run)
    set_to(one, 3, bob)
    judge_again(run)
    one.refresh_from_db()
    assert (one.overridden, one.value_in_force) == (False, "7")


def test_an_override_made_while_the_item_is_judged_again_counts_for_the_new_attempt(
    run: Run, bob: User
) -> None:
    one = first_of(run)
    judge_again(run)
    leased = chunks.lease(run.pk, "test:1:1")
    assert leased
    items = chunks.load(leased, run.version.format)
    set_to(one, 3, bob)  # on the page of the earlier attempt, which is still open
    judged = [chunks.Judged(item, said(9)) for item in items]
    write(WriteBatch(judged, finished={leased.chunk}), "test:1:1")
    assert in_force(one) == (2, "9", "scored", "3", 3.0)


def test_an_override_stays_in_force_when_replies_are_parsed_again(run: Run, bob: User) -> None:
    one, metric = first_of(run), run.metrics.get()
    set_to(one, 3, bob)
    definition = definition_now(metric)
    made = reparse.run_reparse(run=run, run_metric=metric, definition=definition, user=None)
    judge(run, lambda _: said(8))
    assert (made, in_force(one)) == (ITEMS, (2, "8", "scored", "3", 3.0))


def test_what_a_reviewer_gave_a_value_is_not_asked_again_with_the_unparsed(
    project: Project, bob: User
) -> None:
    run = a_judged_run(project, lambda place: said(None) if place < 2 else failed())
    one = first_of(run)
    set_to(one, 3, bob)
    assert services.run_retry(run, ("unparsed",)) == 1
    judge(run, lambda _: said(9))
    assert in_force(one) == (1, None, "scored", "3", 3.0)
    assert counts_in_force(Run.objects.get(pk=run.pk)) == {
        "scored": 2, "no_score": 0, "unparsed": 0, "unsettled": 0, "error": 4, "not_run": 0,
    }  # fmt: skip


def test_an_override_of_a_rating_stays_when_its_rater_changes_it(project: Project, bob: User) -> None:
    rater = member("rho", project, Role.RATER)
    evaluation = make_evaluation(project, [rater], rows=1, overlap=1, side_by_side=False, models=["alpha"])
    held = assignments.claim(evaluation=evaluation, user=rater)[0]
    give(held, 2)
    one = evaluation.run.judgements.get()
    set_to(one, 5, bob)
    held.refresh_from_db()
    ratings.change(assignment=held, values={0: 3}, key="7b0de4a3-2b21-4d36-9c8c-0a3c5d2a7f10", shown=None)
    assert in_force(one) == (2, "3", "scored", "5", 5.0)
    one.refresh_from_db()
    assert not one.overridden


# —— withdrawing


def test_a_withdrawn_override_counts_no_more_and_stays_in_the_history(run: Run, bob: User) -> None:
    one = first_of(run)
    set_to(one, 3, bob)
    override_withdraw(judgement=one, reason="I misread it.", by=bob)
    assert in_force(one) == (1, "7", "scored", "7", 7.0)
    assert list(Override.objects.order_by("pk").values_list("value", "reason")) == [
        ("3", "seen"),
        (None, "I misread it."),
    ]
    assert AuditEntry.objects.filter(action="override.withdrawn").count() == 1


def test_a_withdrawn_override_does_not_come_back_with_the_next_attempt(run: Run, bob: User) -> None:
    one = first_of(run)
    set_to(one, 3, bob)
    judge_again(run)
    override_withdraw(judgement=current(one), reason="no", by=bob)
    judge(run, lambda _: said(9))
    assert in_force(one) == (2, "9", "scored", "9", 9.0)


def test_nothing_can_be_withdrawn_where_nothing_is_in_force(run: Run, bob: User) -> None:
    with pytest.raises(OverrideConflict):
        override_withdraw(judgement=first_of(run), reason="no", by=bob)


def test_of_two_reviewers_the_second_must_have_seen_the_first_one_s_value(
    run: Run, bob: User, adam: User
) -> None:
    one = first_of(run)
    seen = set_to(one, 3, bob, seen=0)
    with pytest.raises(OverrideConflict):
        set_to(one, 4, adam, seen=0)
    set_to(one, 5, adam, seen=seen.pk)
    assert in_force(one)[3] == "5"


# —— lists, counts, figures


@pytest.fixture
def varied(project: Project, bob: User) -> Run:
    """Scored, unparsed and failed judgements, one of each overridden; the scored one of these is being re-judged."""
    run = a_judged_run(project, lambda place: [said(place + 1), said(None), failed()][place % 3], rows=6)
    of_state = {state: run.judgements.filter(state=state)[0] for state in ("scored", "unparsed", "error")}
    for value, one in enumerate(of_state.values(), 8):
        set_to(one, value, bob)
    run_rejudge(run=run, selection=Selection(ANYTHING, of_state["scored"].pk), user=None)
    return Run.objects.get(pk=run.pk)


@pytest.mark.parametrize("state", ["scored", *UNSCORED])
def test_each_state_of_the_report_leads_to_as_many_judgements(varied: Run, state: str) -> None:
    cells = [cell["quality"] for cell in report_document(varied)["candidates"].values()]
    figure = sum(cell["errors" if state == "error" else state] for cell in cells)
    assert figure == matching(varied, Filters(state=state)).count()
    assert figure == (counts_by_state(varied, ANYTHING) or {}).get(state, 0)


def test_each_bar_of_a_distribution_leads_to_its_judgements(varied: Run) -> None:
    for candidate, cells in report_document(varied)["candidates"].items():
        for bar in cells["quality"]["distribution"]:
            asked = Filters(candidate=candidate, state="scored", least=bar["low"], most=bar["high"])
            assert matching(varied, asked).count() == bar["count"]


def test_overrides_are_counted_and_found(varied: Run) -> None:
    cells = [cell["quality"]["overridden"] for cell in report_document(varied)["candidates"].values()]
    assert sum(cells) == matching(varied, Filters(overridden="yes")).count() == 3
    assert matching(varied, Filters(overridden="no")).count() == 9


def test_a_reason_counts_only_what_is_not_overridden(varied: Run) -> None:
    counted = {(state, code): count for state, code, count in reasons(varied)}
    for (state, code), count in counted.items():
        assert matching(varied, Filters(state=state, reason=code)).count() == count
    assert sum(counted.values()) == 8 - 2


def test_figures_that_were_kept_are_worked_out_again(run: Run, bob: User) -> None:
    before = report_document(run)["candidates"]["alpha"]["quality"]["mean"]
    one = first_of(run)
    set_to(one, 1, bob)
    meanwhile = report_document(Run.objects.get(pk=run.pk))["candidates"]["alpha"]["quality"]["mean"]
    override_withdraw(judgement=one, reason="no", by=bob)
    after = report_document(Run.objects.get(pk=run.pk))["candidates"]["alpha"]["quality"]["mean"]
    assert (before, meanwhile, after) == (7, 5, 7)


# —— exports


def test_a_record_has_the_value_in_force_and_the_attempt_s_own(project: Project, bob: User) -> None:
    run = a_judged_run(project, lambda _: said(None))
    made = set_to(first_of(run), 3, bob)
    overridden, other = list(records(run))[:2]
    assert [overridden[name] for name in ("state", "value", "reason")] == ["scored", 3, None]
    assert overridden["override"] == {
        "own": {"state": "unparsed", "value": None, "reason": "nothing_offered"},
        "reason": "seen",
        "by": "bob",
        "at": made.at.isoformat(),
    }
    assert "override" not in other


def table(run: Run) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(b"".join(csv_lines(run)).decode("utf-8-sig"))))


def test_a_table_has_the_value_in_force_and_the_attempt_s_own(run: Run, bob: User) -> None:
    assert "own_value" not in table(run)[0]
    set_to(first_of(run), 3, bob)
    overridden, other = table(run)[:2]
    names = ("value", "own_state", "own_value", "overridden_by", "override_reason")
    assert [overridden[name] for name in names] == ["3", "scored", "7", "bob", "seen"]
    assert [other[name] for name in names] == ["7", "", "", "", ""]


def test_a_parquet_file_has_the_score_in_force(run: Run, bob: User) -> None:
    set_to(first_of(run), 3, bob)
    first = pd.read_parquet(io.BytesIO(b"".join(parquet_blocks(run)))).iloc[0]
    assert (first["value"], first["score"], first["own_value"]) == ("3", 3.0, "7")


# —— concurrency


@pytest.mark.django_db(transaction=True)
def test_an_override_waits_for_attempts_that_are_being_made_and_counts_for_them(run: Run, bob: User) -> None:
    one, done = first_of(run), threading.Event()

    def override() -> None:
        try:
            set_to(one, 3, bob)
        finally:
            done.set()
            connection.close()

    thread = threading.Thread(target=override)
    with transaction.atomic():
        run_lock(run.pk)
        thread.start()
        planning.plan_attempts(run, run.judgements.filter(state="scored"))
        assert not done.is_set()
    thread.join()
    assert in_force(one) == (2, None, "scored", "3", 3.0)


@pytest.mark.django_db(transaction=True)
def test_attempts_wait_for_an_override_that_is_being_made_and_take_it_along(run: Run, bob: User) -> None:
    one, made = first_of(run), []

    def again() -> None:
        try:
            made.append(run_rejudge(run=run, selection=Selection(ANYTHING), user=None))
        finally:
            connection.close()

    thread = threading.Thread(target=again)
    with transaction.atomic():
        set_to(one, 3, bob)
        thread.start()
        assert not made
    thread.join()
    assert made == [ITEMS]
    assert in_force(one) == (2, None, "scored", "3", 3.0)
