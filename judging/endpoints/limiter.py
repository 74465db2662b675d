"""What all workers agree on about each endpoint, in one row of it: slots, pace, and whether it is down.

A worker tells what happened to it and hears its share once a second, at once after an overload (`agree`); four times a
second it looks whether others have closed the endpoint (`look`); `reserve` promises the starts of its next calls.
Shares are leases: of a worker that fell silent, they return. All times are the database's: hosts need not agree.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import connection, transaction

from evalsite.tasks import workers
from judging.core.judges import circuit_breaker
from judging.core.judges.circuit_breaker import EndpointStatus
from judging.core.judges.concurrency_limiter import (
    COOLDOWN_SECONDS,
    LimiterEvents,
    adapted_slots,
    fair_shares,
)
from judging.core.judges.rate_limiter import RateLimits, starts
from judging.core.story import JudgeModel
from judging.endpoints.models import Endpoint, EndpointLoad, EndpointShare

SHARE_SECONDS = 15.0  # how long a share is held without a sign of life
TRIAL = "trial "  # begins the name of who asks by hand: no worker, so that only the time frees its slot

_RESERVE = """
UPDATE judging_endpointload
   SET requests_at = {greatest}(requests_at, {now}) + %s, tokens_at = {greatest}(tokens_at + %s, {now}) + %s
 WHERE key = %s RETURNING requests_at, tokens_at, {now}
"""
_RESERVE_SOON = """
UPDATE judging_endpointload
   SET requests_at = {greatest}(requests_at, {now}) + %s, tokens_at = {greatest}(tokens_at, {now}) + %s
 WHERE key = %s AND requests_at <= {now} + %s AND tokens_at <= {now} + %s RETURNING requests_at, tokens_at, {now}
"""
_CLAIM_TRY = """
UPDATE judging_endpointload SET next_try_at = {now} + %s, tries = tries + 1
 WHERE key = %s AND down_since > 0 AND next_try_at <= {now}
"""
_LOOK = "SELECT key, closed_until, down_since, next_try_at, problem, problem_detail, {now} FROM judging_endpointload"


@dataclass(slots=True)
class WorkerReport:
    """What a worker has to say of an endpoint since it last did. `failures` in a row after the last success.

    `modest`: it takes no more slots than it wants; others may find the rest free at once.
    """

    key: str
    endpoint: int | None
    ceiling: int
    wanted: int
    in_flight: int
    news: LimiterEvents
    failures: int = 0
    problem: str = ""
    detail: str = ""
    modest: bool = False


@dataclass(frozen=True, slots=True)
class Allocation:
    """What a worker hears: its share of the slots, and the limits as the endpoint's page has them now."""

    share: int
    ceiling: int
    limits: RateLimits


def now() -> float:
    """The database's time, Unix seconds; the file database's is this machine's."""
    if connection.vendor != "postgresql":
        return time.time()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_now()}")
        return float(cursor.fetchone()[0])


def _now() -> str:
    if connection.vendor == "postgresql":
        return "EXTRACT(EPOCH FROM clock_timestamp())::float8"
    return repr(time.time())


def _sql(text: str) -> str:
    return text.format(now=_now(), greatest="GREATEST" if connection.vendor == "postgresql" else "MAX")


def endpoint_key(judge: JudgeModel) -> str:
    """Who shares limits: an endpoint is one, whatever it is called and whoever asks it; else an address."""
    return f"endpoint {judge.endpoint}" if judge.endpoint else judge.url[:1000]


def ensure_row(key: str) -> None:
    EndpointLoad.objects.get_or_create(key=key)


def reserve(key: str, spacings: Sequence[tuple[float, float]], owed: float = 0.0) -> list[float]:
    """Promise the starts of calls with these (request, token) spacings, seconds; `owed` is what earlier ones took
    longer for themselves than was promised. One statement: 0.3 ms on SQLite, 3–8 ms on PostgreSQL.

    Returns the seconds until each may start.
    """
    requests, tokens = (sum(one[part] for one in spacings) for part in (0, 1))
    with connection.cursor() as cursor:
        cursor.execute(_sql(_RESERVE), [requests, owed, tokens, key])
        requests_at, tokens_at, at = cursor.fetchone()
    return starts(at, requests_at - requests, tokens_at - tokens, spacings)


def reserve_within(key: str, spacing: tuple[float, float], within: float) -> tuple[bool, float]:
    """Promise the start of one call with this (request, token) spacing, if it may start `within` so many seconds.

    Returns whether it is promised, and the seconds until it may start.
    """
    with connection.cursor() as cursor:
        cursor.execute(_sql(_RESERVE_SOON), [*spacing, key, within, within])
        if found := cursor.fetchone():
            requests_at, tokens_at, at = found
            return True, max(0.0, requests_at - spacing[0] - at, tokens_at - spacing[1] - at)
        cursor.execute(
            _sql("SELECT requests_at, tokens_at, {now} FROM judging_endpointload WHERE key = %s"), [key]
        )
        requests_at, tokens_at, at = cursor.fetchone()
    return False, max(0.0, requests_at - at, tokens_at - at)


def read_status(keys: Iterable[str]) -> dict[str, EndpointStatus]:
    """What others may have closed."""
    wanted = list(keys)
    marks = ", ".join(["%s"] * len(wanted))
    with connection.cursor() as cursor:
        cursor.execute(f"{_sql(_LOOK)} WHERE key IN ({marks})", wanted)
        found = cursor.fetchall()
    return {
        key: EndpointStatus(
            max(0.0, closed - at), at - down if down else None, max(0.0, retry - at), problem, detail
        )
        for key, closed, down, retry, problem, detail, at in found
    }


def claim_probe(key: str, tries: int) -> bool:
    """Whether this worker may send the one call that finds out whether the endpoint is back."""
    with connection.cursor() as cursor:
        cursor.execute(_sql(_CLAIM_TRY), [circuit_breaker.probe_delay(tries), key])
        return bool(cursor.rowcount)


def allocate(told: Sequence[WorkerReport], owner: str) -> dict[str, Allocation]:
    """Tell what happened, hear each endpoint's share. One transaction; rows are taken in one order by everybody."""
    rows = Endpoint.objects.in_bulk([one.endpoint for one in told if one.endpoint])
    found = {}
    with transaction.atomic():
        for one in sorted(told, key=lambda one: one.key):
            row = rows.get(one.endpoint or 0)
            ceiling = row.concurrency if row else one.ceiling
            limits = RateLimits(row.requests_per_minute, row.tokens_per_minute) if row else RateLimits()
            found[one.key] = Allocation(_agree(one, ceiling, owner), ceiling, limits)
    return found


def _agree(told: WorkerReport, ceiling: int, owner: str) -> int:
    load = EndpointLoad.objects.select_for_update().get(key=told.key)
    at = now()
    _take_news(load, told, ceiling, at)
    load.save()
    held = {one.owner: one for one in load.shares.all()}
    others = {name: one for name, one in held.items() if name != owner and one.lease_until > at}
    slots = int(load.slots or ceiling)
    fair = fair_shares(slots, {owner: told.wanted, **{name: one.wanted for name, one in others.items()}})
    claimed = sum(max(one.slots, fair[name]) for name, one in others.items())
    share = max(0, slots - claimed)
    share = min(share, told.wanted) if told.modest else share
    # What is in flight cannot be taken back: until it has come home others must not count on those slots.
    EndpointShare.objects.update_or_create(
        load=load,
        owner=owner,
        defaults={
            "slots": max(share, told.in_flight),
            "wanted": told.wanted,
            "lease_until": at + SHARE_SECONDS,
        },
    )
    return share


def _take_news(load: EndpointLoad, told: WorkerReport, ceiling: int, at: float) -> None:
    news = told.news
    slots = ceiling if load.slots is None else min(load.slots, ceiling)
    overloaded = bool(news.overloads) and at - load.halved_at >= COOLDOWN_SECONDS
    load.slots = adapted_slots(slots, ceiling, successes=news.successes, overloaded=overloaded)
    load.halved_at = at if overloaded else load.halved_at
    if news.retry_after:
        load.closed_until = max(load.closed_until, at + news.retry_after)
    if news.successes:
        load.failures, load.down_since, load.tries = 0, 0, 0
    if told.failures:
        load.failures += told.failures
        load.problem, load.problem_detail = told.problem, told.detail
    if load.failures >= circuit_breaker.MAX_FAILURES and not load.down_since:
        load.down_since, load.next_try_at, load.tries = at, at + circuit_breaker.probe_delay(0), 0


def release_shares(keys: Iterable[str], owner: str) -> None:
    """A worker that ends leaves its slots to the others."""
    EndpointShare.objects.filter(load__key__in=list(keys), owner=owner).delete()


def release_dead_shares() -> int:
    """Slots of workers that are gone. How many of them."""
    freed, _ = EndpointShare.objects.filter(lease_until__lt=now()).delete()
    shares = EndpointShare.objects.exclude(owner__startswith=TRIAL)
    for owner in shares.values_list("owner", flat=True).distinct():
        if not workers.is_alive(owner):
            freed += EndpointShare.objects.filter(owner=owner).delete()[0]
    return freed
