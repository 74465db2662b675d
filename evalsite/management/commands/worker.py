"""manage.py worker: does what waits in the background."""

from __future__ import annotations

import logging
import threading
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django_tasks_db.management.commands.db_worker import Worker

from evalsite import engine
from evalsite.supervisor import Child, Supervisor, end_with_parent, manage

log = logging.getLogger("evalsite.worker")


class SiteWorker(Worker):
    """django-tasks-db's worker, which tells a long task to end when it is told to stop itself."""

    def shutdown(self, signum: int, frame: FrameType | None) -> None:
        engine.stopping.set()
        super().shutdown(signum, frame)


class Command(BaseCommand):
    help = "Work in the background: read uploads and judge. Without --queue, one process for each queue."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--queue", choices=engine.QUEUES, help="work for this queue only, in this process"
        )

    def handle(self, *, queue: str | None, **options: Any) -> None:
        end_with_parent()
        if queue is None:
            Supervisor([Child(f"worker ({q})", manage("worker", "--queue", q)) for q in engine.QUEUES]).run()
            return
        logging.getLogger("django_tasks_db").setLevel(logging.ERROR)
        worker = SiteWorker(
            queue_names=[queue],
            interval=0.25,
            batch=False,
            backend_name="default",
            startup_delay=False,
            max_tasks=None,
            worker_id=engine.owner()[:64],
            excluded_queue_names=[],
        )
        worker.configure_signals()
        problem = lambda error: log.error("The database does not answer: %s", error)  # noqa: E731
        threading.Thread(target=engine.keep_house, args=(queue, problem), daemon=True).start()
        worker.run()
