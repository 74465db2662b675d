"""Site-wide tables: worker heartbeats and the audit log."""

from __future__ import annotations

from django.db import models


class WorkerProcess(models.Model):
    """A worker process and the time of its last heartbeat. The reconciler removes dead workers."""

    owner = models.CharField(max_length=120)
    queue = models.CharField(max_length=20)
    started_at = models.DateTimeField(auto_now_add=True)
    seen_at = models.DateTimeField()
    error = models.CharField(
        max_length=10,
        db_column="trouble",
        blank=True,
        default="",
        help_text="`broker`: the broker does not respond",
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "queue"], name="worker_once")]


class AuditEntry(models.Model):
    """Who did what, and when; immutable in the database (migration 0002). Written only by `audit.record`.

    Users and projects are stored by id and name without constraints, so entries outlive them.
    """

    at = models.DateTimeField(auto_now_add=True)
    actor = models.BigIntegerField(null=True)  # a user's id; null is the application itself
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
    """A message sent to Celery's broker that no worker has received yet (see tasks/celery.py)."""

    task = models.CharField(max_length=200)
    arguments = models.CharField(max_length=200, help_text="JSON, keys in order")
    queue = models.CharField(max_length=20)
    sent_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task", "arguments"], name="waking_once")]
