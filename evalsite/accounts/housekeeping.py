"""Deletes data that is no longer needed; run regularly by the workers' reconciler."""

from __future__ import annotations

from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.sessions.models import Session
from django.utils import timezone

from evalsite.accounts.drafts import drafts_expire


def reconcile() -> None:
    """Delete expired sessions, failed logins that no longer count, and abandoned drafts."""
    now = timezone.now()
    Session.objects.filter(expire_date__lt=now).delete()
    AccessAttempt.objects.filter(attempt_time__lt=now - 2 * settings.AXES_COOLOFF_TIME).delete()
    drafts_expire()
