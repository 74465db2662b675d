"""Site-wide tables: worker heartbeats, background jobs and the audit log."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class WorkerProcess(models.Model):
    """A worker process and the time of its last heartbeat. The reconciler removes dead workers."""

    owner = models.CharField(max_length=120)
    queue = models.CharField(max_length=20)
    started_at = models.DateTimeField(auto_now_add=True)
    seen_at = models.DateTimeField()
    error = models.CharField(
        max_length=10,
        blank=True,
        default="",
        help_text="`broker`: the broker does not respond",
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "queue"], name="worker_once")]


class AuditEntry(models.Model):
    """Who did what, and when; immutable in the database by a trigger. Written only by `audit.record`.

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


class StoredReply(models.Model):
    """The API's reply to a request with an `Idempotency-Key`, kept for a day (see api/replies.py)."""

    token = models.ForeignKey("accounts.ApiToken", on_delete=models.CASCADE, related_name="+")
    address = models.CharField(max_length=300, help_text="path and query")
    key = models.CharField(max_length=200)
    digest = models.CharField(max_length=64, help_text="SHA-256 of the request's body")
    status = models.PositiveSmallIntegerField(null=True, help_text="null: still being answered")
    body = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["token", "address", "key"], name="reply_once")]


class SentMessage(models.Model):
    """A message sent to Celery's broker that no worker has received yet (see tasks/celery.py)."""

    task = models.CharField(max_length=200)
    arguments = models.CharField(max_length=200, help_text="JSON, keys in order")
    queue = models.CharField(max_length=20)
    sent_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task", "arguments"], name="sent_message_once")]


class Job(models.Model):
    """Work on one object that waits for a worker or is being done; see tasks/jobs.py. The row is deleted when the work
    is done; if it failed, it stays with the problem until the work is requested again."""

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        WORKING = "working", _("in progress")
        FAILED = "failed", _("failed")

    kind = models.CharField(max_length=40, help_text="a name given to @job")
    object_id = models.BigIntegerField(help_text="the primary key of what it works on")
    state = models.CharField(max_length=7, choices=State.choices, default=State.WAITING)
    owner = models.CharField(max_length=120, blank=True, default="", help_text="the process that does it")
    lease_until = models.DateTimeField(null=True)
    done = models.BigIntegerField(default=0, help_text="progress, in units of the kind")
    total = models.BigIntegerField(default=0, help_text="0: not known")
    claims = models.PositiveIntegerField(
        default=0, help_text="number of times it was claimed: tells holders apart"
    )
    deaths = models.PositiveIntegerField(default=0, help_text="number of workers that died or hung doing it")
    problem = models.CharField(max_length=40, blank=True, default="", help_text="code: why it failed")
    requested_again = models.BooleanField(default=False, help_text="requested again while it is being done")
    not_before = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "object_id"], name="job_once")]
        indexes = [models.Index(fields=["state", "id"], name="job_by_state")]

    @property
    def percent(self) -> int:
        return int(100 * self.done / self.total) if self.total else 0


class Derived(models.Model):
    """A stored result that can be computed again at any time; see derived.py. Until it is computed, its value is what
    its job needs for that."""

    kind = models.CharField(max_length=20)
    subject = models.BigIntegerField(help_text="the primary key of what it is about")
    key = models.CharField(max_length=32, help_text="hash of the part")
    part = models.JSONField(default=list, help_text="names of the part of the subject; empty: the whole")
    layout = models.PositiveSmallIntegerField(
        default=0, help_text="format version of the value; 0: not computed yet"
    )
    revision = models.BigIntegerField(default=0, help_text="the subject's revision when it was computed")
    value = models.BinaryField(default=b"")
    computed_at = models.DateTimeField(null=True)
    seconds = models.FloatField(default=0, help_text="duration of the computation")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "subject", "key"], name="derived_once")]
