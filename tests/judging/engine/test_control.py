"""All workers follow a run's controls immediately: pause, cancel, resume, priority."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from django.db import connections

from evalsite.accounts.models import Project
from judging.core.judges import scripted
from judging.core.judges.scripted import Answer, Received, ScriptedJudge
from judging.core.metric_definition import MetricDefinition
from judging.engine import chunks, planning, run_worker, stopping
from judging.engine.stopping import run_end_early
from judging.engine.write_buffer import WriteBatch, write
from judging.records.models import Priority, Run, RunState
from judging.runs import services
from judging.runs.services import RunOptions
from tests.deadlines import TIMEOUT, slack, wait_until
from tests.judging.judged import said
from tests.judging.working import an_endpoint, at_work, run_on, workers
from tests.make import a_metric, a_project, a_run, a_version

pytestmark = [pytest.mark.timed, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("stop", [stopping.run_pause, stopping.run_cancel])
def test_half_a_second_after_a_stop_no_request_reaches_the_judge(stop: Callable[[Run], bool]) -> None:
    with ScriptedJudge(lambda _: Answer("[[5]]", delay=0.05)) as judge:
        run = run_on(an_endpoint(a_project(), judge.url, concurrency=16), 2000)
        threads = workers(run, 2)
        wait_until(lambda: len(judge.requests) > 200)
        assert stop(run)
        stopped = time.monotonic()
        for thread in threads:
            thread.join(TIMEOUT)
        late = [asked.at - stopped for asked in judge.requests if asked.at > stopped + 0.5 * slack()]
    assert late == []
    assert Run.objects.get(pk=run.pk).done < 2000


def test_what_waits_to_be_retried_stops_too() -> None:
    with ScriptedJudge(scripted.rate_limited("1")) as judge:
        run = run_on(an_endpoint(a_project(), judge.url, concurrency=4), 20)
        threads = workers(run, 1)
        wait_until(lambda: len(judge.requests) >= 1)
        stopping.run_pause(run)
        stopped = time.monotonic()
        threads[0].join(TIMEOUT)
        assert time.monotonic() - stopped < 5 * slack()
        assert not [asked for asked in judge.requests if asked.at > stopped + 0.5 * slack()]
    assert Run.objects.get(pk=run.pk).not_run == 20


def test_a_run_that_is_resumed_at_once_goes_on() -> None:
    with ScriptedJudge(lambda _: Answer("[[5]]", delay=0.3)) as judge:
        run = a_run(a_version(a_project(), rows=100), a_metric(judge.url))
        worker = at_work(run)
        wait_until(lambda: len(judge.requests) > 20)
        stopping.run_pause(run)
        time.sleep(0.3)
        services.run_resume(run)
        worker.join(TIMEOUT)
        at_work(run).join(TIMEOUT)  # in case the first worker ended before
    assert Run.objects.get(pk=run.pk).state == RunState.FINISHED


def test_a_run_of_high_priority_gets_more_of_the_calls() -> None:
    def slow(asked: Received) -> Answer:
        return Answer("[[5]]", delay=0.1)

    with ScriptedJudge(slow) as judge:
        endpoint = an_endpoint(a_project(), judge.url, concurrency=12)
        low = run_on(endpoint, 400)
        high = run_on(endpoint, 400, models=("urgent",), options=RunOptions(priority=Priority.HIGH))
        threads = [at_work_on_all()]
        wait_until(lambda: len(judge.requests) > 300)
        for run in (low, high):
            stopping.run_cancel(run)
        threads[0].join(TIMEOUT)
        urgent = sum("urgent says" in asked.prompt for asked in judge.requests[60:300])
    assert urgent >= 0.6 * 240
    assert urgent < 240


def at_work_on_all() -> threading.Thread:
    """Start a worker for all runs in a new thread."""

    def target() -> None:
        run_worker.work("test:1:1", stop=threading.Event())
        connections.close_all()

    thread = threading.Thread(target=target)
    thread.start()
    return thread


def test_a_small_run_of_another_project_does_not_wait_for_many_large_ones() -> None:
    with ScriptedJudge(lambda _: Answer("[[5]]", delay=0.05)) as judge:
        endpoint = an_endpoint(a_project(), judge.url, concurrency=8)
        large = [run_on(endpoint, 400) for _ in range(5)]
        threads = [at_work_on_all()]
        wait_until(lambda: len(judge.requests) > 50)
        other = a_version(a_project("other"), rows=40, models=("small",))
        small = a_run(other, a_metric(endpoint.url, endpoint=endpoint.pk))
        wait_until(lambda: Run.objects.get(pk=small.pk).state == RunState.FINISHED)
        own = [place for place, asked in enumerate(judge.requests) if "small says" in asked.prompt]
        # Half of the calls are for this run: 40 of 80. As one of six equal runs it would have needed 240.
        assert own[-1] - own[0] < 150
        assert not any(Run.objects.get(pk=run.pk).ended for run in large)
        for run in large:
            stopping.run_cancel(run)
        threads[0].join(TIMEOUT)


def test_programs_that_ask_nobody_take_turns_between_projects() -> None:
    rules = MetricDefinition(name="rules", rules="# DSL\n主题:精确匹配\n@格式限制:JSON\n")
    large = [a_run(a_version(a_project(), rows=1500), rules) for _ in range(2)]
    small = a_run(a_version(a_project("other"), rows=100, models=("small",)), rules)
    at_work_on_all().join(TIMEOUT)
    ended = [Run.objects.get(pk=run.pk).finished_at for run in (small, *large)]
    assert ended[0] < min(ended[1:])


@pytest.mark.parametrize("stop", [stopping.run_pause, stopping.run_cancel, run_end_early])
def test_a_run_whose_last_replies_come_after_it_was_stopped_is_finished(
    project: Project, stop: Callable[[Run], bool]
) -> None:
    run = a_run(a_version(project), a_metric("http://127.0.0.1:9/v1"))
    planning.plan(run.pk)
    leased = chunks.lease(run.pk, "test:1:1")
    assert leased
    items = chunks.load(leased, "judge_only")
    write(WriteBatch([chunks.Judged(one, said(5)) for one in items[:2]]), "test:1:1")
    assert stop(run)
    write(WriteBatch([chunks.Judged(items[2], said(5))]), "test:1:1")
    assert Run.objects.get(pk=run.pk).state in ("paused", "cancelled")
    rest = [chunks.Judged(one, said(5)) for one in items[3:]]
    write(WriteBatch(rest, finished={leased.chunk}), "test:1:1")
    run.refresh_from_db()
    assert (run.state, run.problem, run.not_run) == ("finished", "", 0)
