"""Sends the stored requests of a run in batches, and collects their results.

    requests stored (batch_caller.py) ──▶ sending ──▶ sent ──▶ collected ──▶ parked chunks are free: judged again

Each arrow is a transaction of its own, and a batch is stored before it is sent, so a killed worker loses none and sends
none twice. A batch of which nobody knows whether it arrived is found again among the server's: by its marker, or where
the server keeps none (Anthropic), among those of its size made since, by the `custom_id`s of their results.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import TypeVar

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Length
from django.utils import timezone

from evalsite.secrets import Undecryptable
from evalsite.tasks import jobs, workers
from evalsite.tasks.jobs import Hold, WorkStopped
from judging.core.judges.batches import ANTHROPIC, Batches, ItemResult, Line, RemoteBatch
from judging.core.judges.errors import Interrupted, JudgeError, Unusable
from judging.core.judges.http_clients import open_client
from judging.core.judges.reply import Usage
from judging.core.judges.settings import JudgeSettings
from judging.endpoints.connection_test import endpoint_settings
from judging.endpoints.requests import EndpointError
from judging.engine import chunks
from judging.engine.batch_caller import read_reply
from judging.engine.budget import CHEAPER, budget_of, fitting, spent_by
from judging.engine.run_worker import judge_runs
from judging.engine.stopping import run_stop_at_budget, run_stop_at_endpoint
from judging.records.models import BatchRequest, BatchState, Chunk, RequestBatch, Run, RunState

JOB = "run_batches"
MOST_ITEMS = 5_000
MOST_CHARACTERS = 50_000_000
"""Of the requests of one batch; servers allow 100 MB and more."""
CLOCKS = 300
"""Seconds by which the clocks of a server and of ours may differ."""
SHORTEST_POLL, LONGEST_POLL = 2, 60
STORED_AT_ONCE = 200

Result = TypeVar("Result")


@jobs.job(JOB, Run)
def run_batches(hold: Hold, run: Run) -> None:
    """One look at the batches of a run: each is brought a step further. The job then waits, as long as any is out."""
    if not run.batched:
        return
    for batch in _open(run):
        hold.renew()
        _advance(run, batch)
    while _is_running(run) and (new := _new_batch(run)) is not None:
        hold.renew()
        _advance(run, new)
    if run.state == RunState.RUNNING:
        _go_on(run)
    else:
        _judge_collected(run)
    if _open(run) or (run.state == RunState.RUNNING and _passing(run)):
        hold.release(timedelta(seconds=_pause(run)))
        raise WorkStopped


def _is_running(run: Run) -> bool:
    """Whether the run goes on, which a refused batch ends."""
    run.refresh_from_db()
    return run.state == RunState.RUNNING


def _open(run: Run) -> list[RequestBatch]:
    batches = RequestBatch.objects.filter(run=run, state__in=(BatchState.SENDING, BatchState.SENT))
    return list(batches.select_related("endpoint").order_by("pk"))


def _passing(run: Run) -> bool:
    """Whether workers are still making judgements, or storing requests."""
    return Chunk.objects.filter(run=run, done=False).exclude(owner=chunks.PARKED).exists()


def _waiting(run: Run) -> bool:
    return BatchRequest.objects.filter(run=run, done=False, plain=False).exists()


def _pause(run: Run) -> float:
    """Seconds until the next look: longer for older batches."""
    oldest = RequestBatch.objects.filter(run=run, state=BatchState.SENT).order_by("pk").first()
    age = (timezone.now() - oldest.created_at).total_seconds() if oldest else 0.0
    return min(LONGEST_POLL, max(SHORTEST_POLL, age / 10))


def _go_on(run: Run) -> None:
    """Let workers judge again what no batch will answer any more; a run whose budget is used up stops after that."""
    if _open(run) or _passing(run):
        return
    unread = RequestBatch.objects.filter(run=run, state=BatchState.COLLECTED, read=False)
    problem = spent_by(run).reached(budget_of(run))
    if problem and not unread.exists():
        if Chunk.objects.filter(run=run, done=False).exists():
            run_stop_at_budget(run, problem)
    elif problem or not _waiting(run):
        unread.update(read=True)
        if chunks.unpark(run.pk):
            workers.wake(judge_runs)


@transaction.atomic
def _judge_collected(run: Run) -> None:
    """Let workers judge what the batches of a stopped run answered, without sending anything (chunks.collecting)."""
    unread = RequestBatch.objects.filter(run=run, state=BatchState.COLLECTED, read=False)
    if not _open(run) and unread.update(read=True) and chunks.unpark(run.pk):
        workers.wake(judge_runs)


@transaction.atomic
def _new_batch(run: Run) -> RequestBatch | None:
    """A new batch of requests to one endpoint that wait for one, as many as the run's budget allows, once no worker is
    storing more; None without any."""
    waiting = BatchRequest.objects.filter(run=run, done=False, plain=False, batch=None).order_by("pk")
    first = waiting.first()
    if first is None or _passing(run):
        return None
    chosen: list[int] = []
    characters = 0
    sizes = waiting.filter(endpoint=first.endpoint_id).values_list("pk", Length("request"))
    for pk, size in sizes[: _most_items(run, first.endpoint_id)]:
        characters += size
        if chosen and characters > MOST_CHARACTERS:
            break
        chosen.append(pk)
    if not chosen:
        return None
    batch = RequestBatch.objects.create(
        run=run, endpoint_id=first.endpoint_id, marker=uuid.uuid4().hex, items=len(chosen)
    )
    BatchRequest.objects.filter(pk__in=chosen, batch=None).update(batch=batch)
    return batch


def _most_items(run: Run, endpoint: int | None) -> int:
    """How many requests to an endpoint the next batch may have."""
    if not budget_of(run):
        return MOST_ITEMS
    undone = BatchRequest.objects.filter(run=run, done=False, plain=False).order_by("pk")
    sizes = undone.values_list("endpoint", Length("request"))
    waiting = sizes.filter(batch=None, endpoint=endpoint)[:MOST_ITEMS]
    return fitting(run, CHEAPER, sizes.exclude(batch=None), waiting)


def _advance(run: Run, batch: RequestBatch) -> None:
    """Bring a batch a step further; a server that can't be reached is tried again at the next look."""
    try:
        if batch.state == BatchState.SENDING:
            _send(run, batch)
        elif _collected(run, batch):
            workers.wake(judge_runs)
    except JudgeError as error:
        RequestBatch.objects.filter(pk=batch.pk).update(problem=error.code, problem_detail=error.message)
        perhaps_arrived = isinstance(error, (Interrupted, Unusable))
        if batch.state == BatchState.SENDING and not (error.retry or perhaps_arrived):
            _refused(run, batch, error)
        elif error.status in (404, 410):
            _gone(run, batch, error)
    except Undecryptable:
        name = batch.endpoint.name if batch.endpoint else ""
        run_stop_at_endpoint(run, EndpointError(name, "key_unreadable", ""))


def _refused(run: Run, batch: RequestBatch, error: JudgeError) -> None:
    """The server takes no such batch: its requests wait again, and the run until somebody has looked."""
    _give_up(batch)
    _stop_run(run, batch, error)


def _gone(run: Run, batch: RequestBatch, error: JudgeError) -> None:
    """The server does not know a batch that it took: the run waits until somebody has looked, because a wrong address
    looks the same; once it was resumed and that is still so, the requests are sent again."""
    if run.state == RunState.RUNNING and batch.problem == error.code:
        _give_up(batch)
    else:
        _stop_run(run, batch, error)


@transaction.atomic
def _give_up(batch: RequestBatch) -> None:
    RequestBatch.objects.filter(pk=batch.pk).update(state=BatchState.FAILED)
    batch.requests.filter(done=False).update(batch=None)


def _stop_run(run: Run, batch: RequestBatch, error: JudgeError) -> None:
    name = batch.endpoint.name if batch.endpoint else ""
    run_stop_at_endpoint(run, EndpointError(name, error.code, error.message))


def _called(batch: RequestBatch, work: Callable[[Batches], Awaitable[Result]]) -> Result:
    """Call the server of a batch. Raises JudgeError, Undecryptable."""
    endpoint = batch.endpoint
    assert endpoint is not None
    settings = endpoint_settings(endpoint)

    async def call() -> Result:
        async with open_client(settings) as client:
            return await work(Batches(client, settings))

    return asyncio.run(call())


# --- sending ---------------------------------------------------------------------------------------------------


def _send(run: Run, batch: RequestBatch) -> None:
    """Send a batch that is not at the server yet; that of a run that was stopped is dropped, and its requests wait."""
    if batch.tried:  # perhaps it arrived
        remote, settled = _found(batch)
        if remote or not settled:
            if remote:
                _sent(batch, remote.id)
            return
    if run.state != RunState.RUNNING:
        batch.delete()
        return
    RequestBatch.objects.filter(pk=batch.pk).update(tried=True)
    lines = [Line(custom_id, json.loads(request)) for custom_id, request in _lines(batch)]
    _sent(batch, _called(batch, lambda batches: batches.submit(batch.marker, lines)))


def _lines(batch: RequestBatch) -> Iterator[tuple[str, str]]:
    yield from batch.requests.order_by("pk").values_list("custom_id", "request").iterator(chunk_size=500)


def _sent(batch: RequestBatch, remote_id: str) -> None:
    RequestBatch.objects.filter(pk=batch.pk, state=BatchState.SENDING).update(
        state=BatchState.SENT, remote_id=remote_id, sent_at=timezone.now(), problem="", problem_detail=""
    )


def _found(batch: RequestBatch) -> tuple[RemoteBatch | None, bool]:
    """The batch at the server, if it arrived, and whether that is settled."""
    stored = set(RequestBatch.objects.exclude(remote_id="").values_list("remote_id", flat=True))
    since = batch.created_at.timestamp() - CLOCKS
    remotes = [
        remote
        for remote in _called(batch, lambda batches: batches.recent())
        if remote.id not in stored and remote.created >= since
    ]
    if batch.endpoint and batch.endpoint.protocol != ANTHROPIC:
        return next((remote for remote in remotes if remote.marker == batch.marker), None), True
    alike = [remote for remote in remotes if remote.items == batch.items]
    for remote in alike:
        if remote.ended and _is_ours(batch, remote):
            return remote, True
    return None, all(remote.ended for remote in alike)


def _is_ours(batch: RequestBatch, remote: RemoteBatch) -> bool:
    """Whether a batch that has ended answers the requests of this one, by the first result."""

    async def first(batches: Batches) -> ItemResult | None:
        async for result in batches.results(remote):
            return result
        return None

    result = _called(batch, first)
    return result is not None and batch.requests.filter(custom_id=result.custom_id).exists()


# --- collecting ------------------------------------------------------------------------------------------------


def _collected(run: Run, batch: RequestBatch) -> bool:
    """Collect a batch if it has ended. One of a run that is paused or cancelled is asked to end."""
    remote = _called(batch, lambda batches: batches.get(batch.remote_id))
    RequestBatch.objects.filter(pk=batch.pk).update(
        remote_state=remote.state[:40], problem="", problem_detail=remote.problem
    )
    if not remote.ended:
        if run.state != RunState.RUNNING and not batch.cancel_asked:
            _called(batch, lambda batches: batches.cancel(batch.remote_id))
            RequestBatch.objects.filter(pk=batch.pk).update(cancel_asked=True)
        return False
    settings = endpoint_settings(batch.endpoint) if batch.endpoint else None
    assert settings is not None

    async def read(batches: Batches) -> list[ItemResult]:
        return [result async for result in batches.results(remote)]

    results = _called(batch, read)
    for start in range(0, len(results), STORED_AT_ONCE):
        _store(run, batch, settings, results[start : start + STORED_AT_ONCE])
    _conclude(run, batch, remote)
    return True


@transaction.atomic
def _store(run: Run, batch: RequestBatch, settings: JudgeSettings, results: list[ItemResult]) -> None:
    """Store replies and count them, each once however often they are read. What the server was too busy for is sent
    alone, if the run allows that."""
    bodies = {result.custom_id: result for result in results if result.status}
    rows = BatchRequest.objects.select_for_update().filter(
        batch=batch, done=False, plain=False, custom_id__in=bodies
    )
    prices = run.prices.get(str(batch.endpoint_id), (0.0, 0.0))
    calls = failed = read = written = 0
    money = 0.0
    for row in rows:
        result = bodies[row.custom_id]
        row.status, row.body = result.status, result.body.decode("utf-8", "replace")
        reply, error = read_reply(settings, json.loads(row.request), row.status, row.body)
        row.plain = run.plain_if_expired and error is not None and error.retry
        row.done = not row.plain
        answer = reply or (error.reply if error else None)
        usage = answer.usage if answer else Usage()
        calls, failed = calls + 1, failed + (answer is None)
        read, written = read + (usage.prompt_tokens or 0), written + (usage.completion_tokens or 0)
        money += usage.cost(*prices) * CHEAPER
        row.save(update_fields=["done", "plain", "status", "body"])
    RequestBatch.objects.filter(pk=batch.pk).update(answered=F("answered") + calls)
    Run.objects.filter(pk=run.pk).update(
        calls=F("calls") + calls,
        calls_failed=F("calls_failed") + failed,
        prompt_tokens=F("prompt_tokens") + read,
        completion_tokens=F("completion_tokens") + written,
        spent=F("spent") + round(money),
    )


@transaction.atomic
def _conclude(run: Run, batch: RequestBatch, remote: RemoteBatch) -> None:
    """Decide what becomes of the requests without a reply: of a batch that was stopped they wait again; else they are
    sent alone, if the run allows it, or have no reply."""
    left = batch.requests.filter(done=False)
    if batch.cancel_asked or remote.state in ("cancelled", "failed"):
        left.update(batch=None)
    elif run.plain_if_expired:
        left.update(plain=True)
    else:
        left.update(done=True, status=0)
    RequestBatch.objects.filter(pk=batch.pk).update(
        state=BatchState.COLLECTED, collected_at=timezone.now(), remote_state=remote.state[:40]
    )
    if remote.state == "failed":
        name = batch.endpoint.name if batch.endpoint else ""
        run_stop_at_endpoint(run, EndpointError(name, "bad_request", remote.problem))
