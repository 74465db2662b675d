"""Tasks that were queued before an upgrade moved their module."""

from __future__ import annotations

import pytest
from django_tasks.base import TaskResultStatus
from django_tasks_db.models import DBTaskResult

from datasets.importing.worker import read_version
from evalsite.tasks.database import SiteWorker

OLD = "datasets.importing.worker.read_version"


@pytest.mark.django_db(transaction=True)
def test_a_worker_passes_over_a_queued_task_that_is_gone() -> None:
    gone, known = (read_version.enqueue(version_id=number) for number in (1, 2))
    DBTaskResult.objects.filter(pk=gone.id).update(task_path=OLD)
    SiteWorker(
        queue_names=["data"],
        interval=0,
        batch=True,
        backend_name="default",
        startup_delay=False,
        max_tasks=None,
        worker_id="test",
        excluded_queue_names=[],
    ).run()
    states = dict(DBTaskResult.objects.values_list("task_path", "status"))
    assert states == {OLD: TaskResultStatus.FAILED, known.task.module_path: TaskResultStatus.SUCCESSFUL}
