"""Limits for failed logins: for a name from one address, for a name from anywhere, and for an address.

django-axes counts and rejects, but knows only one limit for all combinations; the handler here adds one for each, and
the page shown when locked out.
"""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from axes.models import AccessAttempt
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from evalsite.audit import Action, record
from evalsite.models import AuditEntry

NAME_HERE, ADDRESS, NAME = ("username", "ip_address"), ("ip_address",), ("username",)
LIMITS = {NAME_HERE: 5, ADDRESS: 50, NAME: 30}
"""Failed logins within the cool-off time.

Users in an office may share an address and mistype; attackers who try many names or use many addresses do not stop
at the fifth failure.
"""
_NETWORK = 64  # the holder of one IPv6 address has its whole network


@dataclass(frozen=True, slots=True)
class Lock:
    """The locked combination (a key of LIMITS), and until when."""

    what: tuple[str, ...]
    until: datetime


class Handler(AxesDatabaseHandler):  # type: ignore[misc]
    """The database handler of django-axes with a limit for each combination of AXES_LOCKOUT_PARAMETERS."""

    def get_failures(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """Failures of the combination closest to its limit, scaled to AXES_FAILURE_LIMIT."""
        limits = [LIMITS[tuple(each)] for each in settings.AXES_LOCKOUT_PARAMETERS]
        unit: int = settings.AXES_FAILURE_LIMIT
        counted: list[int] = [
            sum(attempts.values_list("failures_since_start", flat=True))
            for attempts in self.get_user_attempts(request, credentials)
        ]
        return max(count * unit // limit for count, limit in zip(counted, limits, strict=True))

    def reset_user_attempts(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """Reset only the failures for this name from this address after a correct password.

        Otherwise, signing in to one's own account would reset the guesses at all others.
        """
        places = list(map(tuple, settings.AXES_LOCKOUT_PARAMETERS))
        attempts = self.filter_user_attempts(request, credentials)[places.index(NAME_HERE)]
        return int(attempts.delete()[0])


def counted_address(address: str) -> str:
    """The address to count: for IPv6 its network, else the address itself."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _NETWORK), strict=False).network_address)


def lock_on(username: str, address: str) -> Lock:
    """The longest lock for a name from an address; in the past if there is none."""
    values = {"username": username, "ip_address": address}
    locks = [
        Lock(what, _until(AccessAttempt.objects.filter(**{each: values[each] for each in what}), limit))
        for what, limit in LIMITS.items()
    ]
    return max(locks, key=lambda lock: lock.until)


def _until(attempts: QuerySet[AccessAttempt], limit: int) -> datetime:
    """When enough attempts have expired that fewer than `limit` remain."""
    wait: timedelta = settings.AXES_COOLOFF_TIME
    now = timezone.now()
    recent = attempts.filter(attempt_time__gte=now - wait).order_by("attempt_time")
    times = list(recent.values_list("attempt_time", "failures_since_start"))
    left, until = sum(count for _, count in times), now
    for at, count in times:
        if left < limit:
            break
        left, until = left - count, at + wait
    return until


def client_address(request: HttpRequest) -> str:
    """The client's address. Behind a proxy (HTTPS=1), the one seen by the nearest proxy, not what others claim."""
    if settings.CONFIG.https:
        forwarded = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
        return counted_address(forwarded or request.META.get("REMOTE_ADDR", ""))
    return counted_address(str(request.META.get("REMOTE_ADDR", "")))


def locked_page(request: HttpRequest, *_args: object) -> HttpResponse:
    """Shows when to try again; the same for names that do not exist."""
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
    """Log the start of a lock once. For a locked address, the names are left out: they are arbitrary guesses."""
    name = "" if lock.what == ADDRESS else username
    detail: dict[str, Any] = {} if lock.what == NAME else {"ip": address}
    began = lock.until - settings.AXES_COOLOFF_TIME
    noted = AuditEntry.objects.filter(action=Action.SIGN_IN_LOCKED, name=name, at__gte=began)
    if not any(entry.detail == detail for entry in noted):
        record(Action.SIGN_IN_LOCKED, name=name, **detail)
