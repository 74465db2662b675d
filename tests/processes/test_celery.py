"""Celery as the task engine on real brokers: workers share a run, one is killed, the broker restarts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evalsite.models import SentMessage, WorkerProcess
from evalsite.tasks import workers
from judging.core.judges.scripted import Answer, ScriptedJudge
from judging.records.models import Chunk, JudgeReply, Run, RunState
from tests.make import a_metric, a_project, a_run, a_version
from tests.processes import services
from tests.processes.conftest import Processes, ended, wait_until

pytestmark = pytest.mark.processes


@pytest.fixture
def judge() -> Iterator[ScriptedJudge]:
    with ScriptedJudge(reply=lambda _: Answer(content="[[5]]", delay=0.3)) as scripted:
        yield scripted


def with_broker(processes: Processes, url: str) -> None:
    processes.environment |= {"TASK_ENGINE": "celery", "CELERY_BROKER_URL": url}


def now(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def owners(run: Run) -> set[str]:
    return set(Chunk.objects.filter(run=run).exclude(owner="").values_list("owner", flat=True))


def assert_whole(run: Run) -> None:
    """Assert that every judgement is scored once, with one reply."""
    assert now(run).scored == now(run).total == run.judgements.filter(state="scored").count()
    assert JudgeReply.objects.filter(judgement__run=run).count() == now(run).total


def one_of_two_is_killed(processes: Processes, judge: ScriptedJudge) -> Run:
    run = a_run(a_version(a_project(), rows=800), a_metric(judge.url))
    workers = [processes.start("worker", "--queue", "runs") for _ in range(2)]
    wait_until(lambda: len(owners(run)) == 2, 60)
    workers[0].kill()
    workers[0].wait()
    wait_until(lambda: now(run).state == RunState.FINISHED, 90)
    assert_whole(run)
    return run


def test_redis_one_of_two_workers_is_killed(processes: Processes, judge: ScriptedJudge) -> None:
    with services.redis() as broker:
        with_broker(processes, broker.url)
        assert not owners(one_of_two_is_killed(processes, judge))


def test_rabbitmq_one_of_two_workers_is_killed(processes: Processes, judge: ScriptedJudge) -> None:
    with services.rabbitmq() as url:
        with_broker(processes, url)
        assert not owners(one_of_two_is_killed(processes, judge))


def test_a_worker_that_is_asked_to_stop_gives_everything_back(
    processes: Processes, judge: ScriptedJudge
) -> None:
    with services.redis() as broker:
        with_broker(processes, broker.url)
        run = a_run(a_version(a_project(), rows=300), a_metric(judge.url))
        worker = processes.start("worker", "--queue", "runs")
        wait_until(lambda: now(run).done >= 50, 60)
        worker.terminate()
        assert ended(worker, 20) == 0
        assert not owners(run)
        assert now(run).done == len(judge.requests)


def test_a_lost_broker_is_reported_and_work_begins_when_it_is_back(
    processes: Processes, judge: ScriptedJudge
) -> None:
    with services.redis() as broker:
        with_broker(processes, broker.url)
        processes.start("worker", "--queue", "runs")
        wait_until(lambda: WorkerProcess.objects.filter(queue="runs", error="").exists(), 60)
        broker.kill()
        wait_until(lambda: workers.obstacle(workers.RUNS) == "broker", 30)
        run = a_run(a_version(a_project(), rows=50), a_metric(judge.url))
        broker.start()
        wait_until(lambda: now(run).state == RunState.FINISHED, 90)
        assert workers.obstacle(workers.RUNS) == ""
        assert_whole(run)


def test_a_message_that_the_broker_lost_is_sent_again(processes: Processes, judge: ScriptedJudge) -> None:
    with services.redis() as broker:
        with_broker(processes, broker.url)
        SentMessage.objects.create(task="judging.engine.run_worker.judge_runs", arguments="{}", queue="runs")
        run = a_run(a_version(a_project(), rows=20), a_metric(judge.url))
        processes.start("worker", "--queue", "runs")
        wait_until(lambda: now(run).state == RunState.FINISHED, 60)
        assert_whole(run)
        assert not owners(run)
