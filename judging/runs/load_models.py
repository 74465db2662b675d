"""What all workers know together: how an endpoint is being used, and which replies have been paid for."""

from __future__ import annotations

from django.db import models

from evalsite.accounts.models import Project
from judging.runs.models import JudgeReply


class EndpointLoad(models.Model):
    """One judge address as all workers use it at once: pace, slots, and whether it answers at all.

    Times are Unix seconds by the database's clock (limits.py), 0 for never.
    """

    key = models.CharField(max_length=1010, unique=True, help_text="an endpoint's number, or an address")
    requests_at = models.FloatField(default=0, help_text="when the next request may start")
    tokens_at = models.FloatField(default=0, help_text="when the tokens that were promised are used up")
    slots = models.FloatField(null=True, help_text="calls at a time that the server bears; null: the ceiling")
    halved_at = models.FloatField(default=0)
    closed_until = models.FloatField(default=0, help_text="the server's own Retry-After")
    failures = models.PositiveIntegerField(default=0, help_text="in a row, by all workers")
    down_since = models.FloatField(default=0, help_text="since when nobody asks; 0: it answers")
    next_try_at = models.FloatField(default=0)
    tries = models.PositiveIntegerField(default=0, help_text="how often it was tried while it was down")
    problem = models.CharField(max_length=40, blank=True, default="", help_text="of the last failure: a code")
    problem_detail = models.TextField(blank=True, default="")


class EndpointShare(models.Model):
    """The part of an endpoint's slots that one worker holds."""

    load = models.ForeignKey(EndpointLoad, on_delete=models.CASCADE, related_name="shares")
    owner = models.CharField(max_length=120)
    slots = models.PositiveIntegerField(default=0)
    wanted = models.PositiveIntegerField(default=0)
    lease_until = models.FloatField(default=0, help_text="Unix seconds")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["load", "owner"], name="endpoint_share_once")]


class CachedReply(models.Model):
    """Where the reply to a request stands that need not be paid for again."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False, related_name="+")
    digest = models.CharField(max_length=64, help_text="SHA-256 of address, request and repeat")
    reply = models.ForeignKey(JudgeReply, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "digest"], name="cached_reply_once")]
