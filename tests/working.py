"""Background jobs done in tests, as a worker does them."""

from __future__ import annotations

import threading

from evalsite.models import Job
from evalsite.tasks import jobs

FIGURES = ("compute_figures", "compute_slices")


def do_jobs(*names: str) -> None:
    """Do the waiting jobs of these kinds, in this order of kinds."""
    for name in names:
        for object_id in list(jobs.ids(name, Job.State.WAITING).order_by("pk")):
            jobs.run(name, object_id)


class StopsAfter(threading.Event):
    """A stop event that counts as set at the worker's n-th pause."""

    def __init__(self, pauses: int) -> None:
        super().__init__()
        self.pauses = pauses

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses -= 1
        return self.pauses <= 0
