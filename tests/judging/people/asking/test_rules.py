"""Rules that send answers to an evaluation when a run has ended."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse

from evalsite import clock
from evalsite.accounts.models import Project, User
from evalsite.models import AuditEntry
from evalsite.webhooks.kinds import Event
from judging.core.pairs import ORDERS_DISAGREE
from judging.core.results import JudgementResult
from judging.core.values import Outcome
from judging.people.asking.models import Sending, SendingRule
from judging.people.asking.rules import rule_create, rule_pause
from judging.people.models import Evaluation, Item
from judging.people.outcomes import items_of_kind
from judging.people.selectors import ItemCounts, item_counts
from judging.records.models import Run
from judging.records.run_events import emit_run
from judging.reports.people_outcomes import rated_criteria
from judging.reports.services import report_document
from judging.review.models import SavedView
from tests.conftest import ClientOf
from tests.judging.judged import JUDGE_URL, judge, said
from tests.judging.people.make import about, make_evaluation, rate_each
from tests.make import a_comparison, a_run, a_version
from tests.working import do_jobs

pytestmark = pytest.mark.django_db
FAILED = "value=false"


@pytest.fixture
def evaluation(run: Run, rita: User) -> Evaluation:
    return about(run, [rita], sample={"sample_size": 5})


@pytest.fixture
def rule(evaluation: Evaluation, alice: User) -> SendingRule:
    return rule_create(evaluation=evaluation, name="failed", query=FAILED, a_day=8, user=alice)


def a_further_run(run: Run) -> Run:
    from judging.core.metric_definition import MetricDefinition

    definition = MetricDefinition.from_json(run.metrics.get().definition)
    return judge(a_run(run.version, definition), lambda place: said(place % 2 == 0))


def sent(evaluation: Evaluation) -> int:
    return Item.objects.filter(evaluation=evaluation, sent_by_rule=True).count()


def test_a_run_that_ends_sends_at_most_so_many_a_day(
    run: Run, rule: SendingRule, evaluation: Evaluation
) -> None:
    a_further_run(run)
    do_jobs("send_to_people")
    assert sent(evaluation) == 8
    assert set(Item.objects.filter(sent_by_rule=True).values_list("drawn_with", flat=True)) == {None}
    assert Sending.objects.get().problem == "limit"


def test_the_next_day_has_its_own_limit(run: Run, rule: SendingRule, evaluation: Evaluation) -> None:
    a_further_run(run)
    do_jobs("send_to_people")
    a_further_run(run)
    do_jobs("send_to_people")
    assert sent(evaluation) == 8
    with clock.moved_to(clock.now() + timedelta(days=1)):
        a_further_run(run)
        do_jobs("send_to_people")
    assert sent(evaluation) == 16


def test_a_run_that_ends_twice_sends_once(run: Run, rule: SendingRule) -> None:
    further = a_further_run(run)
    do_jobs("send_to_people")
    emit_run(Event.RUN_FINISHED, further.pk)
    assert Sending.objects.count() == 1


def test_a_paused_rule_sends_nothing(
    run: Run, rule: SendingRule, evaluation: Evaluation, alice: User
) -> None:
    rule_pause(rule=rule, by=alice)
    a_further_run(run)
    do_jobs("send_to_people")
    assert not sent(evaluation)


def test_a_filter_that_does_not_fit_the_run_sends_nothing(
    run: Run, rule: SendingRule, evaluation: Evaluation
) -> None:
    SendingRule.objects.update(query="metric=gone")
    a_further_run(run)
    do_jobs("send_to_people")
    assert Sending.objects.get().problem == "filter"
    assert not sent(evaluation)


def test_an_analyst_makes_pauses_and_ends_a_rule(
    run: Run, evaluation: Evaluation, alice: User, client_of: ClientOf
) -> None:
    view = SavedView.objects.create(project=run.project, owner=alice, name="failed", query=FAILED)
    page, client = reverse("runs:sending_rules", args=("physics",)), client_of(alice)
    client.post(page, {"view": view.pk, "evaluation": evaluation.run_id, "a_day": 3})
    rule = SendingRule.objects.get()
    for action in ("pause", "resume", "end"):
        client.post(reverse(f"runs:{action}_rule", args=("physics", rule.pk)))
    rule.refresh_from_db()
    assert rule.ended_at is not None
    made: Any = AuditEntry.objects.filter(action__startswith="sending_rule.").values_list("action", flat=True)
    assert len(set(made)) == 4
    assert "failed" in client.get(page).content.decode()


def test_without_a_saved_view_the_page_says_what_to_do(
    evaluation: Evaluation, alice: User, client_of: ClientOf
) -> None:
    page = client_of(alice).get(reverse("runs:sending_rules", args=("physics",)))
    assert "A rule needs a saved view" in page.content.decode()


def test_the_navigation_marks_the_section_that_the_rules_belong_to(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    page = client_of(alice).get(reverse("runs:sending_rules", args=("physics",))).text
    navigation = page.partition('<nav class="site-nav"')[2].partition("</nav>")[0]
    people = reverse("people:list", args=("physics",))
    assert re.findall(r'<a href="([^"]+)" aria-current="true">', navigation) == [people]


def test_unsettled_pairs_go_to_an_evaluation_that_compares(project: Project, rita: User, alice: User) -> None:
    version = a_version(project, rows=40)
    comparing = make_evaluation(project, [rita], version=version, choice={"sample_size": 2})
    rule_create(evaluation=comparing, name="unsettled", query="state=unsettled", a_day=50, user=alice)
    unsettled = JudgementResult(Outcome.unsettled(ORDERS_DISAGREE), said("A>B").calls)
    judge(a_run(version, a_comparison(JUDGE_URL)), lambda place: unsettled if place % 2 else said("A>B"))
    do_jobs("send_to_people")
    items = Item.objects.filter(evaluation=comparing, sent_by_rule=True)
    assert items.count() == Sending.objects.get().sent >= 18
    assert not items.filter(other_response=None).exists()
    assert set(items.values_list("first_side", flat=True)) == {1, 2}


def test_what_a_rule_sent_counts_in_no_mean_of_the_study(
    run: Run, rule: SendingRule, evaluation: Evaluation, rita: User
) -> None:
    a_further_run(run)
    do_jobs("send_to_people")
    rate_each(evaluation, rita, lambda _item: True)
    document = report_document(Run.objects.get(pk=evaluation.run_id))
    assert [cell["scored"] for cells in document["candidates"].values() for cell in cells.values()] == [5]
    assert document["left_out"]["sent_by_rule"] == 8
    assert document["left_out"]["rows_without_answers"] >= 0


def test_the_page_of_the_study_tells_what_was_drawn_from_what_was_sent(
    run: Run, rule: SendingRule, evaluation: Evaluation, rita: User
) -> None:
    a_further_run(run)
    do_jobs("send_to_people")
    rate_each(evaluation, rita, lambda _item: True)
    evaluation = Evaluation.objects.get()
    assert item_counts(evaluation) == ItemCounts(items=5, rows=5, sent=8)
    (criterion,) = rated_criteria(evaluation.run)
    assert criterion.outcomes.kinds == {"single": 5}
    assert len(items_of_kind(evaluation, "single")) == 5
