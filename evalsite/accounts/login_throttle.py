"""How many wrong passwords are too many: for a name from one address, for a name from anywhere, for an address.

django-axes counts and refuses; it knows one limit for all combinations, so that its handler gets one here for each,
and the page that answers.
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
"""Wrong passwords within the cool-off time. An office behind one address mistypes too; whoever tries a list of names
from one address, or one name from many addresses, does not stop at its fifth."""
_NETWORK = 64  # whoever has one address of IPv6 has all of its network


@dataclass(frozen=True, slots=True)
class Lock:
    """What is closed (one of LIMITS), and until when."""

    what: tuple[str, ...]
    until: datetime


class Handler(AxesDatabaseHandler):  # type: ignore[misc]
    """The counting of django-axes, with a limit for each combination of AXES_LOCKOUT_PARAMETERS."""

    def get_failures(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """The failures of the combination that is nearest to its limit, as if that were AXES_FAILURE_LIMIT."""
        limits = [LIMITS[tuple(each)] for each in settings.AXES_LOCKOUT_PARAMETERS]
        unit: int = settings.AXES_FAILURE_LIMIT
        counted: list[int] = [
            sum(attempts.values_list("failures_since_start", flat=True))
            for attempts in self.get_user_attempts(request, credentials)
        ]
        return max(count * unit // limit for count, limit in zip(counted, limits, strict=True))

    def reset_user_attempts(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """The right password forgives the wrong ones for its name from its address, and nobody else's:
        or one's own account would wipe out the guesses at all the others."""
        places = list(map(tuple, settings.AXES_LOCKOUT_PARAMETERS))
        attempts = self.filter_user_attempts(request, credentials)[places.index(NAME_HERE)]
        return int(attempts.delete()[0])


def counted_address(address: str) -> str:
    """What an address is counted as: itself, or its network where it is of IPv6."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    if known.version == 4:
        return address
    if known.ipv4_mapped:
        return str(known.ipv4_mapped)
    return str(ipaddress.ip_network((known, _NETWORK), strict=False).network_address)


def lock_on(username: str, address: str) -> Lock:
    """What closes sign-in for a name from an address, the one that lasts longest; one that is over if none does."""
    given = {"username": username, "ip_address": address}
    found = [
        Lock(what, _until(AccessAttempt.objects.filter(**{each: given[each] for each in what}), limit))
        for what, limit in LIMITS.items()
    ]
    return max(found, key=lambda lock: lock.until)


def _until(attempts: QuerySet[AccessAttempt], limit: int) -> datetime:
    """When so many of the attempts have been forgotten that fewer than `limit` are left."""
    wait: timedelta = settings.AXES_COOLOFF_TIME
    now = timezone.now()
    found = attempts.filter(attempt_time__gte=now - wait).order_by("attempt_time")
    times = list(found.values_list("attempt_time", "failures_since_start"))
    left, until = sum(count for _, count in times), now
    for at, count in times:
        if left < limit:
            break
        left, until = left - count, at + wait
    return until


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
