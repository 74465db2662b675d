"""A run in progress in a worker: leases chunks and starts a task per judgement; rule programs run without one."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from datasets.core.formats import Format
from judging.core.judges.client import RetryPolicy
from judging.core.judges.http_clients import HttpClients
from judging.core.pipeline import judge_item
from judging.core.results import JudgementResult
from judging.core.sandbox.pool import Sandbox
from judging.core.values import Outcome
from judging.endpoints.gate import Lot, RunInThread
from judging.endpoints.gate_pool import GatePool
from judging.endpoints.requests import Abandoned, Caller, RunGate
from judging.engine import chunks, planning
from judging.engine.batch_caller import BatchCaller
from judging.engine.budget import Ledger, budget_of, spent_by
from judging.engine.effects import MetricEffects, RuleEffects
from judging.engine.generation import AnswerGenerator, connected_models, unanswered, with_answers, with_flags
from judging.engine.journal import InFlight, Journal, Work, WorkInFlight, WorkKey
from judging.engine.reply_cache import ReplyCache
from judging.engine.write_buffer import WriteBuffer
from judging.records.models import Priority, Run, RunMetric, RunState

log = logging.getLogger("judging.run_worker")

WEIGHTS = {Priority.LOW: 1.0, Priority.NORMAL: 3.0, Priority.HIGH: 9.0}  # when runs compete for calls


@dataclass(frozen=True, slots=True)
class WorkerResources:
    """Resources shared by all runs of one worker."""

    owner: str
    policy: RetryPolicy
    clients: HttpClients
    pool: GatePool
    sandbox: Sandbox
    in_sandbox: RunInThread
    watching: RunInThread
    journal: Journal
    buffer: WriteBuffer


@dataclass(slots=True)
class ActiveRun:
    """A run that a worker is processing.

    `ahead`: the maximum number of open judgements, enough to fill all slots while the next chunk is loaded.
    `weighted_chunks`: the number of chunks leased so far, divided by the run's weight. `collects`: it was stopped, and
    sends no request (chunks.collecting).
    """

    pk: int
    form: Format
    gate: RunGate
    ledger: Ledger
    cache: ReplyCache | None
    caller: Caller
    in_flight: WorkInFlight
    shared: WorkerResources
    ahead: int = planning.CHUNK
    weighted_chunks: float = 0.0
    exhausted: bool = False
    collects: bool = False
    generator: AnswerGenerator | None = None  # None: all answers were uploaded
    effects: dict[chunks.MetricKey, MetricEffects] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run, shared: WorkerResources) -> ActiveRun:
        """Create from a run. Reads the database."""
        ledger = Ledger(budget_of(run), not run.batched, run.prices, spent_by(run))
        gate = RunGate(Lot(run.project_id, run.pk, WEIGHTS[Priority(run.priority)]), ledger)
        caller = Caller(shared.clients, gate, shared.policy)
        collects = run.state != RunState.RUNNING
        if run.batched:
            caller = BatchCaller(run.pk, caller, shared.watching, sends=not collects)
        cache = None
        if run.reuse_replies:
            cache = ReplyCache(run.project_id, shared.watching, any_temperature=run.reuse_at_any_temperature)
        form = cast(Format, run.version.format)
        active = cls(run.pk, form, gate, ledger, cache, caller, WorkInFlight(shared.journal), shared)
        active.collects = collects
        metrics = list(RunMetric.objects.filter(run=run).values_list("pk", flat=True))
        for run_metric in metrics:
            models = active.effects_of((run_metric, None)).models
            active.ahead += sum(model.gate.maximum for model in models)
        models_by_candidate = connected_models(run.pk, shared.pool)
        if models_by_candidate:
            active.generator = AnswerGenerator(models_by_candidate, caller, active.in_flight, shared.buffer)
            # Each requested answer is in flight together with the judgements that wait for it.
            slots = sum(model.connection.gate.maximum for model in models_by_candidate.values())
            active.ahead += (len(metrics) + 1) * slots
        return active

    def effects_of(self, key: chunks.MetricKey) -> MetricEffects:
        """The effects of a run's metric or reading. Reads the database on first use, because a finished run may be
        re-parsed with a new reading."""
        if key not in self.effects:
            metric, shared = chunks.definition(key), self.shared
            models = [shared.pool.connection(judge) for judge in metric.judges]
            self.effects[key] = MetricEffects(
                metric, models, self.caller, shared.sandbox, shared.in_sandbox, self.cache
            )
        return self.effects[key]

    def check_outages(self) -> None:
        """Set the gate's error if the run has waited too long for a server that is down."""
        models = [model for effects in list(self.effects.values()) for model in effects.models]
        if self.generator:
            models += [model.connection for model in self.generator.models.values()]
        for model in models:
            self.caller.check_outage(model)

    @property
    def needs_chunk(self) -> bool:
        """Whether to lease another chunk: fewer than `ahead` items are in flight."""
        return self.gate.open and not (self.gate.error or self.exhausted or len(self.in_flight) >= self.ahead)

    @property
    def is_over(self) -> bool:
        """Whether this worker is done with the run for now. It is picked up again if it gets chunks or resumes."""
        return not self.in_flight and (self.exhausted or not self.gate.open)

    def abandon_unsent(self) -> None:
        """Abandon unsent work of a paused or cancelled run. Replies in progress are still stored."""
        if self.gate.open:
            self.gate.open = False
            self.in_flight.cancel_unsent()

    def load_chunk(self) -> LoadedChunk | None:
        """Lease and load the next chunk; None if there is none. Uses the database."""
        leased = chunks.lease(self.pk, self.shared.owner)
        while leased and leased.chunk in self.shared.buffer.held:  # see chunks.renew
            leased = chunks.lease(self.pk, self.shared.owner)
        if leased is None:
            return None
        items = chunks.load(
            leased, self.form, lambda key: self.effects_of(key).numbers, self._scripts_before_judges_changed
        )
        programs = {key: self.effects_of(key).alone for key in {item.metric for item in items}}
        loaded = LoadedChunk(leased)
        for item in items:
            program = programs[item.metric]
            if item.asks and item.previous:
                loaded.judged.append(unanswered(item))
            elif program and not item.asks:
                loaded.judged.append(judged_by_program(item, program))
            else:
                loaded.items.append(item)
        return loaded

    def _scripts_before_judges_changed(self, key: chunks.MetricKey) -> bool:
        now, then = (self.effects_of(metric).metric for metric in (key, (key[0], None)))
        return now.scripts_before_judges != then.scripts_before_judges

    def start(self, loaded: LoadedChunk) -> None:
        """Hold the chunk and start a task for each remaining item."""
        self.weighted_chunks += 1 / self.gate.lot.weight
        self.shared.buffer.hold(loaded.leased, len(loaded.items), loaded.judged)
        for item in loaded.items:
            self.in_flight.start(WorkKey(Work.JUDGEMENT, item.judgement), partial(self._judge, item))

    async def _judge(self, item: chunks.ToJudge, waiting: InFlight) -> None:
        """Make one judgement, first waiting for the answer if it has to be generated."""
        judged: chunks.Judged | None = None
        try:
            generated = await self.generator.answers(item) if item.asks and self.generator else ()
            if any(attempt.failure for attempt in generated):
                judged = unanswered(item, generated)
            else:
                answered = with_answers(item, generated) if generated else item
                effects = self.effects[item.metric]
                result = await judge_item(
                    answered.item, effects.metric, effects, partial(effects.ask, waiting), item.previous
                )
                judged = chunks.Judged(answered, with_flags(answered, result))
        except (Abandoned, asyncio.CancelledError):
            pass  # it stays `not_run`
        except Exception as error:  # one judgement's error must not stop the run
            judged = internal_error(item, error)
        self.shared.buffer.judged(item.chunk, judged)


@dataclass(frozen=True, slots=True)
class LoadedChunk:
    """A leased chunk: items still to be judged, and judgements already made by rule programs, for which a task each
    would cost more than the work itself."""

    leased: chunks.Leased
    items: list[chunks.ToJudge] = field(default_factory=list)
    judged: list[chunks.Judged] = field(default_factory=list)


def judged_by_program(item: chunks.ToJudge, program: RuleEffects) -> chunks.Judged:
    """Judge an item with a rule program that needs no judge model."""
    try:
        return chunks.Judged(item, with_flags(item, program.result(item.item)))
    except Exception as error:  # one judgement's error must not stop the run
        return internal_error(item, error)


def internal_error(item: chunks.ToJudge, error: Exception) -> chunks.Judged:
    """Log a bug and turn it into an error result, so that the item does not stay unjudged and others continue."""
    log.error("Internal error in a judgement (judgement %s)", item.judgement, exc_info=error)
    return chunks.Judged(item, JudgementResult(Outcome.error("internal", type(error).__name__)))


def neediest_of_each_project(runs: list[ActiveRun]) -> list[ActiveRun]:
    """For each project, the run that has received the fewest chunks relative to its weight."""
    neediest: dict[int, ActiveRun] = {}
    for run in sorted(runs, key=lambda run: run.weighted_chunks):
        neediest.setdefault(run.gate.lot.project, run)
    return list(neediest.values())
