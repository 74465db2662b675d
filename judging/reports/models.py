"""Shared links to reports."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from evalsite.accounts.models import User
from judging.records.models import Run


class ReportLink(models.Model):
    """A link that shows a run's report, without its items, to anyone; see sharing.py."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="report_links")
    note = models.CharField(max_length=200, blank=True, default="")
    token_hash = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)

    @property
    def open(self) -> bool:
        return self.revoked_at is None and self.expires_at > timezone.now()
