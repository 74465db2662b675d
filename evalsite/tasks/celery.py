"""The task engine for several machines: tasks wait at a broker (Redis or RabbitMQ), and Celery delivers them.

A message holds a task's path and ids, nothing else. What was sent and not yet picked up also is in `Waking`, so
that nothing is sent twice and a message that the broker lost is noticed (`tidy`).
"""

from __future__ import annotations

import json
import os
import socket
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from celery import Celery, signals
from django.conf import settings
from django.utils import timezone
from django.utils.module_loading import import_string
from django_tasks.base import Task
from kombu.exceptions import KombuError, OperationalError

from evalsite.models import Waking
from evalsite.tasks import workers

NAME = "evalsite.run"
# Above the longest slice of a task: the broker gives a message to another worker only when its holder is surely gone.
# Work does not wait for that: the reconciler frees it at once.
VISIBILITY_SECONDS = 3600
CONNECT_SECONDS = 2
SURELY_SENT = timedelta(seconds=5)
BROKER_ERRORS = (KombuError, OperationalError, OSError)


@cache
def app() -> Celery:
    """The Celery application; made once in a process."""
    made = Celery("evalsite", broker=settings.CONFIG.celery_broker_url, set_as_current=False)
    made.conf.update(
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        worker_prefetch_multiplier=1,
        task_ignore_result=True,
        task_serializer="json",
        accept_content=["json"],
        worker_hijack_root_logger=False,
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_connection_timeout=CONNECT_SECONDS,
        broker_transport_options=_transport_options(),
    )
    made.task(name=NAME)(run)
    return made


def _transport_options() -> dict[str, Any]:
    if not settings.CONFIG.celery_broker_url.startswith("redis"):
        return {}
    return {"visibility_timeout": VISIBILITY_SECONDS, "socket_connect_timeout": CONNECT_SECONDS}


def broker_queue(queue: str) -> str:
    """The queue's name at the broker, which other programs may use too."""
    return f"evalsite.{queue}"


def enqueue(task: Task[..., Any], arguments: dict[str, int | str]) -> None:
    """Send a message, unless the same one is waiting. Without a broker nothing is sent; the reconciler retries."""
    waking, made = Waking.objects.get_or_create(
        task=task.module_path, arguments=_text(arguments), defaults={"queue": task.queue_name}
    )
    if not made:
        return
    try:
        app().send_task(
            NAME, args=[task.module_path, arguments], queue=broker_queue(task.queue_name), retry=False
        )
    except BROKER_ERRORS as error:
        waking.delete()
        workers.log.warning("Could not send a task to the broker (%s); it will be sent again later.", error)


def _text(arguments: dict[str, int | str]) -> str:
    return json.dumps(arguments, sort_keys=True)


def run(path: str, arguments: dict[str, int | str]) -> None:
    """The content of a message."""
    Waking.objects.filter(task=path, arguments=_text(arguments)).delete()
    try:
        task = import_string(path)
    except ImportError:  # sent by another release; pending work is in our tables
        workers.log.warning("Unknown task in a message: %s", path)
        return
    if not isinstance(task, Task):
        raise TypeError(f"{path} is no task")
    task.call(**arguments)


def waiting(queue: str) -> tuple[int, datetime | None]:
    """How many tasks wait, and since when the oldest does."""
    sent = Waking.objects.filter(queue=queue)
    return sent.count(), sent.order_by("sent_at").values_list("sent_at", flat=True).first()


def tidy(queue: str) -> None:
    """Forget sent messages that the broker no longer has: it was restarted, or their receiver was killed."""
    long_sent = Waking.objects.filter(queue=queue, sent_at__lt=timezone.now() - SURELY_SENT)
    if long_sent.exists() and messages_at_broker(queue) == 0:
        long_sent.delete()


def messages_at_broker(queue: str) -> int | None:
    """How many messages the broker holds ready; None if it does not answer."""
    try:
        with app().connection_for_read() as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=CONNECT_SECONDS)
            with connection.channel() as channel:
                return int(channel.queue_declare(broker_queue(queue), passive=True).message_count)
    except connection.channel_errors:  # no such queue: nothing was ever sent, or it is another broker
        return 0
    except BROKER_ERRORS:
        return None


def trouble() -> str:
    """`broker` if it does not answer."""
    try:
        with app().connection_for_read() as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=CONNECT_SECONDS)
    except BROKER_ERRORS:
        return "broker"
    return ""


def work(queue: str) -> None:
    """Pick up tasks of a queue, one at a time, until SIGTERM.

    A pool of one thread: the main thread keeps the broker's connection alive while a task runs for minutes, and all
    of it is one process, with one name as holder of leases.
    """
    signals.setup_logging.connect(_leave_logging_alone)
    signals.worker_shutting_down.connect(_stop)
    worker = app().Worker(
        hostname=f"{queue}.{os.getpid()}@{socket.gethostname()}",
        queues=[broker_queue(queue)],
        pool="threads",
        concurrency=1,
        loglevel="WARNING",
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        quiet=True,
    )
    worker.start()


def _leave_logging_alone(**_: object) -> None:
    """Our settings have set it up."""


def _stop(**_: object) -> None:
    workers.stopping.set()
