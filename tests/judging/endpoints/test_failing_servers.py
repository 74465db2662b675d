"""A server that fails often costs few calls and no result; one that is down is waited for, or ends a command."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import LazySettings

from judging.core.judges import scripted
from judging.core.judges.client import RetryPolicy
from judging.core.judges.protocols import CHAT, PROTOCOLS
from judging.core.judges.scripted import Answer, Received, Script, ScriptedJudge
from judging.endpoints.models import EndpointLoad
from judging.engine import run_worker, stopping
from judging.management.commands.evaluate import document, resume_run, start_run, work_until_finished
from judging.management.working import RETRY_POLICY, why_stopped
from judging.records.models import JudgementState, Run, RunState
from judging.runs.endpoint_outages import endpoint_states, failing, nothing_answers
from tests.deadlines import TIMEOUT, slack, wait_until
from tests.judging.evaluate_files import write_metrics, write_rows
from tests.judging.flaky import FlakyScript
from tests.judging.working import an_endpoint, at_work, run_on, work, workers
from tests.make import a_project

pytestmark = [pytest.mark.timed, pytest.mark.django_db(transaction=True)]
ROWS = 320
MOST_CALLS = 3.2  # an item
DELAY = 0.05


def worked_on(script: Script, rows: int = ROWS, protocol: str = CHAT) -> tuple[Run, float, int]:
    """A run of as many judgements by one worker as in production, its seconds, and the judge's calls."""
    with ScriptedJudge(script) as judge:
        run = run_on(an_endpoint(a_project(), judge.url, protocol=protocol), rows)
        began = time.monotonic()
        run = work(run, policy=RetryPolicy())
        return run, time.monotonic() - began, len(judge.requests)


def clean(_asked: Received) -> Answer:
    return Answer("Score: [[7]]", delay=DELAY)


def test_a_run_scores_all_that_a_flaky_judge_answers() -> None:
    _, seconds, _ = worked_on(clean)
    flaky = FlakyScript(DELAY)
    run, flaky_seconds, calls = worked_on(flaky)
    assert (run.state, run.scored, run.not_run) == (RunState.FINISHED, flaky.readable, 0)
    assert run.scored >= 0.6 * ROWS
    assert not run.judgements.filter(state=JudgementState.ERROR, replies__calls="[]").exists()
    assert calls <= MOST_CALLS * ROWS
    assert flaky_seconds <= (1.5 * seconds + 20) * slack()


@pytest.mark.parametrize("protocol", sorted(set(PROTOCOLS) - {CHAT}))
def test_a_flaky_judge_costs_no_more_in_another_protocol(protocol: str) -> None:
    flaky, rows = FlakyScript(DELAY), 100
    run, _, calls = worked_on(flaky, rows, protocol)
    assert (run.state, run.scored, run.not_run) == (RunState.FINISHED, flaky.readable, 0)
    assert calls <= MOST_CALLS * rows


@pytest.fixture
def folder(tmp_path: Path, settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings.DATA_DIR = tmp_path
    monkeypatch.setenv("JUDGE_KEY", "k-123456")
    return tmp_path


def test_evaluate_scores_all_that_a_flaky_judge_answers(folder: Path) -> None:
    flaky = FlakyScript(DELAY)
    with ScriptedJudge(flaky) as judge:
        run = start_run(write_rows(folder, ROWS), write_metrics(folder, judge.url), "")
        found = document(*work_until_finished(run, folder, threading.Event()))
        calls = len(judge.requests)
    assert (found["scored"], found["not_run"]) == (flaky.readable, 0)
    assert found["errors"] == ROWS - flaky.readable
    assert calls <= MOST_CALLS * ROWS


def test_a_command_ends_with_the_rest_not_run_and_can_be_resumed(folder: Path) -> None:
    def down_at_first(_asked: Received) -> Answer | str:
        return scripted.server_error() if down else "Score: [[7]]"

    down = [True]
    with ScriptedJudge(down_at_first) as judge:
        run = start_run(write_rows(folder, 60), write_metrics(folder, judge.url), "")
        policy = replace(RETRY_POLICY, max_outage_seconds=2.0)
        run, report = work_until_finished(run, folder, threading.Event(), policy)
        found = document(run, report)
        assert (found["scored"], found["errors"], found["not_run"]) == (0, 0, 60)
        assert not run.chunks.exclude(owner="").exists()
        assert "no answer from http" in why_stopped(run)
        assert len(judge.requests) < 2 * 60 + 10
        down.clear()
        found = document(*work_until_finished(resume_run(str(run.pk)), folder, threading.Event()))
    assert (found["scored"], found["not_run"]) == (60, 0)


def test_a_run_waits_for_a_server_that_is_down_until_it_is_stopped() -> None:
    with ScriptedJudge(scripted.server_error()) as judge:
        run = run_on(an_endpoint(a_project(), judge.url), 100)
        worker = at_work(run, policy=RetryPolicy(base_seconds=0.01))
        wait_until(lambda: nothing_answers(endpoint_states(Run.objects.get(pk=run.pk))))
        sent = len(judge.requests)
        time.sleep(2)
        assert len(judge.requests) <= sent + 16 + 3
        assert stopping.run_pause(run)
        worker.join(TIMEOUT)
    run.refresh_from_db()
    assert (run.errors, run.not_run) == (0, 100)


def test_an_outage_of_seconds_costs_no_judgement_and_few_calls() -> None:
    def away_for_a_while(asked: Received) -> Answer:
        return scripted.server_error() if away(asked) else Answer("[[5]]", delay=0.05)

    def away(asked: Received) -> bool:
        return 0.5 < asked.at - judge.requests[0].at < 4

    with ScriptedJudge(away_for_a_while) as judge:
        run = run_on(an_endpoint(a_project(), judge.url, concurrency=8), 300)
        threads = workers(run, 2, RetryPolicy())
        wait_until(lambda: nothing_answers(endpoint_states(Run.objects.get(pk=run.pk))))
        (state,) = failing(endpoint_states(Run.objects.get(pk=run.pk)))
        for thread in threads:
            thread.join(TIMEOUT)
        in_the_outage = [asked for asked in judge.requests if away(asked)]
    assert (state.name, state.recent, state.short) == ("judge", 40, "500")
    assert Run.objects.get(pk=run.pk).scored == 300
    assert len(in_the_outage) < 150


def test_failed_tries_are_not_counted_as_interrupted_when_their_worker_ends() -> None:
    with ScriptedJudge(scripted.server_error()) as judge:
        run = run_on(an_endpoint(a_project(), judge.url), 20)
        run_worker.work("test:1:1", stop=threading.Event(), only=run.pk, life=2)
    run.refresh_from_db()
    assert (run.calls, run.calls_again) == (run.calls_failed, 0)
    assert run.calls > 0


def test_a_server_that_serves_few_calls_at_a_time_costs_no_judgement() -> None:
    def two_at_a_time(_asked: Received) -> Answer:
        return Answer("[[5]]", delay=0.05) if judge.server.in_flight <= 2 else scripted.rate_limited(None)

    with ScriptedJudge(two_at_a_time) as judge:
        run = work(run_on(an_endpoint(a_project(), judge.url, concurrency=16), 100), policy=RetryPolicy())
        assert len(judge.requests) < 4 * 100
    assert run.scored == 100


def test_a_refusal_that_is_about_one_request_is_an_answer() -> None:
    def choosy(asked: Received) -> Answer:
        return scripted.refusal(400, "content_filter") if "alpha" in asked.prompt else Answer("[[5]]")

    with ScriptedJudge(choosy) as judge:
        run = work(run_on(an_endpoint(a_project(), judge.url), 40))
    load = EndpointLoad.objects.get()
    assert (run.state, run.unparsed, run.errors, load.down_since) == (RunState.FINISHED, 40, 0, 0)
    assert all(answered for _request, answered in load.recent)
