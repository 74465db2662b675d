"""What meets those who guess passwords: django-axes counts, this page answers."""

from __future__ import annotations

import math
from datetime import datetime

from axes.models import AccessAttempt
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from evalsite.audit import Action, record
from evalsite.models import AuditEntry


def client_address(request: HttpRequest) -> str:
    """Whence a request comes. Behind a proxy (HTTPS=1) that is what the nearest one saw, not what others claim."""
    if settings.CONFIG.https:
        forwarded = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
        return forwarded or request.META.get("REMOTE_ADDR", "")
    return str(request.META.get("REMOTE_ADDR", ""))


def locked_page(request: HttpRequest, *_args: object) -> HttpResponse:
    """When to try again; the same for names that nobody has."""
    username = request.POST.get("username", "")[:150]
    until = locked_until(username, client_address(request))
    seconds = max(1, math.ceil((until - timezone.now()).total_seconds()))
    context = {"until": until, "minutes": math.ceil(seconds / 60)}
    answer = render(request, "accounts/locked.html", context, status=429)
    answer["Retry-After"] = str(seconds)
    return answer


@transaction.atomic
def locked_until(username: str, address: str) -> datetime:
    """The end of the wait; its beginning is written down once."""
    attempts = AccessAttempt.objects.filter(username=username, ip_address=address).order_by("-attempt_time")
    last = attempts.values_list("attempt_time", flat=True).first() or timezone.now()
    noted = AuditEntry.objects.filter(action=Action.SIGN_IN_LOCKED, name=username, at__gte=last)
    if not noted.exists():
        record(Action.SIGN_IN_LOCKED, name=username, ip=address)
    return last + settings.AXES_COOLOFF_TIME
