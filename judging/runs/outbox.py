"""What a pump has judged and not stored yet, and the chunks that it holds meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db import DatabaseError, transaction

from evalsite.tasks.backoff import Backoff
from judging.endpoints.client import RunInThread
from judging.endpoints.client_pool import remember_refusals
from judging.runs import store
from judging.runs.active import ActiveRun
from judging.runs.budget import Ledger, Spent
from judging.runs.generations import Generated
from judging.runs.journal import Journal

log = logging.getLogger("judging.pump")

FLUSH_ROWS = 500


@dataclass(slots=True)
class HeldChunk:
    """How many stories of a leased chunk are still open or were abandoned."""

    open: int
    abandoned: int = 0


class Outbox:
    """Filled and emptied in one event loop; written by `in_database`. While the database is away everything is kept."""

    def __init__(self, owner: str, in_database: RunInThread, journal: Journal) -> None:
        self.owner = owner
        self.in_database = in_database
        self.journal = journal
        self.held: dict[int, HeldChunk] = {}
        self.ledgers: list[tuple[int, Ledger]] = []  # also of runs that were let go, until all is stored
        self._done: deque[store.Judged] = deque()
        self._answered: deque[Generated] = deque()
        self._finished: set[int] = set()
        self._given_back: set[int] = set()
        self._backoff = Backoff()

    @property
    def full(self) -> bool:
        return len(self._done) >= FLUSH_ROWS

    @property
    def waiting(self) -> bool:
        """Whether anything is to be stored."""
        unstored = any(ledger.unstored.calls for _, ledger in self.ledgers)
        return bool(self._done or self._answered or self._finished or self._given_back or unstored)

    def hold(self, leased: store.Leased, stories: int, judged: Iterable[store.Judged]) -> None:
        """A chunk was leased: so many stories of it are to be told, the others were judged at once."""
        self.held[leased.chunk] = HeldChunk(stories)
        self._done.extend(judged)
        if not stories:
            self._close_chunk(leased.chunk)

    def hold_on(self, chunk: int) -> None:
        """One more story of a chunk that is held."""
        self.held[chunk].open += 1

    def story_over(self, chunk: int, judged: store.Judged | None) -> None:
        """None: it was abandoned, somebody else tells it."""
        if judged is not None:
            self._done.append(judged)
        self._close_story(chunk, abandoned=judged is None)

    def answer_over(self, chunk: int, generated: Generated | None) -> None:
        """The same for an answer that was asked for."""
        if generated is not None:
            self._answered.append(generated)
        self._close_story(chunk, abandoned=generated is None)

    def _close_story(self, chunk: int, *, abandoned: bool) -> None:
        held = self.held[chunk]
        held.abandoned += abandoned
        held.open -= 1
        if held.open == 0:
            self._close_chunk(chunk)

    def _close_chunk(self, chunk: int) -> None:
        (self._given_back if self.held[chunk].abandoned else self._finished).add(chunk)

    async def flush(self, runs: Collection[ActiveRun]) -> bool:
        """Write what is done; if the database is away it is kept and tried again. Leases are renewed first.

        Whether chunks are free again that seemed finished: somebody else had held them.
        """
        judged, self._done = list(self._done), deque()
        answers, self._answered = list(self._answered), deque()
        finished, given_back = set(self._finished), set(self._given_back)
        learnt = [news for run in runs for news in run.caller.take_learnt()]
        spending = [(pk, ledger) for pk, ledger in self.ledgers if ledger.unstored.calls]
        spent = [(pk, ledger.take()) for pk, ledger in spending]
        stored = False
        try:
            lost = await self.in_database(
                self._store, judged, answers, finished, given_back, list(self.held), learnt, spent
            )
            stored = True
        except DatabaseError as error:
            log.warning("The database does not take %d judgements, trying again: %s", len(judged), error)
            self._done.extendleft(reversed(judged))
            self._answered.extendleft(reversed(answers))
            await asyncio.sleep(self._backoff.failed())
            return False
        finally:
            for _, ledger in spending:
                ledger.settle(stored)
        self._backoff.succeeded()
        working = [run.ledger for run in runs]
        self.ledgers = [one for one in self.ledgers if one[1] in working or one[1].open]
        self.journal.stored([one.of.judgement for one in judged] + [-one.of.response for one in answers])
        for run in runs:
            if run.answers:
                run.answers.stored(one for one in answers if one.run == run.pk)
        for chunk in lost - finished - given_back:
            self.held[chunk].abandoned += 1
        self._finished -= finished
        self._given_back -= given_back
        for chunk in finished | given_back:
            del self.held[chunk]
        return bool(lost & finished)

    def _store(
        self,
        judged: list[store.Judged],
        answers: list[Generated],
        finished: set[int],
        given_back: set[int],
        held: list[int],
        learnt: list[tuple[int, frozenset[str]]],
        spent: list[tuple[int, Spent]],
    ) -> set[int]:
        """Chunks in which something is to be judged again."""
        lost: set[int] = set()
        with transaction.atomic():  # what is taken back stays so until it is written
            store.renew(held, self.owner)
            if judged or answers or finished or spent:
                lost = store.write(judged, finished, self.owner, spent, answers)
        if given_back or lost & finished:
            store.release(given_back | (lost & finished), self.owner)
        for endpoint, refuses in learnt:
            remember_refusals(endpoint, refuses)
        return lost
