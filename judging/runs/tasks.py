"""The one task of the run engine."""

from __future__ import annotations

from django_tasks import task

from evalsite import engine


@task(queue_name=engine.RUNS)
def pump() -> None:
    """Judge whatever waits, for some minutes; if work is left then, wake the next one."""
    from judging.runs.pump import work
    from judging.runs.reconcile import work_waits

    if not work_waits():
        return
    engine.wake(pump)  # for the next worker, if there is one that has nothing to do
    work(engine.owner(), stop=engine.stopping)
    if work_waits():
        engine.wake(pump)
