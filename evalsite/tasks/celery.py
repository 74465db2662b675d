"""Task engine for several machines: Celery delivers tasks through a broker (Redis or RabbitMQ).

A message contains only a task's path and ids. Messages sent and not yet received are also in `SentMessage`, so that
nothing is sent twice and messages lost by the broker are detected (`tidy`).
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

from evalsite.models import SentMessage
from evalsite.tasks import workers

NAME = "evalsite.run"
# Longer than any slice of a task: the broker redelivers a message only if its receiver is certainly gone. Work does not
# wait for that, as the reconciler releases it immediately.
VISIBILITY_SECONDS = 3600
CONNECT_SECONDS = 2
SURELY_SENT = timedelta(seconds=5)
BROKER_ERRORS = (KombuError, OperationalError, OSError)


@cache
def app() -> Celery:
    """The Celery application, one per process."""
    application = Celery("evalsite", broker=settings.CONFIG.celery_broker_url, set_as_current=False)
    application.conf.update(
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
    application.task(name=NAME)(run)
    return application


def _transport_options() -> dict[str, Any]:
    if not settings.CONFIG.celery_broker_url.startswith("redis"):
        return {}
    return {"visibility_timeout": VISIBILITY_SECONDS, "socket_connect_timeout": CONNECT_SECONDS}


def broker_queue(queue: str) -> str:
    """The queue's name at the broker, which other applications may share."""
    return f"evalsite.{queue}"


def enqueue(task: Task[..., Any], arguments: dict[str, int | str]) -> None:
    """Send a message, unless the same one is pending. If the broker is unavailable, the reconciler retries later."""
    message, is_new = SentMessage.objects.get_or_create(
        task=task.module_path, arguments=_text(arguments), defaults={"queue": task.queue_name}
    )
    if not is_new:
        return
    try:
        app().send_task(
            NAME, args=[task.module_path, arguments], queue=broker_queue(task.queue_name), retry=False
        )
    except BROKER_ERRORS as error:
        message.delete()
        workers.log.warning("Could not send a task to the broker (%s); it will be sent again later.", error)


def _text(arguments: dict[str, int | str]) -> str:
    return json.dumps(arguments, sort_keys=True)


def run(path: str, arguments: dict[str, int | str]) -> None:
    """Run the task named in a message."""
    SentMessage.objects.filter(task=path, arguments=_text(arguments)).delete()
    try:
        task = import_string(path)
    except ImportError:  # sent by another release; pending work is in our tables
        workers.log.warning("Unknown task in a message: %s", path)
        return
    if not isinstance(task, Task):
        raise TypeError(f"{path} is no task")
    task.call(**arguments)


def waiting(queue: str) -> tuple[int, datetime | None]:
    """The number of pending tasks and the time of the oldest."""
    sent = SentMessage.objects.filter(queue=queue)
    return sent.count(), sent.order_by("sent_at").values_list("sent_at", flat=True).first()


def tidy(queue: str) -> None:
    """Delete records of messages lost by the broker, because it was restarted or their receiver was killed."""
    long_sent = SentMessage.objects.filter(queue=queue, sent_at__lt=timezone.now() - SURELY_SENT)
    if long_sent.exists() and messages_at_broker(queue) == 0:
        long_sent.delete()


def messages_at_broker(queue: str) -> int | None:
    """The number of messages ready at the broker; None if it does not respond."""
    try:
        with app().connection_for_read() as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=CONNECT_SECONDS)
            with connection.channel() as channel:
                return int(channel.queue_declare(broker_queue(queue), passive=True).message_count)
    except connection.channel_errors:  # no such queue: nothing was sent yet, or it is another broker
        return 0
    except BROKER_ERRORS:
        return None


def connection_error() -> str:
    """`broker` if it does not respond, else ''."""
    try:
        with app().connection_for_read() as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=CONNECT_SECONDS)
    except BROKER_ERRORS:
        return "broker"
    return ""


def work(queue: str) -> None:
    """Process tasks of a queue, one at a time, until SIGTERM.

    Uses a pool of one thread: the main thread keeps the broker connection alive during long tasks, and there is only
    one process, with one name as the owner of leases.
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
    """Keep the logging set up by our settings."""


def _stop(**_: object) -> None:
    workers.stopping.set()
