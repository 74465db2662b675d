"""A watch: sentinels, baseline in two parts, checks, alarms, ceilings, and its end. Time is moved by the clock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from datasets.models import Dataset
from evalsite import clock
from evalsite.accounts.models import Project, Role, User
from evalsite.models import Job
from judging.core.licensing import Sizes
from judging.core.statistics.uses import Thresholds
from judging.deletion.services import delete_begin
from judging.metrics.models import Metric
from judging.metrics.services import metric_create
from judging.records.models import JudgeReply, Run, RunState
from judging.records.servers import changes_among, server_changes
from judging.runs.selectors import runs_page
from judging.teamwork.models import Notice
from judging.trust.models import Licence, LicenceState
from judging.trust.selectors import licence_state
from judging.trust.services import (
    licence_lift,
    sealed_test_close,
    sealed_test_open,
    split_draw,
    thresholds_change,
)
from judging.trust.watch.models import Sitting, Watch, WatchState
from judging.trust.watch.results import counted
from judging.trust.watch.servers import servers_store
from judging.trust.watch.services import (
    schedule_clean,
    watch_begin,
    watch_ceilings,
    watch_end,
    watch_schedule,
)
from judging.trust.watch.steps import needs_step, step, watches_due
from tests.conftest import member
from tests.judging.deletion.whole import remove_all
from tests.judging.judged import Tell, a_judged_run, failed, judge, said
from tests.judging.people.make import about, rate_each
from tests.judging.trust.conftest import DEFINITION

pytestmark = pytest.mark.django_db
TEST_ROWS = 40
SENTINELS = 30
HOUR = timedelta(hours=1, minutes=1)  # a little more: the test itself takes time


@pytest.fixture(scope="module")
def licence_pk(module_db: None) -> int:
    """Of a judge that passes every second row; Rita agrees with it."""
    project = Project.objects.create(name="Physics", slug="physics")
    member("alice", project, Role.ANALYST)
    rita = member("rita", project, Role.RATER)
    metric = metric_create(project=project, definition=DEFINITION, user=None)
    run = a_later_run(project, metric, rows=TEST_ROWS, tell=lambda place: said(place % 2 == 0))
    rate_each(about(run, [rita]), rita, lambda item: item.row.line % 2 == 1)
    split = split_draw(version=run.version, metric=metric, sizes=Sizes(0, 0, TEST_ROWS), seed=5)
    test = sealed_test_close(test=split.test, run=run)
    return sealed_test_open(test=test, run_metric=run.metrics.get()).pk


@pytest.fixture
def licence(licence_pk: int) -> Licence:
    return Licence.objects.get(pk=licence_pk)


@pytest.fixture
def run(licence: Licence) -> Run:
    assert licence.opening is not None
    assert licence.opening.run is not None
    return licence.opening.run


@pytest.fixture
def project(run: Run) -> Project:
    return run.project


@pytest.fixture
def metric(project: Project) -> Metric:
    return Metric.objects.get(project=project)


@pytest.fixture
def alice(project: Project) -> User:
    return User.objects.get(username="alice")


@pytest.fixture
def rita(project: Project) -> User:
    return User.objects.get(username="rita")


@pytest.fixture
def watch(licence: Licence, alice: User) -> Watch:
    return watch_begin(licence=licence, sentinels=SENTINELS, user=alice, seed=3)


class Days:
    """The clock of a test, which only goes forward."""

    def __init__(self, stack: ExitStack) -> None:
        self.now, self.stack = timezone.now(), stack

    def wait(self, time: timedelta) -> None:
        self.now += time
        self.stack.enter_context(clock.moved_to(self.now))


@pytest.fixture
def days() -> Iterator[Days]:
    with ExitStack() as stack:
        yield Days(stack)


def again(watch: Watch) -> Watch:
    return Watch.objects.get(pk=watch.pk)


def sit(watch: Watch, turned: int = 0, unanswered: int = 0) -> Sitting:
    """Take a step, and judge what it began: as the licence says, but for so many sentinels."""
    step(watch.pk)
    sitting = watch.sittings.get(ended_at=None)
    own = [sentinel[5] for sentinel in watch.sentinels]
    assert sitting.run is not None
    judge(
        sitting.run,
        lambda place: failed() if place < unanswered else said(own[place] != (place < turned)),
    )
    step(watch.pk)
    return Sitting.objects.get(pk=sitting.pk)


def learn(watch: Watch, days: Days) -> Watch:
    for part in (3, 2):
        for _ in range(part):
            sit(watch)
        days.wait(HOUR)
    return again(watch)


def a_later_run(
    project: Project, metric: Metric, *, rows: int = 3, tell: Tell = lambda _place: said(True)
) -> Run:
    run = a_judged_run(project, tell, rows=rows, metric=DEFINITION, models=["alpha"])
    run.metrics.update(metric_version=metric.versions.get())
    return run


def test_sentinels_are_drawn_evenly_from_the_test(licence: Licence, watch: Watch) -> None:
    stored = [tuple(answer) for answer in licence.answers]
    assert len({tuple(sentinel) for sentinel in watch.sentinels} & set(stored)) == SENTINELS
    assert (watch.state, watch.sitting_calls, watch.ceiling_calls) == ("learning", 30, 1200)


def test_a_watch_takes_30_to_100_sentinels_of_a_licence_that_holds(licence: Licence, alice: User) -> None:
    for number in (29, 101, 60):
        with pytest.raises(ValidationError):
            watch_begin(licence=licence, sentinels=number, user=alice)
    with pytest.raises(ValidationError, match="at least 150 calls"):
        watch_begin(licence=licence, sentinels=30, ceiling_calls=149, user=alice)
    watch_begin(licence=licence, sentinels=30, user=alice)
    with pytest.raises(ValidationError, match="watched already"):
        watch_begin(licence=licence, sentinels=30, user=alice)


def test_the_baseline_has_two_parts_an_hour_apart(watch: Watch, days: Days) -> None:
    for _ in range(3):
        sit(watch)
    days.wait(HOUR - timedelta(minutes=2))
    step(watch.pk)
    assert not watch.sittings.filter(ended_at=None).exists()
    days.wait(timedelta(minutes=3))
    sit(watch)
    sit(watch)
    watch = again(watch)
    assert (watch.state, [sitting.number for sitting in counted(watch, baseline=True)]) == (
        "watching",
        [1, 2, 3, 4, 5],
    )
    assert watch.sight is not None
    assert (watch.sight["sentinels"], watch.sight["by_itself"], watch.sight["turned"]) == (30, 0, 4)


def test_sittings_are_runs_of_their_own(watch: Watch, project: Project) -> None:
    sitting = sit(watch)
    run = sitting.run
    assert run is not None
    assert (run.total, run.reuse_replies, run.budget_calls, run.metrics.get().metric_version) == (
        30,
        False,
        60,
        None,
    )
    assert run not in runs_page(project)[0]
    assert Dataset.objects.get(pk=run.version.dataset_id).archived_at is not None


def test_a_check_follows_a_run_of_the_metric_at_most_hourly(
    watch: Watch, days: Days, project: Project, metric: Metric
) -> None:
    watch = learn(watch, days)
    assert not needs_step(watch, clock.now())
    a_later_run(project, metric)
    assert needs_step(again(watch), clock.now())
    check = sit(watch)
    assert (check.baseline, check.number, check.alarm) == (False, 1, False)
    assert check.result is not None
    assert check.result["share"]["rate"] == 0
    assert check.result["agreement"]["rate"] == 1
    a_later_run(project, metric)
    assert not needs_step(again(watch), clock.now())
    days.wait(HOUR)
    assert needs_step(again(watch), clock.now())


def test_a_check_that_was_due_while_the_site_was_off_is_made_once(
    licence: Licence, alice: User, days: Days
) -> None:
    watch = watch_begin(licence=licence, sentinels=30, schedule="0 3 * * *", user=alice, seed=3)
    watch = learn(watch, days)
    days.wait(timedelta(days=4))
    assert sit(watch).number == 1
    due = again(watch).due_at
    assert due is not None
    assert clock.now() < due <= clock.now() + timedelta(days=1)
    assert (
        not needs_step(again(watch), clock.now() + timedelta(hours=1, minutes=1))
        or due <= clock.now() + HOUR * 1.1
    )


def test_turned_verdicts_raise_the_alarm_and_suspend_the_licence(
    watch: Watch, days: Days, project: Project, metric: Metric, alice: User
) -> None:
    watch = learn(watch, days)
    a_later_run(project, metric)
    check = sit(watch, turned=6)
    assert check.alarm
    assert again(watch).state == WatchState.ALARM
    assert licence_state(watch.licence) == LicenceState.SUSPENDED
    assert "alarm" in watch.licence.suspensions.get().sentence
    assert Notice.objects.filter(user=alice, watch=watch).count() == 1
    days.wait(HOUR)
    a_later_run(project, metric)
    step(watch.pk)
    assert not watch.sittings.filter(ended_at=None).exists()


def test_lifting_the_suspension_begins_a_new_baseline(
    watch: Watch, days: Days, project: Project, metric: Metric, alice: User
) -> None:
    watch = learn(watch, days)
    a_later_run(project, metric)
    sit(watch, turned=6)
    licence_lift(suspension=watch.licence.suspensions.get(), reason="a new model, agreed", user=alice)
    days.wait(HOUR)
    assert needs_step(again(watch), clock.now())
    first = sit(watch, turned=6)
    watch = again(watch)
    assert (watch.state, watch.period, first.baseline, first.number) == ("learning", 2, True, 1)


def test_a_check_with_too_few_answers_counts_as_none(
    watch: Watch, days: Days, project: Project, metric: Metric
) -> None:
    watch = learn(watch, days)
    a_later_run(project, metric)
    check = sit(watch, turned=30, unanswered=4)
    assert (check.number, check.problem, check.alarm, check.result) == (None, "few_answers", False, None)
    assert licence_state(watch.licence) == LicenceState.VALID
    days.wait(HOUR)
    a_later_run(project, metric)
    assert sit(watch, unanswered=3).number == 1


def test_a_stopped_sitting_of_the_baseline_is_made_again_after_an_hour(watch: Watch, days: Days) -> None:
    step(watch.pk)
    sitting = watch.sittings.get()
    Run.objects.filter(watch_sitting=sitting).update(state=RunState.PAUSED, problem="endpoint_away", total=30)
    step(watch.pk)
    sitting.refresh_from_db()
    assert (sitting.number, sitting.problem) == (None, "endpoint_away")
    assert Run.objects.get(watch_sitting=sitting).state == RunState.CANCELLED
    assert not needs_step(again(watch), clock.now())
    days.wait(HOUR)
    assert sit(watch).number == 1


def test_the_ceiling_of_a_month_pauses_and_says_so(watch: Watch, days: Days, alice: User) -> None:
    Sitting.objects.create(
        watch=watch,
        period=1,
        baseline=True,
        started_at=clock.now(),
        ended_at=clock.now(),
        calls=1171,
        problem="stopped",
    )
    days.wait(HOUR)
    step(watch.pk)
    assert (again(watch).state, again(watch).problem) == ("paused", "ceiling")
    assert not needs_step(again(watch), clock.now())
    watch_ceilings(watch=watch, calls=2000, money=None, user=alice)
    assert sit(watch).number == 1
    assert again(watch).state == "learning"


def test_a_new_month_has_a_new_ceiling(watch: Watch, days: Days) -> None:
    Sitting.objects.create(
        watch=watch,
        period=1,
        baseline=True,
        started_at=clock.now(),
        ended_at=clock.now(),
        calls=1200,
        problem="stopped",
    )
    step(watch.pk)
    days.wait(timedelta(days=31))
    assert needs_step(again(watch), clock.now())


def test_ending_a_watch_cancels_its_sitting(watch: Watch, alice: User) -> None:
    step(watch.pk)
    watch_end(watch=watch, user=alice)
    watch_end(watch=watch, user=alice)
    sitting = watch.sittings.get()
    assert (again(watch).state, sitting.problem) == ("ended", "ended")
    assert Run.objects.get(watch_sitting=sitting).state == RunState.CANCELLED
    with pytest.raises(ValidationError, match="has ended"):
        watch_schedule(watch=watch, schedule="", user=alice)


def test_a_watch_of_a_licence_that_lapsed_ends(watch: Watch) -> None:
    Licence.objects.filter(pk=watch.licence_id).update(expires_at=timezone.now())
    assert needs_step(again(watch), clock.now())
    step(watch.pk)
    assert (again(watch).state, again(watch).problem) == ("ended", "licence_over")


def test_another_judge_is_not_asked_in_place_of_the_licensed_one(watch: Watch) -> None:
    Licence.objects.filter(pk=watch.licence_id).update(definition_hash="another")
    step(watch.pk)
    assert (again(watch).state, again(watch).problem) == ("paused", "changed")


def test_the_reconciler_asks_for_steps_that_are_due(watch: Watch) -> None:
    Job.objects.all().delete()
    watches_due()
    assert Job.objects.get(kind="watch_judge").object_id == watch.pk
    Job.objects.all().delete()
    step(watch.pk)
    watches_due()
    assert not Job.objects.filter(kind="watch_judge").exists()


@pytest.mark.parametrize("schedule", ["x", "* * * * *", "0 3 30 2 *", "0 25 * * *"])
def test_a_schedule_that_cannot_be_kept_is_refused(schedule: str) -> None:
    with pytest.raises(ValidationError):
        schedule_clean(schedule)


def test_deleting_a_run_or_the_project_takes_the_watch_along(watch: Watch, project: Project) -> None:
    sitting = sit(watch)
    assert sitting.run is not None
    delete_begin(kind="run", thing=sitting.run)
    remove_all()
    sitting.refresh_from_db()
    assert sitting.run_id is None
    assert sitting.number == 1
    watch_end(watch=watch)
    delete_begin(kind="project", thing=project, with_runs=True)
    remove_all()
    assert not Watch.objects.exists()


def with_fingerprint(run: Run, fingerprint: str) -> None:
    """Have the judge's server send it with every reply of a run, which ended just now."""
    extra = json.dumps(
        {"finish_reason": "stop", "model": "scripted", "fingerprint": fingerprint, "server": "v1"}
    )
    JudgeReply.objects.filter(judgement__run=run).update(extra=extra)
    run.metrics.update(servers=None)
    Run.objects.filter(pk=run.pk).update(finished_at=timezone.now())


def test_a_fingerprint_unlike_those_of_the_test_suspends_the_licence_once(
    licence: Licence, run: Run, project: Project, metric: Metric, alice: User
) -> None:
    with_fingerprint(run, "fp-1")
    servers_store()
    later = a_later_run(project, metric)
    with_fingerprint(later, "fp-1")
    servers_store()
    assert licence_state(licence) == LicenceState.VALID
    with_fingerprint(later, "fp-2")
    servers_store()
    assert licence.suspensions.get().cause == "fingerprint"
    licence_lift(suspension=licence.suspensions.get(), reason="the server was updated", user=alice)
    with_fingerprint(later, "fp-2")
    servers_store()
    assert licence_state(licence) == LicenceState.VALID


def test_a_project_may_turn_that_off_and_servers_without_fingerprints_suspend_nothing(
    licence: Licence, run: Run, project: Project, metric: Metric, alice: User
) -> None:
    later = a_later_run(project, metric)
    with_fingerprint(later, "fp-2")
    servers_store()
    assert licence_state(licence) == LicenceState.VALID
    with_fingerprint(run, "fp-1")
    thresholds_change(project=project, thresholds=Thresholds(), fingerprints=False, user=alice)
    with_fingerprint(later, "fp-3")
    servers_store()
    assert licence_state(licence) == LicenceState.VALID


def test_a_changed_server_is_shown_between_two_runs(run: Run, project: Project, metric: Metric) -> None:
    with_fingerprint(run, "fp-1")
    later = a_later_run(project, metric)
    with_fingerprint(later, "fp-2")
    servers_store()
    (change,) = server_changes(later)
    assert (change.before, change.then, change.now) == (run, "scripted · fp-1 · v1", "scripted · fp-2 · v1")
    assert changes_among([run.pk, later.pk]) == [change]
    assert server_changes(run) == []
