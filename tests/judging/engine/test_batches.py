"""Runs whose requests are sent in batches: sent once, collected once, whatever fails in between."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiohttp import web
from django.core.exceptions import ValidationError
from django.utils import timezone

from evalsite.accounts.models import Project
from evalsite.models import Job
from evalsite.tasks import jobs
from judging.core.judges.scripted import Answer, ScriptedJudge, refusal
from judging.core.judges.scripted_batches import ScriptedBatches
from judging.endpoints.connection_test import try_endpoint
from judging.endpoints.models import Endpoint
from judging.engine import chunks, deaths
from judging.engine.budget import Budget
from judging.engine.chunks import has_waiting_work
from judging.engine.reconcile import free_dead_leases
from judging.engine.stopping import run_cancel, run_pause
from judging.records.models import BatchRequest, BatchState, Judgement, RequestBatch, Run, RunState
from judging.runs.services import RunOptions, run_resume
from tests.deadlines import TIMEOUT
from tests.judging.working import an_endpoint, work
from tests.make import a_comparison, a_metric, a_run, a_version

pytestmark = pytest.mark.django_db(transaction=True)
BATCHED = RunOptions(batched=True)
ROWS = 4
BOTH = pytest.mark.parametrize("protocol", ["chat", "anthropic"])
EVERY = pytest.mark.parametrize("protocol", ["chat", "anthropic", "responses", "azure"])


@pytest.fixture
def batches() -> ScriptedBatches:
    return ScriptedBatches()


@pytest.fixture
def server(batches: ScriptedBatches) -> Iterator[ScriptedJudge]:
    with ScriptedJudge(Answer("Score: [[7]]", tokens=(10, 5)), batches=batches) as server:
        yield server


def endpoint_at(project: Project, server: ScriptedJudge, protocol: str = "chat") -> Endpoint:
    return an_endpoint(
        project, server.url, protocol=protocol, probe={"ok": True, "batches": True},
        input_price=1_000_000, output_price=2_000_000, currency="EUR",
    )  # fmt: skip


def batched_run(endpoint: Endpoint, options: RunOptions = BATCHED, **changes: Any) -> Run:
    metric = a_metric("", endpoint=endpoint.pk, **changes)
    return a_run(a_version(endpoint.project, rows=ROWS, models=("alpha",)), metric, options=options)


def look(run: Run) -> Run:
    """A worker passes over the run, then one look at its batches."""
    work(run)
    jobs.run("run_batches", run.pk)
    return Run.objects.get(pk=run.pk)


def ended(run: Run, looks: int = 8) -> Run:
    for _ in range(looks):
        if look(run).state == RunState.FINISHED:
            break
    return Run.objects.get(pk=run.pk)


@EVERY
def test_all_requests_go_in_one_batch_at_half_the_price(
    project: Project, server: ScriptedJudge, batches: ScriptedBatches, protocol: str
) -> None:
    run = ended(batched_run(endpoint_at(project, server, protocol)))
    assert (run.state, run.scored, run.calls) == (RunState.FINISHED, ROWS, ROWS)
    assert (run.prompt_tokens, run.spent) == (10 * ROWS, 10_000_000 * ROWS)
    assert [len(batch.lines) for batch in batches.created] == [ROWS]
    assert all(name.startswith("j") and len(name) <= 64 for name in batches.created[0].lines)
    assert not any("stream" in body for body in batches.created[0].lines.values())
    assert set(Judgement.objects.values_list("score", flat=True)) == {7}


def test_nothing_is_asked_again_while_a_batch_is_out(
    project: Project, server: ScriptedJudge, batches: ScriptedBatches
) -> None:
    batches.hold = True
    run = batched_run(endpoint_at(project, server))
    for _ in range(3):
        look(run)
    assert (len(batches.created), BatchRequest.objects.count()) == (1, ROWS)
    job = jobs.of("run_batches", run.pk)
    assert job is not None
    assert job.state == Job.State.WAITING
    assert job.not_before is not None
    assert job.not_before > timezone.now()
    batches.hold = False
    assert ended(run).scored == ROWS


def test_a_later_judge_waits_for_the_earlier(
    project: Project, server: ScriptedJudge, batches: ScriptedBatches
) -> None:
    endpoint = endpoint_at(project, server)
    metric = a_metric("", endpoint=endpoint.pk)
    second = type(metric.judges[0])(
        name="second", endpoint=endpoint.pk, template="{{ judge_resps[0].content }} again"
    )
    metric = type(metric)(name="two", judges=(*metric.judges, second))
    run = a_run(a_version(project, rows=ROWS, models=("alpha",)), metric, options=BATCHED)
    assert ended(run).scored == ROWS
    assert [len(batch.lines) for batch in batches.created] == [ROWS, ROWS]


def test_both_orders_of_a_comparison_are_sent(project: Project, batches: ScriptedBatches) -> None:
    with ScriptedJudge("[[A=B]]", batches=batches) as server:
        metric = a_comparison("", endpoint=endpoint_at(project, server).pk)
        run = a_run(a_version(project, rows=2), metric, options=BATCHED)
        assert ended(run).state == RunState.FINISHED
    assert [len(batch.lines) for batch in batches.created] == [4]


@BOTH
@pytest.mark.parametrize("plain", [True, False])
def test_what_expired_is_sent_alone_if_the_run_allows_it(
    project: Project, server: ScriptedJudge, batches: ScriptedBatches, protocol: str, plain: bool
) -> None:
    batches.answers = 3
    options = RunOptions(batched=True, plain_if_expired=plain)
    run = ended(batched_run(endpoint_at(project, server, protocol), options))
    assert (run.state, run.scored, run.errors) == (RunState.FINISHED, ROWS if plain else 3, 0 if plain else 1)
    reasons = Judgement.objects.exclude(reason="").values_list("reason", flat=True)
    assert list(reasons) == ([] if plain else ["batch_expired"])


@pytest.mark.parametrize(
    ("budget", "answered", "problem"),
    [
        (Budget(calls=3), 3, "budget_calls"),
        (Budget(money=12_000_000), 2, "budget_money"),
        (Budget(tokens=1_000_000), ROWS, ""),
    ],
)
def test_no_more_is_sent_than_the_budget_allows(
    project: Project, server: ScriptedJudge, budget: Budget, answered: int, problem: str
) -> None:
    run = batched_run(endpoint_at(project, server), RunOptions(batched=True, budget=budget))
    for _ in range(8):
        look(run)
    run.refresh_from_db()
    assert (run.scored, run.calls, run.problem) == (answered, answered, problem)
    assert run.state == (RunState.PAUSED if problem else RunState.FINISHED)
    run_resume(run, budget=Budget())
    assert ended(run).scored == ROWS


def test_what_expired_is_not_sent_alone_beyond_the_budget(
    project: Project, server: ScriptedJudge, batches: ScriptedBatches
) -> None:
    batches.answers = 2
    options = RunOptions(batched=True, plain_if_expired=True, budget=Budget(calls=3))
    run = batched_run(endpoint_at(project, server), options)
    for _ in range(8):
        look(run)
    run.refresh_from_db()
    assert (run.scored, run.calls, run.problem, run.state) == (3, 3, "budget_calls", RunState.PAUSED)


def test_pausing_ends_the_batch_and_keeps_what_was_answered(
    project: Project, server: ScriptedJudge, batches: ScriptedBatches
) -> None:
    batches.hold = True
    run = batched_run(endpoint_at(project, server))
    look(run)
    run_pause(Run.objects.get(pk=run.pk))
    for _ in range(2):
        jobs.run("run_batches", run.pk)
    assert batches.created[0].state == "cancelled"
    assert RequestBatch.objects.get().state == BatchState.COLLECTED
    batches.hold = False
    run_resume(Run.objects.get(pk=run.pk))
    assert ended(run).scored == ROWS
    assert len(batches.created) == 2


def test_cancelling_ends_the_batch(project: Project, server: ScriptedJudge, batches: ScriptedBatches) -> None:
    batches.hold = True
    run = batched_run(endpoint_at(project, server))
    look(run)
    run_cancel(Run.objects.get(pk=run.pk))
    for _ in range(2):
        jobs.run("run_batches", run.pk)
    assert batches.created[0].state == "cancelled"
    assert jobs.of("run_batches", run.pk) is None


@EVERY
@pytest.mark.parametrize("stop", [run_pause, run_cancel])
def test_what_a_stopped_run_s_batch_answered_is_judged_without_a_call(
    project: Project,
    server: ScriptedJudge,
    batches: ScriptedBatches,
    stop: Callable[[Run], bool],
    protocol: str,
) -> None:
    batches.hold, batches.before_cancelled = True, 3
    run = look(batched_run(endpoint_at(project, server, protocol)))
    stop(run)
    for _ in range(4):
        run = look(run)
    assert run.state in (RunState.PAUSED, RunState.CANCELLED)
    assert (run.scored, run.not_run, run.calls, len(batches.created)) == (3, 1, 3, 1)
    assert not has_waiting_work()
    batches.hold = False
    run_resume(run)
    assert ended(run).scored == ROWS
    assert [len(batch.lines) for batch in batches.created] == [ROWS, 1]


def test_a_run_stopped_before_its_batch_was_sent_sends_none(
    project: Project, server: ScriptedJudge, batches: ScriptedBatches
) -> None:
    batches.step = breaking("upload")
    run = look(batched_run(endpoint_at(project, server)))
    run_cancel(run)
    batches.step = lambda _name, _when: None
    for _ in range(2):
        look(run)
    assert (batches.created, RequestBatch.objects.count(), BatchRequest.objects.count()) == ([], 0, ROWS)
    run_resume(Run.objects.get(pk=run.pk))
    assert ended(run).scored == ROWS


def test_a_stopped_run_that_kills_its_workers_waits_to_be_resumed(
    project: Project, server: ScriptedJudge, batches: ScriptedBatches
) -> None:
    batches.hold, batches.before_cancelled = True, ROWS
    run = look(batched_run(endpoint_at(project, server)))
    run_cancel(run)
    for _ in range(2):
        jobs.run("run_batches", run.pk)
    for _ in range(deaths.MAX_DEATHS_WITHOUT_PROGRESS):
        assert has_waiting_work()
        assert chunks.lease(run.pk, f"{socket.gethostname()}:999999:1")  # a process that is gone
        free_dead_leases()
    assert not has_waiting_work()
    run_resume(Run.objects.get(pk=run.pk))
    assert ended(run).scored == ROWS


def breaking(
    name: str, status: type[web.HTTPException] | type[OSError] = OSError
) -> Callable[[str, str], None]:
    """A step at which the server breaks, or refuses."""

    def step(step_name: str, _when: str) -> None:
        if step_name == name:
            raise status

    return step


@EVERY
def test_a_batch_whose_confirmation_can_t_be_read_is_sent_once(
    project: Project, server: ScriptedJudge, batches: ScriptedBatches, protocol: str
) -> None:
    """The server took it, and a proxy sent a page in place of the reply."""

    def step(name: str, when: str) -> None:
        if (name, when) == ("create", "after") and len(batches.created) == 1:
            raise PageInstead

    batches.step = step
    run = ended(batched_run(endpoint_at(project, server, protocol)))
    assert (run.scored, len(batches.created)) == (ROWS, 1)


class PageInstead(web.HTTPOk):
    def __init__(self) -> None:
        super().__init__(text="<html>")


@EVERY
def test_a_refused_batch_stops_the_run_and_is_not_sent_again_at_once(
    project: Project, server: ScriptedJudge, batches: ScriptedBatches, protocol: str
) -> None:
    batches.step = breaking("create", web.HTTPForbidden)
    run = look(batched_run(endpoint_at(project, server, protocol)))
    assert (run.state, run.problem, RequestBatch.objects.count()) == (RunState.PAUSED, "forbidden", 1)
    batches.step = lambda _name, _when: None
    run_resume(run)
    assert ended(run).scored == ROWS


def test_a_batch_that_the_server_no_longer_has_is_sent_again_once_somebody_has_looked(
    project: Project, server: ScriptedJudge, batches: ScriptedBatches
) -> None:
    run = look(batched_run(endpoint_at(project, server)))
    batches.step = breaking("status", web.HTTPNotFound)
    run = look(run)
    assert (run.state, run.problem, len(batches.created)) == (RunState.PAUSED, "not_found", 1)
    run_resume(run)
    look(run)
    batches.step = lambda _name, _when: None
    assert ended(run).scored == ROWS
    assert len(batches.created) == 2


@EVERY
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", ["upload", "create", "status", "content"])
def test_a_batch_is_sent_once_wherever_the_connection_breaks(
    project: Project, server: ScriptedJudge, batches: ScriptedBatches, name: str, when: str, protocol: str
) -> None:
    """What the server did last is not known, as after a kill."""
    broken: list[str] = []

    def step(step_name: str, step_when: str) -> None:
        if (step_name, step_when) == (name, when) and not broken:
            broken.append(name)
            raise ConnectionResetError

    batches.step = step
    run = ended(batched_run(endpoint_at(project, server, protocol)))
    assert (run.state, run.scored, run.calls, run.calls_failed) == (RunState.FINISHED, ROWS, ROWS, 0)
    assert len(batches.created) == 1


def test_a_call_about_batches_takes_no_longer_than_the_endpoint_s_total_time_out(
    project: Project, server: ScriptedJudge, batches: ScriptedBatches
) -> None:
    released = threading.Event()
    batches.step = lambda _name, _when: released.wait(TIMEOUT) and None
    endpoint = endpoint_at(project, server)
    Endpoint.objects.update(total_seconds=1)
    run = look(batched_run(endpoint))
    released.set()
    assert RequestBatch.objects.get().problem == "timeout_whole"
    assert ended(run).scored == ROWS
    assert len(batches.created) == 1


@pytest.mark.parametrize(
    ("options", "why"),
    [({"stop_width": 1.0}, "end early"), ({}, "found no batches")],
)
def test_a_run_that_can_t_be_batched_is_refused(
    project: Project, server: ScriptedJudge, options: dict[str, Any], why: str
) -> None:
    endpoint = an_endpoint(project, server.url)
    with pytest.raises(ValidationError, match=why):
        batched_run(endpoint, RunOptions(batched=True, **options))


def test_the_connection_test_finds_batches_without_making_one(
    project: Project, server: ScriptedJudge, batches: ScriptedBatches
) -> None:
    assert try_endpoint(an_endpoint(project, server.url)).batches
    assert batches.created == []
    with ScriptedJudge("OK") as without:
        Endpoint.objects.update(url=without.url)
        assert not try_endpoint(Endpoint.objects.get()).batches


def test_an_overloaded_server_in_a_batch_is_no_bad_request(
    project: Project, batches: ScriptedBatches
) -> None:
    overloaded = refusal(529, "Overloaded", type="overloaded_error")
    with ScriptedJudge(overloaded, batches=batches) as server:
        run = ended(batched_run(endpoint_at(project, server, "anthropic")))
    assert (run.state, run.errors) == (RunState.FINISHED, ROWS)
    assert set(Judgement.objects.values_list("reason", flat=True)) == {"overloaded"}


@BOTH
def test_what_the_server_was_too_busy_for_is_sent_alone_if_the_run_allows_it(
    project: Project, batches: ScriptedBatches, protocol: str
) -> None:
    busy = [refusal(529, "Overloaded", type="overloaded_error")] * 2
    with ScriptedJudge([*busy, Answer("Score: [[7]]")], batches=batches) as server:
        options = RunOptions(batched=True, plain_if_expired=True)
        run = ended(batched_run(endpoint_at(project, server, protocol), options))
    assert (run.state, run.scored, run.errors) == (RunState.FINISHED, ROWS, 0)
    assert (run.calls, run.calls_failed, len(batches.created)) == (ROWS + 2, 2, 1)
