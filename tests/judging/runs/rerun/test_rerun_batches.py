"""Re-judging or re-parsing many judgements: a worker plans them in batches, then the run continues as usual."""

from __future__ import annotations

import pytest
from django.urls import reverse
from msgspec import structs

from evalsite.accounts.models import Project, User
from evalsite.models import AuditEntry
from evalsite.tasks import jobs
from judging.core.judges.scripted import ScriptedJudge
from judging.engine import chunks
from judging.engine.run_worker import runs_to_work_on
from judging.engine.stopping import run_cancel
from judging.filters.judgement_filter import ANYTHING, Filters
from judging.metrics.models import Metric, MetricVersion
from judging.metrics.services import metric_edit
from judging.records.definitions import definition_now
from judging.records.models import Judgement, Reading, Rejudging, Run, RunState
from judging.records.overrides import override_add
from judging.runs.rerun import rerun_batches
from judging.runs.rerun.rejudge import run_rejudge
from judging.runs.rerun.rerun_batches import rejudge_begin, reparse_begin
from judging.runs.rerun.selection import Selection
from judging.runs.services import ChosenMetric, run_create, run_resume
from judging.teamwork import batches
from judging.teamwork.models import ReviewAction
from tests.conftest import ClientOf
from tests.judging.working import work
from tests.make import a_metric, a_version
from tests.working import StopsAfter, do_jobs

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(
    project: Project, metric: Metric, judge: ScriptedJudge, alice: User, monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Five judgements each of alpha (4) and beta (6). Planned in batches of three."""
    version, first = a_version(project, rows=5), MetricVersion.objects.get(metric=metric)
    made = run_create(
        project=project,
        name="run",
        version=version,
        candidates=list(version.candidates.all()),
        metrics=[ChosenMetric(a_metric(judge.url), first)],
        user=alice,
    )
    made = work(made)
    monkeypatch.setattr(rerun_batches, "BATCH", 3)
    return made


def begin(run: Run, user: User, filters: Filters = ANYTHING, **more: MetricVersion) -> ReviewAction:
    action = rejudge_begin(run=run, selection=Selection(filters), user=user, **more)
    assert action is not None
    return action


def again(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def steps(action: ReviewAction, count: int) -> None:
    jobs.run("plan_rejudging", action.pk, StopsAfter(count))
    action.refresh_from_db()


def test_all_of_a_filter_are_judged_again_whatever_the_batches(
    run: Run, judge: ScriptedJudge, alice: User
) -> None:
    action = begin(run, alice, Filters(candidate="beta"))
    do_jobs("plan_rejudging")
    done = work(again(run))
    action.refresh_from_db()
    attempts = set(done.judgements.filter(current=True).values_list("candidate__name", "attempt", "state"))
    assert attempts == {("alpha", 1, "scored"), ("beta", 2, "scored")}
    assert (done.state, done.scored, len(judge.requests)) == ("finished", 10, 15)
    assert (action.state, action.added, action.percent) == ("done", 5, 100)
    assert not Rejudging.objects.exists()
    assert AuditEntry.objects.filter(action="run.judged_again").count() == 1


def test_batches_make_the_same_attempts_as_one_statement(run: Run, alice: User) -> None:
    begin(run, alice, Filters(least=5))
    do_jobs("plan_rejudging")
    in_batches = list(run.judgements.order_by("position").values_list("response", "attempt", "current"))
    Judgement.objects.filter(run=run, attempt=2).delete()
    run.chunks.filter(done=False).delete()
    run.judgements.update(current=True)
    Run.objects.filter(pk=run.pk).update(state=RunState.FINISHED)
    run_rejudge(run=run, selection=Selection(Filters(least=5)), user=alice)
    assert (
        list(run.judgements.order_by("position").values_list("response", "attempt", "current")) == in_batches
    )


def test_meanwhile_the_run_is_prepared_and_its_counts_hold(run: Run, alice: User) -> None:
    action = begin(run, alice)
    steps(action, 2)
    half = again(run)
    assert (half.state, half.scored, half.not_run) == (RunState.PLANNING, 4, 6)
    assert half.judgements.filter(current=True, state="not_run").count() == 6
    assert (action.state, action.added, action.percent) == ("waiting", 6, 60)


def test_run_workers_leave_a_run_alone_until_all_is_planned(run: Run, alice: User) -> None:
    action = begin(run, alice)
    steps(action, 1)
    assert not chunks.has_waiting_work()
    assert runs_to_work_on("", None) == set()
    assert again(run).state == RunState.PLANNING
    steps(action, 3)
    assert runs_to_work_on("", None) == {run.pk}


def test_nothing_else_is_planned_meanwhile(run: Run, alice: User) -> None:
    begin(run, alice)
    assert rejudge_begin(run=run, selection=Selection(Filters()), user=alice) is None
    assert run_rejudge(run=run, selection=Selection(Filters()), user=alice) == 0


def test_a_worker_that_dies_leaves_whole_batches_and_the_next_goes_on(run: Run, alice: User) -> None:
    action = begin(run, alice)
    steps(action, 1)
    do_jobs("plan_rejudging")
    assert run.judgements.filter(attempt=2).count() == 10
    assert work(again(run)).scored == 10


def test_cancelling_the_run_stops_the_planning_and_what_is_planned_can_be_judged_later(
    run: Run, judge: ScriptedJudge, alice: User
) -> None:
    action = begin(run, alice)
    steps(action, 1)
    assert run_cancel(again(run))
    do_jobs("plan_rejudging")
    action.refresh_from_db()
    stopped = again(run)
    assert (action.state, stopped.state, stopped.not_run) == ("stopped", RunState.CANCELLED, 3)
    assert not Rejudging.objects.exists()
    run_rejudge(run=stopped, selection=Selection(Filters(candidate="beta", state="scored")), user=alice)
    assert work(again(run)).scored == 10


def test_a_run_that_was_cancelled_a_moment_ago_is_judged_again_by_the_newer_filter(
    run: Run, alice: User
) -> None:
    earlier = begin(run, alice)
    run_cancel(again(run))
    begin(run, alice, Filters(candidate="beta"))
    do_jobs("plan_rejudging")
    earlier.refresh_from_db()
    assert (earlier.state, earlier.added) == ("stopped", 0)
    assert set(run.judgements.filter(attempt=2).values_list("candidate__name")) == {("beta",)}


def test_a_paused_run_stays_paused(run: Run, judge: ScriptedJudge, alice: User) -> None:
    Run.objects.filter(pk=run.pk).update(state=RunState.PAUSED)
    begin(run, alice)
    do_jobs("plan_rejudging")
    assert (again(run).state, again(run).not_run) == (RunState.PAUSED, 10)


def test_where_nothing_is_meant_any_more_the_run_is_as_it_was(
    run: Run, metric: Metric, judge: ScriptedJudge, alice: User
) -> None:
    version = stricter(metric, judge.url, alice)
    begin(run, alice, Filters(least=9), version=version)
    do_jobs("plan_rejudging")
    assert (again(run).state, again(run).scored) == (RunState.FINISHED, 10)
    assert not Reading.objects.exists()


def stricter(metric: Metric, url: str, user: User) -> MetricVersion:
    changed = structs.replace(a_metric(url, template="STRICT {{ response.content }}"))
    metric_edit(metric=metric, definition=changed, user=user, based_on=1)
    return MetricVersion.objects.filter(metric=metric).order_by("-number")[0]


def test_another_version_judges_them(run: Run, metric: Metric, judge: ScriptedJudge, alice: User) -> None:
    begin(run, alice, Filters(candidate="beta"), version=stricter(metric, judge.url, alice))
    do_jobs("plan_rejudging")
    done = work(again(run))
    assert set(done.judgements.filter(attempt=2).values_list("score")) == {(9.0,)}


def test_what_is_overridden_between_two_batches_goes_over(run: Run, alice: User, bob: User) -> None:
    action = begin(run, alice)
    steps(action, 1)
    last = run.judgements.order_by("position").filter(attempt=1)[9]
    override_add(judgement=last, value=10, reason="so", by=bob)
    do_jobs("plan_rejudging")
    newest = run.judgements.get(response=last.response_id, current=True)
    assert (newest.attempt, newest.override_score) == (2, 10)


def test_a_failure_judges_what_was_planned_and_says_so(
    run: Run, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    action = begin(run, alice)
    steps(action, 1)
    monkeypatch.setattr(rerun_batches, "filters_of", lambda action: 1 / 0)
    do_jobs("plan_rejudging")
    action.refresh_from_db()
    assert (action.state, again(run).state) == ("failed", RunState.RUNNING)
    assert work(again(run)).scored == 10


def test_it_cannot_be_undone_and_the_other_actions_leave_it_alone(run: Run, alice: User) -> None:
    action = begin(run, alice)
    do_jobs("apply_action")
    assert ReviewAction.objects.get(pk=action.pk).place == -1
    do_jobs("plan_rejudging")
    assert not ReviewAction.objects.get(pk=action.pk).undoable
    assert not batches.undo(action=action, by=alice)


@pytest.mark.urls("tests.judging.review.large_run_urls")
def test_the_page_leads_to_the_progress_and_shows_it(run: Run, alice: User, client_of: ClientOf) -> None:
    client = client_of(alice)
    sent = client.post(reverse("runs:judge_again", args=(run.project.slug, run.pk)))
    actions = reverse("runs:actions", args=(run.project.slug, run.pk))
    assert sent["Location"] == actions
    steps(ReviewAction.objects.get(), 2)
    assert "60 %" in client.get(actions).text
    assert "60 %" in client.get(reverse("runs:detail", args=(run.project.slug, run.pk))).text
    do_jobs("plan_rejudging")
    page = client.get(actions).text
    assert "Re-judged" in page
    assert "/undo/" not in page


@pytest.mark.urls("tests.judging.review.large_run_urls")
def test_where_texts_must_be_read_the_page_waits_for_no_count(
    run: Run, alice: User, client_of: ClientOf
) -> None:
    client, address = client_of(alice), reverse("runs:judge_again", args=(run.project.slug, run.pk))
    page = client.get(address + "?q=beta")
    assert "Re-judge all matching items" in page.text
    assert "count" not in page.context
    client.post(address + "?q=beta")
    do_jobs("plan_rejudging")
    assert set(run.judgements.filter(attempt=2).values_list("candidate__name")) == {("beta",)}


OTHERWISE = {"regex": r"\[\[(\d)"}
"""Another parser that finds the same scores."""


def begin_reading(run: Run, user: User, *, most: float = 10, **filters: str) -> ReviewAction | None:
    found = run.metrics.get()
    now = definition_now(found)
    wanted = structs.replace(now, max_score=most, judges=(structs.replace(now.judges[0], parse=OTHERWISE),))
    selection = Selection(Filters(metric=found.name, **filters))  # type: ignore[arg-type]
    return reparse_begin(run=run, run_metric=found, definition=wanted, selection=selection, user=user)


def test_all_replies_are_read_again_whatever_the_batches_and_nobody_is_asked(
    run: Run, judge: ScriptedJudge, alice: User
) -> None:
    action = begin_reading(run, alice)
    do_jobs("plan_rejudging")
    done = work(again(run))
    assert set(done.judgements.filter(current=True).values_list("attempt", "state")) == {(2, "scored")}
    assert (done.state, done.scored, len(judge.requests)) == ("finished", 10, 10)
    assert (ReviewAction.objects.get().state, action and action.kind) == ("done", "reparse")
    assert definition_now(run.metrics.get()).judges[0].parse == OTHERWISE


def test_a_filter_reads_its_part_again_and_the_metric_is_read_as_before(run: Run, alice: User) -> None:
    begin_reading(run, alice, candidate="beta")
    do_jobs("plan_rejudging")
    assert set(run.judgements.filter(attempt=2).values_list("candidate__name")) == {("beta",)}
    assert definition_now(run.metrics.get()).judges[0].parse != OTHERWISE


def test_while_replies_are_prepared_to_be_read_again_the_counts_hold(run: Run, alice: User) -> None:
    run.judgements.get(position=1).replies.all().delete()
    action = begin_reading(run, alice)
    assert action is not None
    steps(action, 2)
    half = again(run)
    assert (half.state, half.scored, half.not_run) == (RunState.PLANNING, 5, 5)
    assert rejudge_begin(run=run, selection=Selection(Filters()), user=alice) is None
    assert begin_reading(run, alice) is None


def test_a_cancelled_run_is_still_prepared_whole_as_its_scores_are_on_one_scale(
    run: Run, alice: User
) -> None:
    action = begin_reading(run, alice, most=20)
    assert action is not None
    steps(action, 1)
    assert run_cancel(again(run))
    assert rejudge_begin(run=run, selection=Selection(Filters()), user=alice) is None
    do_jobs("plan_rejudging")
    stopped = again(run)
    assert (stopped.state, stopped.scored, stopped.not_run) == (RunState.CANCELLED, 0, 10)
    assert run_resume(stopped)
    assert work(again(run)).scored == 10


@pytest.mark.urls("tests.judging.review.large_run_urls")
def test_the_page_leads_to_the_progress_of_many_read_again(
    run: Run, alice: User, client_of: ClientOf
) -> None:
    page = reverse("runs:read_again", args=(run.project.slug, run.pk, run.metrics.get().pk))
    client = client_of(alice)
    sent = {"parse-0": "regex", "pattern-0": r"(\d)", "min_score": "1", "max_score": "10"}
    answer = client.post(page, {**sent, "begin": "1"})
    assert answer["Location"] == reverse("runs:actions", args=(run.project.slug, run.pk))
    assert "Re-parsed" in client.get(answer["Location"]).text


def test_a_failure_on_the_way_reads_what_was_planned_and_leaves_the_rest(
    run: Run, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    action = begin_reading(run, alice)
    assert action is not None
    steps(action, 1)
    monkeypatch.setattr(rerun_batches, "filters_of", lambda action: 1 / 0)
    do_jobs("plan_rejudging")
    assert work(again(run)).scored == 10
    assert ReviewAction.objects.get().state == "failed"
    assert definition_now(run.metrics.get()).judges[0].parse != OTHERWISE


@pytest.mark.urls("tests.judging.review.large_run_urls")
def test_texts_are_looked_for_by_the_worker_and_the_page_counts_nothing(
    run: Run, alice: User, client_of: ClientOf
) -> None:
    page = reverse("runs:read_again", args=(run.project.slug, run.pk, run.metrics.get().pk)) + "?q=beta"
    sent = {"parse-0": "regex", "pattern-0": r"(\d)", "min_score": "1", "max_score": "10"}
    preview = client_of(alice).post(page, {**sent, "try": "1"})
    assert "Re-parse all matching items" in preview.text
    assert preview.context["preview"].read == 5
