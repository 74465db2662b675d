"""What meets those who guess passwords: django-axes counts (guessing.py), this page answers."""

from __future__ import annotations

import math
from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from evalsite.accounts.login_throttle import ADDRESS, NAME, Lock, counted_address, lock_on
from evalsite.audit import Action, record
from evalsite.models import AuditEntry


def client_address(request: HttpRequest) -> str:
    """The address of the client. Behind a proxy (HTTPS=1) that is what the nearest one saw, not what others claim."""
    if settings.CONFIG.https:
        forwarded = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
        return counted_address(forwarded or request.META.get("REMOTE_ADDR", ""))
    return counted_address(str(request.META.get("REMOTE_ADDR", "")))


def locked_page(request: HttpRequest, *_args: object) -> HttpResponse:
    """When to try again; the same for names that nobody has."""
    username, address = request.POST.get("username", "")[:150], client_address(request)
    lock = lock_on(username, address)
    _write_down(lock, username, address)
    seconds = max(1, math.ceil((lock.until - timezone.now()).total_seconds()))
    context = {"until": lock.until, "minutes": math.ceil(seconds / 60)}
    context |= {"whole_name": lock.what == NAME, "whole_address": lock.what == ADDRESS}
    answer = render(request, "accounts/locked.html", context, status=429)
    answer["Retry-After"] = str(seconds)
    return answer


@transaction.atomic
def _write_down(lock: Lock, username: str, address: str) -> None:
    """The beginning of a wait, once. Of a closed address its names are left out: they are whatever was tried."""
    name = "" if lock.what == ADDRESS else username
    detail: dict[str, Any] = {} if lock.what == NAME else {"ip": address}
    began = lock.until - settings.AXES_COOLOFF_TIME
    noted = AuditEntry.objects.filter(action=Action.SIGN_IN_LOCKED, name=name, at__gte=began)
    if not any(entry.detail == detail for entry in noted):
        record(Action.SIGN_IN_LOCKED, name=name, **detail)
