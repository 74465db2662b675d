"""Changes to webhooks, and deleting old deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from evalsite.secrets import encrypt
from evalsite.tasks import jobs
from evalsite.webhooks.events import JOB, emit_test, request_delivery
from evalsite.webhooks.kinds import Preset
from evalsite.webhooks.models import Delivery, Webhook
from evalsite.webhooks.signing import new_signing_secret

BOTH_SIGN_FOR = timedelta(days=1)
KEPT_FOR = timedelta(days=30)
MOST = 50


@transaction.atomic
def webhook_create(
    *,
    project: Project,
    url: str,
    events: Sequence[str],
    preset: str = Preset.STANDARD,
    name: str = "",
    by: User | None = None,
) -> tuple[Webhook, str]:
    """Store a webhook; return it and its signing secret, which is not shown again. Raises ValidationError if the
    project has too many."""
    Project.objects.select_for_update().get(pk=project.pk)
    if Webhook.objects.filter(project=project).count() >= MOST:
        raise ValidationError(
            _("This project already has %(most)s webhooks. Delete one first.") % {"most": MOST}
        )
    secret = new_signing_secret()
    webhook = Webhook.objects.create(
        project=project,
        name=name,
        url_encrypted=encrypt(url),
        origin=origin_of(url),
        events=list(events),
        preset=preset,
        language=(get_language() or "en"),
        secret_encrypted=encrypt(secret),
        created_by=by,
    )
    _record(Action.WEBHOOK_CREATED, webhook, by, origin=webhook.origin, events=list(events))
    return webhook, secret


def origin_of(url: str) -> str:
    """Scheme, host and port: what may be shown of an address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


@transaction.atomic
def webhook_edit(*, webhook: Webhook, name: str, url: str, events: Sequence[str], preset: str) -> None:
    """Change a webhook. `url`: '' keeps the address."""
    before = Webhook.objects.select_for_update().get(pk=webhook.pk)
    changes: dict[str, object] = {"name": name, "events": list(events), "preset": preset}
    changed = [field for field, value in changes.items() if getattr(before, field) != value]
    if url:
        changes |= {"url_encrypted": encrypt(url), "origin": origin_of(url), "failing_since": None}
        changed.append("url")
    Webhook.objects.filter(pk=webhook.pk).update(**changes)
    if changed:
        _record(Action.WEBHOOK_CHANGED, webhook, None, changed=sorted(changed))


@transaction.atomic
def webhook_rotate(*, webhook: Webhook) -> str:
    """Give the webhook a new signing secret and return it; for a day the old one signs too."""
    before = Webhook.objects.select_for_update().get(pk=webhook.pk)
    secret = new_signing_secret()
    Webhook.objects.filter(pk=webhook.pk).update(
        secret_encrypted=encrypt(secret),
        old_secret_encrypted=before.secret_encrypted,
        old_secret_until=timezone.now() + BOTH_SIGN_FOR,
    )
    _record(Action.WEBHOOK_ROTATED, webhook, None)
    return secret


@transaction.atomic
def webhook_turn(*, webhook: Webhook, on: bool) -> bool:
    """Turn it on or off; what waits is not sent when it is off. False if it was so already."""
    rows = Webhook.objects.filter(pk=webhook.pk, off_at__isnull=not on)
    changes = {"off_at": None, "failing_since": None} if on else {"off_at": timezone.now()}
    if not rows.update(**changes, off_by_failures=False):
        return False
    if not on:
        Delivery.objects.filter(webhook=webhook, state=Delivery.State.WAITING).update(
            state=Delivery.State.FAILED
        )
    _record(Action.WEBHOOK_ON if on else Action.WEBHOOK_OFF, webhook, None)
    return True


@transaction.atomic
def webhook_delete(*, webhook: Webhook) -> None:
    """Delete a webhook with its deliveries."""
    jobs.cancel(JOB, webhook.pk)
    _record(Action.WEBHOOK_DELETED, webhook, None, origin=webhook.origin)
    webhook.delete()


@transaction.atomic
def webhook_test(*, webhook: Webhook) -> None:
    """Have a test message sent. Raises ValidationError if the webhook is off."""
    _refuse_off(webhook)
    emit_test(webhook)


@transaction.atomic
def delivery_resend(*, delivery: Delivery) -> None:
    """Have a delivery sent again now, with the same id and the full number of retries. Raises ValidationError if the
    webhook is off."""
    _refuse_off(delivery.webhook)
    Delivery.objects.filter(pk=delivery.pk).update(
        state=Delivery.State.WAITING, retries=0, due_at=timezone.now()
    )
    request_delivery(delivery.webhook_id)


def _refuse_off(webhook: Webhook) -> None:
    if webhook.off_at:
        raise ValidationError(_("This webhook is off. Turn it on first."))


def any_encrypted() -> bool:
    """Whether any webhook holds a secret that only our key can decrypt."""
    return Webhook.objects.exists()


def delete_old() -> None:
    """Delete deliveries that are kept no longer, and secrets that sign no more; called by the reconciler."""
    now = timezone.now()
    Delivery.objects.filter(created_at__lt=now - KEPT_FOR).delete()
    Webhook.objects.filter(old_secret_until__lt=now).update(old_secret_encrypted="", old_secret_until=None)


def _record(action: Action, webhook: Webhook, by: User | None, **detail: object) -> None:
    record(action, project=webhook.project, thing=webhook, name=webhook.title, by=by, **detail)
