"""All gates of one worker, and their regular exchange with those of other workers (limiter.py)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass

from django.db import DatabaseError

from evalsite.secrets import Undecryptable
from evalsite.tasks.workers import Backoff
from judging.core.judges.settings import JudgeSettings
from judging.core.metric_definition import JudgeModel
from judging.core.results import Failure
from judging.endpoints import limiter
from judging.endpoints.gate import Gate, RunInThread
from judging.endpoints.models import Endpoint
from judging.endpoints.settings import default_concurrency, judge_settings, unusable

log = logging.getLogger("judging.run_worker")

HEARTBEAT_SECONDS = 0.5
PAUSE_SECONDS = 0.05  # between two exchanges, whatever happens


@dataclass(slots=True)
class ModelConnection:
    """A judge or candidate model of one run: its own settings and its endpoint's shared gate."""

    settings: JudgeSettings
    gate: Gate
    endpoint: int | None = None
    failure: Failure | None = None
    answered: bool = False
    name: str = ""
    setting_failures: int = 0  # in a row


class GatePool:
    """The gates of one worker. `in_thread` runs database work outside the event loop. `single`: for one call from a
    page."""

    def __init__(self, owner: str, in_thread: RunInThread, *, single: bool = False) -> None:
        self.owner = owner
        self.single = single
        self.gates: dict[str, Gate] = {}
        self._in_thread = in_thread
        self._changed = asyncio.Event()
        self._exchanged_at = time.monotonic()

    def connection(self, judge: JudgeModel) -> ModelConnection:
        """Return a connection for the model. Reads and writes the database."""
        row = Endpoint.objects.filter(pk=judge.endpoint).first() if judge.endpoint else None
        gate, name = self._gate(judge, row), row.name if row else judge.url
        try:
            settings = judge_settings(judge, row)
        except Undecryptable:
            settings = JudgeSettings(url=judge.url, model=judge.model)
            return ModelConnection(settings, gate, judge.endpoint, Failure("key_unreadable"), name=name)
        return ModelConnection(settings, gate, row.pk if row else None, unusable(judge, row), name=name)

    def _gate(self, judge: JudgeModel, row: Endpoint | None) -> Gate:
        key = limiter.endpoint_key(judge)
        if key not in self.gates:
            limiter.ensure_row(key)
            self.gates[key] = Gate(
                key,
                judge.endpoint,
                row.concurrency if row else default_concurrency(),
                limiter.rate_limits(row),
                self._in_thread,
                self._changed.set,
                single=self.single,
            )
        return self.gates[key]

    async def keep_in_sync(self) -> None:
        """Exchange with the other workers until cancelled: regularly, and when something has changed. If the database
        is unavailable, use no calls before others may take them."""
        backoff = Backoff()
        while True:
            self._changed.clear()
            try:
                await self.exchange()
            except DatabaseError as error:
                log.warning("Could not synchronize endpoint limits: %s", error)
                self._expire()
                await asyncio.sleep(min(backoff.failed(), limiter.SILENT_SECONDS / 4))
                continue
            backoff.succeeded()
            await asyncio.sleep(PAUSE_SECONDS)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), HEARTBEAT_SECONDS)

    def _expire(self) -> None:
        if time.monotonic() - self._exchanged_at > limiter.SILENT_SECONDS / 2:
            for gate in self.gates.values():
                gate.share = 0

    async def exchange(self) -> None:
        """Report to the other workers and apply what they share."""
        began = time.monotonic()
        reports = {key: gate.report() for key, gate in list(self.gates.items()) if not gate.is_absent}
        try:
            allowances = await self._in_thread(limiter.exchange, list(reports.values()), self.owner)
        except BaseException:
            for key, report in reports.items():
                self.gates[key].restore_report(report)
            raise
        for key, allowance in allowances.items():
            self.gates[key].apply(allowance)
        self._exchanged_at = began

    def end(self) -> None:
        """Report what has not been, and release all calls. Uses the database."""
        gates = list(self.gates.values())
        limiter.exchange([gate.report() for gate in gates], self.owner)
        for gate in gates:
            if gate.owed:
                limiter.take(gate.key, [], gate.owed)
        limiter.release(self.gates, self.owner)

    async def release(self) -> None:
        """As `end`, after an exchange that is still being written."""
        await self._in_thread(self.end)
