"""Webhooks of projects, and what was sent to them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from evalsite.accounts.models import Project, User
from evalsite.webhooks.kinds import LABELS, Preset


class Webhook(models.Model):
    """An address that is told of events. Address and signing secrets are encrypted; the address is shown as `origin`
    only, the secret once."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="webhooks")
    name = models.CharField(max_length=100, blank=True, default="")
    url_encrypted = models.TextField()
    origin = models.CharField(max_length=300, help_text="scheme, host and port of the address")
    events = models.JSONField(default=list, help_text="types of kinds.Event")
    preset = models.CharField(max_length=10, choices=Preset.choices, default=Preset.STANDARD)
    language = models.CharField(max_length=10, choices=settings.LANGUAGES, help_text="of presets' sentences")
    secret_encrypted = models.TextField()
    old_secret_encrypted = models.TextField(blank=True, default="")
    old_secret_until = models.DateTimeField(null=True, help_text="until then both secrets sign")
    failing_since = models.DateTimeField(
        null=True, help_text="when the first delivery failed after the last one that arrived"
    )
    off_at = models.DateTimeField(null=True, help_text="since when nothing is sent")
    off_by_failures = models.BooleanField(default=False)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    @property
    def title(self) -> str:
        return self.name or self.origin

    @property
    def event_labels(self) -> list[str]:
        return [str(LABELS.get(event, event)) for event in self.events]


class Delivery(models.Model):
    """A message to a webhook: its body, and each try to deliver it."""

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        DELIVERED = "delivered", _("delivered")
        FAILED = "failed", _("failed")

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    uid = models.CharField(max_length=40, unique=True, help_text="the header `webhook-id`")
    event = models.CharField(max_length=30)
    body = models.TextField(help_text="as it is sent")
    state = models.CharField(max_length=9, choices=State.choices, default=State.WAITING)
    tries = models.JSONField(default=list, help_text="[{at, status, problem, reply, seconds}], oldest first")
    retries = models.PositiveSmallIntegerField(
        default=0, help_text="since it was sent, or sent again by hand"
    )
    due_at = models.DateTimeField(help_text="when it is sent, if it waits")
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        indexes = [
            models.Index(fields=["webhook", "-id"], name="delivery_newest"),
            models.Index(fields=["webhook", "due_at"], condition=Q(state="waiting"), name="delivery_due"),
        ]

    @property
    def label(self) -> str:
        return str(LABELS.get(self.event, self.event))
