"""Tables of the site itself: worker heartbeats and the audit log."""

from __future__ import annotations

from django.db import models


class WorkerProcess(models.Model):
    """One worker process and when it was last heard of. Rows of the dead are removed by the reconciler."""

    owner = models.CharField(max_length=120)
    queue = models.CharField(max_length=20)
    started_at = models.DateTimeField(auto_now_add=True)
    seen_at = models.DateTimeField()
    trouble = models.CharField(
        max_length=10, blank=True, default="", help_text="`broker`: it does not answer"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "queue"], name="worker_once")]


class AuditEntry(models.Model):
    """Who did what, and when; the database refuses to change one (migration 0002). Written by `audit.record` only.

    People and projects are here by number and name, without a constraint: an entry outlives them.
    """

    at = models.DateTimeField(auto_now_add=True)
    actor = models.BigIntegerField(null=True)  # a user's number; null is the program itself
    actor_name = models.CharField(max_length=150)
    via = models.CharField(max_length=100)  # the name of the token that was used; "" is a browser
    project = models.ForeignKey(
        "accounts.Project", null=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="+"
    )
    action = models.CharField(max_length=40)  # audit.Action
    kind = models.CharField(max_length=40)  # the name of a model, or ""
    object_id = models.BigIntegerField(null=True)
    name = models.CharField(max_length=300)
    detail = models.JSONField(default=dict)

    class Meta:
        indexes = [
            models.Index(fields=["project", "-id"], name="audit_project"),
            models.Index(fields=["project", "actor", "-id"], name="audit_actor"),
            models.Index(fields=["project", "action", "-id"], name="audit_action"),
            models.Index(fields=["kind", "object_id", "-id"], name="audit_object"),
        ]


class Waking(models.Model):
    """A message that was sent to Celery's broker and that no worker has picked up yet (see tasks/celery.py)."""

    task = models.CharField(max_length=200)
    arguments = models.CharField(max_length=200, help_text="JSON, keys in order")
    queue = models.CharField(max_length=20)
    sent_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task", "arguments"], name="waking_once")]
