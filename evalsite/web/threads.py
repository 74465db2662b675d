"""The threads that run Django: a fixed number for pages, and a limited number that wait for slow clients."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

Job = Callable[[], None]
SPARE = 2  # threads kept in addition to those for pages, so that not every download starts one


class ThreadsBusy(Exception):
    """The maximum number of threads is already waiting for slow clients."""


class Threads:
    """Runs jobs on `pages` threads at a time.

    A job that has to wait for its client calls `step_aside`: another thread takes its turn, and at most `aside` jobs
    may be in that state. Threads are reused, and with them Django's database connections.
    """

    def __init__(self, *, pages: int, aside: int, at_end: Job = lambda: None) -> None:
        self._pages, self._most_aside, self._at_end = pages, aside, at_end
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._turns = threading.Semaphore(pages)
        self._lock = threading.Lock()
        self._alive = 0
        self._aside: set[int] = set()
        for _ in range(pages):
            self._start()

    @property
    def aside(self) -> int:
        """The number of jobs waiting for their client."""
        return len(self._aside)

    def submit(self, job: Job) -> None:
        """Run a job as soon as a thread is free. It must not raise."""
        self._jobs.put(job)

    def step_aside(self) -> None:
        """Called by a job to give its turn to another one until it ends. Raises ThreadsBusy."""
        with self._lock:
            if len(self._aside) >= self._most_aside:
                raise ThreadsBusy
            self._aside.add(threading.get_ident())
            missing = self._alive - len(self._aside) < self._pages
        if missing:
            self._start()
        self._turns.release()

    def _start(self) -> None:
        with self._lock:
            self._alive += 1
        # Daemon: a waiting job must not keep the process from exiting.
        threading.Thread(target=self._work, name="web", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._turns.acquire()
            self._jobs.get()()
            if not self._goes_on():
                self._at_end()
                return

    def _goes_on(self) -> bool:
        """Give the turn back; False if the thread is no longer needed."""
        with self._lock:
            if threading.get_ident() not in self._aside:
                self._turns.release()
                return True
            self._aside.discard(threading.get_ident())
            if self._alive <= self._pages + SPARE:
                return True
            self._alive -= 1
            return False
