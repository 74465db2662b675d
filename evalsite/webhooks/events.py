"""Tell a project's webhooks what happened. Services call `emit` in their transaction."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone

from evalsite.accounts.models import Project
from evalsite.links import absolute_url
from evalsite.tasks import jobs, workers
from evalsite.webhooks.bodies import body_text, standard_body
from evalsite.webhooks.kinds import TEST, Event
from evalsite.webhooks.models import Delivery, Webhook

JOB = "deliver_webhooks"


def emit(event: Event, project: Project, *, pk: int, name: str, state: str, url: str, times: int = 1) -> None:
    """Have an event delivered once the transaction is committed, `times` times with a message each.

    `pk`, `name` and `state` are those of what the event is about: never a text of rows, answers or comments, nor a
    candidate's name. `url`: its absolute address, or ''.
    """
    webhooks = [
        webhook for webhook in Webhook.objects.filter(project=project, off_at=None) if event in webhook.events
    ]
    data = {"project": project.slug, "id": pk, "name": name, "state": state, "url": url or None}
    store_deliveries(webhooks * times, str(event), data)


def emit_test(webhook: Webhook) -> None:
    """Have a message of the type `test` delivered, about the webhook itself."""
    data = {
        "project": webhook.project.slug,
        "id": webhook.pk,
        "name": webhook.title,
        "state": "on",
        "url": absolute_url("webhooks:webhook", webhook.project.slug, webhook.pk) or None,
    }
    store_deliveries([webhook], TEST, data)


def store_deliveries(webhooks: Iterable[Webhook], event: str, data: dict[str, Any]) -> None:
    """Store a message for each webhook and wake a worker."""
    now = timezone.now()
    body = standard_body(event, timestamp_of(now), data)
    deliveries = Delivery.objects.bulk_create(
        Delivery(
            webhook=webhook,
            uid=f"msg_{secrets.token_hex(16)}",
            event=event,
            body=body_text(webhook.preset, webhook.language, body),
            due_at=now,
        )
        for webhook in webhooks
    )
    for webhook_id in sorted({delivery.webhook_id for delivery in deliveries}):
        request_delivery(webhook_id)


def request_delivery(webhook_id: int) -> None:
    """Have a worker send what is due. The worker may be about to wait for a retry, so one is woken in any case."""
    jobs.request(JOB, webhook_id, again=True)
    workers.wake(jobs.work, kind=JOB, object_id=webhook_id)


def timestamp_of(moment: datetime) -> str:
    """ISO 8601 in UTC, with milliseconds and Z."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
