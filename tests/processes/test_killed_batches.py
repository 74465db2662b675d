"""kill -9 at every step of a batch: it is sent once and collected once."""

from __future__ import annotations

import pytest

from judging.core.judges.scripted import Answer, ScriptedJudge
from judging.core.judges.scripted_batches import ScriptedBatches
from judging.engine.budget import Budget
from judging.engine.stopping import run_cancel
from judging.records.models import BatchState, JudgeReply, RequestBatch, Run, RunState
from judging.runs.services import RunOptions
from tests.judging.working import an_endpoint
from tests.make import a_metric, a_project, a_run, a_version
from tests.processes.conftest import Processes, wait_until

pytestmark = pytest.mark.processes
ROWS = 20
OF_FILES = ("upload", "create", "status", "content")
STEPS = {
    "chat": OF_FILES,
    "responses": ("create",),  # the code of all other steps is that of chat
    "azure": ("create",),
    "anthropic": ("create", "status", "results"),
}


@pytest.mark.parametrize(
    ("protocol", "most"), [("chat", ROWS), ("responses", ROWS), ("azure", 12), ("anthropic", ROWS)]
)
def test_a_batch_is_sent_and_counted_once_wherever_its_worker_is_killed(
    processes: Processes, protocol: str, most: int
) -> None:
    """`most`: the requests that the run's budget allows."""
    left = [(name, when) for name in STEPS[protocol] for when in ("before", "after")]

    def step(name: str, when: str) -> None:
        if (name, when) in left:
            left.remove((name, when))
            processes.started[-1].kill()
            raise ConnectionResetError

    batches = ScriptedBatches(step=step)
    with ScriptedJudge(Answer("[[5]]", tokens=(10, 5)), batches=batches) as judge:
        endpoint = an_endpoint(a_project(), judge.url, protocol=protocol, probe={"batches": True})
        version = a_version(endpoint.project, rows=ROWS, models=("alpha",))
        options = RunOptions(batched=True, budget=Budget(calls=most))
        run = a_run(version, a_metric("", endpoint=endpoint.pk), options=options)
        while left:
            worker = processes.start("worker")
            wait_until(lambda: worker.poll() is not None, 60)  # noqa: B023 - waits within this turn
        processes.start("worker")
        end = RunState.FINISHED if most == ROWS else RunState.PAUSED
        wait_until(lambda: Run.objects.get(pk=run.pk).state == end, 90)
    run.refresh_from_db()
    assert (run.scored, run.calls, run.prompt_tokens) == (most, most, 10 * most)
    assert JudgeReply.objects.filter(judgement__run=run).count() == most
    assert [len(batch.lines) for batch in batches.created] == [most]


def test_what_was_answered_before_a_run_was_cancelled_is_judged_wherever_its_worker_is_killed(
    processes: Processes,
) -> None:
    steps = [(name, when) for name in ("cancel", "status", "content") for when in ("before", "after")]
    left: list[tuple[str, str]] = []

    def step(name: str, when: str) -> None:
        if (name, when) in left:
            left.remove((name, when))
            processes.started[-1].kill()
            raise ConnectionResetError

    batches = ScriptedBatches(hold=True, before_cancelled=ROWS - 5, step=step)
    with ScriptedJudge(Answer("[[5]]", tokens=(10, 5)), batches=batches) as judge:
        endpoint = an_endpoint(a_project(), judge.url, probe={"batches": True})
        version = a_version(endpoint.project, rows=ROWS, models=("alpha",))
        run = a_run(version, a_metric("", endpoint=endpoint.pk), options=RunOptions(batched=True))
        processes.start("worker")
        wait_until(lambda: RequestBatch.objects.filter(run=run, state=BatchState.SENT).exists(), 60)
        run_cancel(Run.objects.get(pk=run.pk))
        left += steps
        while left:
            worker = processes.started[-1]
            wait_until(lambda: worker.poll() is not None, 60)  # noqa: B023 - waits within this turn
            processes.start("worker")
        wait_until(lambda: Run.objects.get(pk=run.pk).scored == ROWS - 5, 60)
    run.refresh_from_db()
    assert (run.state, run.calls, run.not_run) == (RunState.CANCELLED, ROWS - 5, 5)
