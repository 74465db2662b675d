"""Endpoint state shared by all workers in one database row: slots, rate, and whether the endpoint is down.

Every second, or immediately after an overload, a worker reports events and gets its share (`allocate`). Four times a
second it checks whether others have closed the endpoint (`read_status`). `reserve` sets the start times of its next
calls. Shares are leases that expire if a worker is silent. All times are the database's, so clocks need not agree.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import connection, transaction

from evalsite.tasks import workers
from judging.core.judges.circuit_breaker import MAX_FAILURES, EndpointStatus, probe_delay
from judging.core.judges.concurrency_limiter import (
    COOLDOWN_SECONDS,
    LimiterEvents,
    adapted_slots,
    fair_shares,
)
from judging.core.judges.rate_limiter import NO_LIMIT, RateLimited, RateLimits, Spacing, start_times
from judging.core.metric_definition import JudgeModel
from judging.endpoints.models import Endpoint, EndpointLoad, EndpointShare

SHARE_SECONDS = 15.0  # how long a share is held without a heartbeat
KEY = "endpoint "  # prefix of an endpoint's key
MANUAL = "manual "  # prefix of owners that are single calls, not workers: slots freed only by expiry

_RESERVE = """
UPDATE judging_endpointload
   SET requests_at = {greatest}(requests_at, {now}) + %s, tokens_at = {greatest}(tokens_at + %s, {now}) + %s
 WHERE key = %s AND requests_at <= {now} + %s AND tokens_at <= {now} + %s RETURNING requests_at, tokens_at, {now}
"""
_SCHEDULE = "SELECT requests_at, tokens_at, {now} FROM judging_endpointload WHERE key = %s"
_CLAIM_PROBE = """
UPDATE judging_endpointload SET next_try_at = {now} + %s, tries = tries + 1
 WHERE key = %s AND down_since > 0 AND next_try_at <= {now}
"""
_STATUS = "SELECT key, closed_until, down_since, next_try_at, problem, problem_detail, {now} FROM judging_endpointload"


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """One worker's events at an endpoint since its last report. `failures`: those since the last success.

    `capped`: the share is limited to `wanted` slots, so that others get the rest immediately.
    """

    key: str
    endpoint: int | None
    max_concurrency: int
    wanted: int
    in_flight: int
    events: LimiterEvents
    failures: int = 0
    problem: str = ""
    detail: str = ""
    capped: bool = False


@dataclass(frozen=True, slots=True)
class Allocation:
    """A worker's share of the slots, and the endpoint's current limits."""

    share: int
    max_concurrency: int
    limits: RateLimits


def now() -> float:
    """The database's time in Unix seconds; on SQLite, this machine's."""
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
    """The key under which limits are shared: the endpoint for all its users and models, or else the URL."""
    return f"{KEY}{judge.endpoint}" if judge.endpoint else judge.url[:1000]


def ensure_row(key: str) -> None:
    EndpointLoad.objects.get_or_create(key=key)


def reserve(
    key: str, spacings: Sequence[Spacing], owed: float = 0.0, within: float = NO_LIMIT
) -> list[float]:
    """Reserve start times for calls. Returns the seconds until each may start.

    `owed`: the seconds of token rate that earlier calls used beyond their reservation. Raises RateLimited, without
    reserving anything, if the first call could not start `within` the given seconds. A single statement: 0.3 ms on
    SQLite, 3-8 ms on PostgreSQL.
    """
    requests, tokens = (sum(one[part] for one in spacings) for part in (0, 1))
    with connection.cursor() as cursor:
        cursor.execute(_sql(_RESERVE), [requests, owed, tokens, key, within, within])
        found = cursor.fetchone()
        if found is None:
            cursor.execute(_sql(_SCHEDULE), [key])
            requests_at, tokens_at, at = cursor.fetchone()
            raise RateLimited(max(requests_at, tokens_at) - at)
    requests_at, tokens_at, at = found
    return start_times(at, requests_at - requests, tokens_at - tokens, spacings)


def read_status(keys: Iterable[str]) -> dict[str, EndpointStatus]:
    """The shared status of endpoints, by key."""
    wanted = list(keys)
    marks = ", ".join(["%s"] * len(wanted))
    with connection.cursor() as cursor:
        cursor.execute(f"{_sql(_STATUS)} WHERE key IN ({marks})", wanted)
        found = cursor.fetchall()
    return {
        key: EndpointStatus(
            max(0.0, closed - at), at - down if down else None, max(0.0, probe - at), problem, detail
        )
        for key, closed, down, probe, problem, detail, at in found
    }


def claim_probe(key: str, probes: int) -> bool:
    """Whether this worker may send the one request that probes whether the endpoint is up again."""
    with connection.cursor() as cursor:
        cursor.execute(_sql(_CLAIM_PROBE), [probe_delay(probes), key])
        return bool(cursor.rowcount)


def allocate(reports: Sequence[WorkerReport], owner: str) -> dict[str, Allocation]:
    """Store the reports and return this worker's shares, in one transaction. All workers lock rows in the same
    order."""
    rows = Endpoint.objects.in_bulk([one.endpoint for one in reports if one.endpoint])
    found = {}
    with transaction.atomic():
        for one in sorted(reports, key=lambda one: one.key):
            row = rows.get(one.endpoint or 0)
            most = row.concurrency if row else one.max_concurrency
            limits = RateLimits(row.requests_per_minute, row.tokens_per_minute) if row else RateLimits()
            found[one.key] = Allocation(_share(one, most, owner), most, limits)
    return found


def _share(report: WorkerReport, most: int, owner: str) -> int:
    load = EndpointLoad.objects.select_for_update().get(key=report.key)
    at = now()
    _store(load, report, most, at)
    load.save()
    others = [one for one in load.shares.all() if one.owner != owner and one.lease_until > at]
    slots = int(load.slots or most)
    fair = fair_shares(slots, {owner: report.wanted, **{one.owner: one.wanted for one in others}})
    share = max(0, slots - sum(max(one.slots, fair[one.owner]) for one in others))
    share = min(share, report.wanted) if report.capped else share
    # Requests in flight can't be withdrawn, so their slots stay reserved until they end.
    held = {"slots": max(share, report.in_flight), "wanted": report.wanted, "lease_until": at + SHARE_SECONDS}
    EndpointShare.objects.update_or_create(load=load, owner=owner, defaults=held)
    return share


def _store(load: EndpointLoad, report: WorkerReport, most: int, at: float) -> None:
    events = report.events
    slots = most if load.slots is None else min(load.slots, most)
    overloaded = bool(events.overloads) and at - load.halved_at >= COOLDOWN_SECONDS
    load.slots = adapted_slots(slots, most, successes=events.successes, overloaded=overloaded)
    load.halved_at = at if overloaded else load.halved_at
    if events.retry_after:
        load.closed_until = max(load.closed_until, at + events.retry_after)
    if events.successes:
        load.failures, load.down_since, load.tries = 0, 0, 0
    if report.failures:
        load.failures += report.failures
        load.problem, load.problem_detail = report.problem, report.detail
    if load.failures >= MAX_FAILURES and not load.down_since:
        load.down_since, load.next_try_at, load.tries = at, at + probe_delay(0), 0


def release_shares(keys: Iterable[str], owner: str) -> None:
    """Release the shares of a worker that is shutting down."""
    EndpointShare.objects.filter(load__key__in=list(keys), owner=owner).delete()


def release_dead_shares() -> int:
    """Release expired shares and those of dead workers. Returns the number released."""
    freed, _ = EndpointShare.objects.filter(lease_until__lt=now()).delete()
    shares = EndpointShare.objects.exclude(owner__startswith=MANUAL)
    for owner in shares.values_list("owner", flat=True).distinct():
        if not workers.is_alive(owner):
            freed += EndpointShare.objects.filter(owner=owner).delete()[0]
    return freed
