"""The one task of the run engine."""

from __future__ import annotations

from django_tasks import task

from evalsite.tasks import workers


@task(queue_name=workers.RUNS)
def pump() -> None:
    """Judge whatever waits, for some minutes; if work is left then, wake the next one."""
    from judging.runs.pump import work
    from judging.runs.reconcile import work_waits

    if not work_waits():
        return
    workers.wake(pump)  # for the next worker, if there is one that has nothing to do
    work(workers.owner(), stop=workers.stopping)
    if work_waits():
        workers.wake(pump)
