"""manage.py worker: processes background tasks."""

from __future__ import annotations

import logging
import os
import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from evalsite.storage import data_dir
from evalsite.supervisor import BEHIND_PAGES, PARENT, Supervisor, end_with_parent, queue_workers
from evalsite.tasks import workers

log = logging.getLogger("evalsite.worker")


class Command(BaseCommand):
    help = (
        "Process background work: uploads and runs. Without --queue, one process per queue. "
        "With TASK_ENGINE=celery it is a Celery worker."
    )

    # The checks import all views, which a worker does not need and would delay its start.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--queue", choices=workers.QUEUES, help="process only this queue, in this process"
        )

    def handle(self, *, queue: str | None, **options: Any) -> None:
        end_with_parent()
        if PARENT not in os.environ:
            data_dir.prepare_to_start()
        if queue is None:
            Supervisor(queue_workers(workers.QUEUES)).run()
            return
        if PARENT not in os.environ:  # the supervisor sets it for its children
            os.nice(BEHIND_PAGES)
        threading.Thread(target=workers.run_maintenance, args=(queue, _problem), daemon=True).start()
        workers.backend().work(queue)


def _problem(error: Exception) -> None:
    log.error("The database is unavailable: %s", error)
