"""What a run worker has judged and not stored yet, and the chunks that it holds meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass, field

from django.db import DatabaseError, transaction

from evalsite.tasks.backoff import Backoff
from judging.endpoints.client import RunInThread
from judging.endpoints.settings import remember_refusals
from judging.runs.budget import Ledger, Spent
from judging.runs.worker import store
from judging.runs.worker.generation_store import Generated
from judging.runs.worker.journal import Journal, Work, WorkKey

log = logging.getLogger("judging.run_worker")

FLUSH_ROWS = 500
Learnt = list[tuple[int, frozenset[str]]]  # what endpoints were found to refuse


@dataclass(slots=True)
class HeldChunk:
    """How many judgements and answers of a leased chunk are still open or were abandoned."""

    open: int
    abandoned: int = 0


@dataclass(slots=True)
class WriteBatch:
    """What is written in one transaction."""

    judged: list[store.Judged] = field(default_factory=list)
    answers: list[Generated] = field(default_factory=list)
    finished: set[int] = field(default_factory=set)
    given_back: set[int] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.judged or self.answers or self.finished or self.given_back)

    def judged_by(self, answers: Set[Generated]) -> set[int]:
        """The chunks with judgements of these answers."""
        return {one.of.chunk for one in self.judged if one.of.generated in answers}


@dataclass(frozen=True, slots=True)
class Flushed:
    """What a flush has stored. `reopened`: chunks are free again that seemed finished, as somebody else held them."""

    answers: list[Generated] = field(default_factory=list)
    reopened: bool = False


class WriteBuffer:
    """Filled and emptied in one event loop; written by `in_database`. While the database is away everything is kept."""

    def __init__(self, owner: str, in_database: RunInThread, journal: Journal) -> None:
        self.owner = owner
        self.in_database = in_database
        self.journal = journal
        self.held: dict[int, HeldChunk] = {}
        self.ledgers: list[tuple[int, Ledger]] = []  # also of runs that were let go, until all is stored
        self._batch = WriteBatch()
        self._lost: set[Generated] = set()
        self._backoff = Backoff()

    @property
    def full(self) -> bool:
        return len(self._batch.judged) >= FLUSH_ROWS

    @property
    def waiting(self) -> bool:
        """Whether anything is to be stored."""
        return bool(self._batch) or any(ledger.unstored.calls for _, ledger in self.ledgers)

    def hold(self, leased: store.Leased, judgements: int, judged: Iterable[store.Judged]) -> None:
        """A chunk was leased: so many judgements of it are to be made, the others were made at once."""
        self.held[leased.chunk] = HeldChunk(judgements)
        self._batch.judged.extend(judged)
        if not judgements:
            self._close_chunk(leased.chunk)

    def hold_on(self, chunk: int) -> None:
        """Something more is to be made of a chunk that is held."""
        self.held[chunk].open += 1

    def judged(self, chunk: int, judged: store.Judged | None) -> None:
        """None: it was abandoned, another worker will make it."""
        if judged is not None:
            self._batch.judged.append(judged)
        self._close_one(chunk, abandoned=judged is None)

    def answered(self, chunk: int, generated: Generated | None) -> None:
        """The same for an answer that was asked for."""
        if generated is not None:
            self._batch.answers.append(generated)
        self._close_one(chunk, abandoned=generated is None)

    def _close_one(self, chunk: int, *, abandoned: bool) -> None:
        held = self.held[chunk]
        held.abandoned += abandoned
        held.open -= 1
        if held.open == 0:
            self._close_chunk(chunk)

    def _close_chunk(self, chunk: int) -> None:
        closed = self._batch.given_back if self.held[chunk].abandoned else self._batch.finished
        closed.add(chunk)

    async def flush(self, learnt: Learnt, working: Collection[Ledger]) -> Flushed:
        """Write what is done; if the database is away it is kept and tried again. Leases are renewed first.

        `working`: the ledgers of runs that are worked on.
        """
        batch, self._batch = self._batch, WriteBatch()
        spending = [(pk, ledger) for pk, ledger in self.ledgers if ledger.unstored.calls]
        spent = [(pk, ledger.take()) for pk, ledger in spending]
        stored = False
        try:
            lost = await self.in_database(self._store, batch, list(self.held), learnt, spent)
            stored = True
        except DatabaseError as error:
            log.warning(
                "The database does not take %d judgements, trying again: %s", len(batch.judged), error
            )
            self._keep(batch)
            await asyncio.sleep(self._backoff.failed())
            return Flushed()
        finally:
            for _, ledger in spending:
                ledger.settle(stored)
        self._backoff.succeeded()
        self.ledgers = [one for one in self.ledgers if one[1] in working or one[1].open]
        self.journal.stored(_keys(batch))
        return self._let_go(batch, lost)

    def _keep(self, batch: WriteBatch) -> None:
        """It was not written: it comes before what was added meanwhile."""
        later, self._batch = self._batch, batch
        batch.judged += later.judged
        batch.answers += later.answers
        batch.finished |= later.finished
        batch.given_back |= later.given_back

    def _let_go(self, batch: WriteBatch, lost: Set[Generated]) -> Flushed:
        """Of the chunks that were written; what was judged by a lost answer is to be judged again."""
        reopened = batch.judged_by(lost)
        closed = batch.finished | batch.given_back
        for chunk in closed:
            del self.held[chunk]
        for chunk in reopened - closed:
            self.held[chunk].abandoned += 1
            if chunk in self._batch.finished:  # closed while this was written
                self._batch.finished.remove(chunk)
                self._batch.given_back.add(chunk)
        self._lost = set(lost) if self.held else set()
        return Flushed(batch.answers, bool(reopened & batch.finished))

    def _store(
        self, batch: WriteBatch, held: list[int], learnt: Learnt, spent: list[tuple[int, Spent]]
    ) -> set[Generated]:
        """The answers that are lost."""
        lost = self._lost
        with transaction.atomic():  # what is taken back stays so until it is written
            store.renew(held, self.owner)
            if batch.judged or batch.answers or batch.finished or spent:
                lost = store.write(batch.judged, batch.finished, self.owner, spent, batch.answers, lost)
        free = batch.given_back | (batch.judged_by(lost) & batch.finished)
        if free:
            store.release(free, self.owner)
        for endpoint, refuses in learnt:
            remember_refusals(endpoint, refuses)
        return set(lost)


def _keys(batch: WriteBatch) -> list[WorkKey]:
    judgements = [WorkKey(Work.JUDGEMENT, one.of.judgement) for one in batch.judged]
    return judgements + [WorkKey(Work.ANSWER, one.of.response) for one in batch.answers]
