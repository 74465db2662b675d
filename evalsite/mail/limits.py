"""Limits for requests that send mail: those of failed sign-ins, for a mail address and for a network address."""

from __future__ import annotations

from axes.models import AccessAttempt
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.http import HttpRequest
from django.utils import timezone

from evalsite.accounts.login_throttle import client_address, lock_on


@transaction.atomic
def is_too_often(request: HttpRequest, what: str) -> bool:
    """Count a request about `what`; returns whether there were too many. No username has a colon, so nobody's sign-in
    is locked by its name."""
    name, address = f"mail:{what.lower()}"[:255], client_address(request)
    if lock_on(name, address).until > timezone.now():
        return True
    now = timezone.now()
    place = {"username": name, "ip_address": address, "user_agent": "mail"}
    AccessAttempt.objects.filter(**place, attempt_time__lt=now - settings.AXES_COOLOFF_TIME).delete()
    _attempt, is_new = AccessAttempt.objects.get_or_create(**place, defaults={"failures_since_start": 1})
    if not is_new:
        AccessAttempt.objects.filter(**place).update(
            failures_since_start=F("failures_since_start") + 1, attempt_time=now
        )
    return False
