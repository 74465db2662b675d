"""Delivers what is due to a webhook, retries what failed, and turns off a webhook that does not answer for days."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from evalsite import secrets
from evalsite.audit import Action, record
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold
from evalsite.webhooks import turned_off
from evalsite.webhooks.events import JOB, request_delivery
from evalsite.webhooks.models import Delivery, Webhook
from evalsite.webhooks.sending import Outcome, Rules, send_all
from evalsite.webhooks.signing import signed_headers

RETRY_AFTER = tuple(timedelta(seconds=seconds) for seconds in (5, 60, 10 * 60, 60 * 60, 6 * 60 * 60))
OFF_AFTER = timedelta(days=3)
AT_A_TIME = 20
State = Delivery.State


@jobs.job(JOB, Webhook)
def deliver(hold: Hold, webhook: Webhook) -> None:
    """Send all that is due; then the job waits for the next retry. All messages of a batch are sent at the same time,
    so a server that does not answer holds the worker for seconds."""
    while batch := list(_due(webhook)[:AT_A_TIME]):
        hold.check()
        outcomes = _send(webhook, batch)
        with transaction.atomic():
            hold.renew()
            webhook = _store(webhook.pk, batch, outcomes)
    following = _waiting(webhook).order_by("due_at").values_list("due_at", flat=True).first()
    if following is None or webhook.off_at:
        return
    hold.release(max(following - timezone.now(), timedelta(0)))
    if _due(webhook).exists():  # stored since the last batch
        request_delivery(webhook.pk)


def _waiting(webhook: Webhook) -> QuerySet[Delivery]:
    return Delivery.objects.filter(webhook=webhook.pk, state=State.WAITING)


def _due(webhook: Webhook) -> QuerySet[Delivery]:
    """What is to be sent now, oldest first."""
    rows = _waiting(webhook).filter(due_at__lte=timezone.now()).order_by("due_at", "pk")
    return rows.none() if webhook.off_at else rows


def _send(webhook: Webhook, batch: Sequence[Delivery]) -> list[Outcome]:
    try:
        url, keys = secrets.decrypt(webhook.url_encrypted), signing_secrets(webhook)
    except secrets.Undecryptable:
        return [Outcome(None, "undecryptable")] * len(batch)
    now = int(timezone.now().timestamp())
    messages = [
        (url, delivery.body.encode(), signed_headers(keys, delivery.uid, now, delivery.body))
        for delivery in batch
    ]
    return send_all(messages, rules())


def rules() -> Rules:
    """What the settings allow."""
    config = settings.CONFIG
    return Rules(config.webhooks_plain_http, config.webhooks_allowed_networks)


def signing_secrets(webhook: Webhook) -> list[str]:
    """The secrets that sign now: for a day after a rotation, the old one too. Raises Undecryptable."""
    keys = [secrets.decrypt(webhook.secret_encrypted)]
    if webhook.old_secret_until is not None and webhook.old_secret_until > timezone.now():
        keys.append(secrets.decrypt(webhook.old_secret_encrypted))
    return keys


def _store(webhook_id: int, batch: Sequence[Delivery], outcomes: Sequence[Outcome]) -> Webhook:
    """Store the outcomes; returns the webhook as it is now. Its row is locked, since somebody may turn it off."""
    webhook = Webhook.objects.select_for_update().get(pk=webhook_id)
    now = timezone.now()
    for delivery, outcome in zip(batch, outcomes, strict=True):
        _note(delivery, outcome, now)
    Delivery.objects.bulk_update(batch, ["tries", "state", "retries", "due_at"])
    if not all(outcome.problem for outcome in outcomes):
        webhook.failing_since = None
    elif webhook.failing_since is None:
        webhook.failing_since = now
    given_up = any(delivery.state == State.FAILED for delivery in batch)
    if given_up and webhook.failing_since and webhook.failing_since <= now - OFF_AFTER and not webhook.off_at:
        _turn_off(webhook, now)
    webhook.save(update_fields=["failing_since", "off_at", "off_by_failures"])
    return webhook


def _note(delivery: Delivery, outcome: Outcome, now: datetime) -> None:
    delivery.tries = [
        *delivery.tries,
        {
            "at": now.isoformat(timespec="seconds"),
            "status": outcome.status,
            "problem": outcome.problem,
            "reply": outcome.reply,
            "seconds": outcome.seconds,
        },
    ]
    if not outcome.problem:
        delivery.state = State.DELIVERED
    elif delivery.retries < len(RETRY_AFTER):
        delivery.due_at = now + RETRY_AFTER[delivery.retries]
        delivery.retries += 1
    else:
        delivery.state = State.FAILED


def _turn_off(webhook: Webhook, now: datetime) -> None:
    """What still waits is not sent."""
    webhook.off_at, webhook.off_by_failures = now, True
    _waiting(webhook).update(state=State.FAILED)
    record(Action.WEBHOOK_OFF, project=webhook.project, thing=webhook, name=webhook.title, why="failures")
    for tell in turned_off:
        tell(webhook)
