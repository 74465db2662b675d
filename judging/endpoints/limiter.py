"""The state of an endpoint that all workers share, in one row: its calls at a time, rates, and whether it answers.

Twice a second, or at once if something changed, a worker reports what happened and gets its part of the calls
(`exchange`), which is its heartbeat too. Where rates are limited, calls also `take` from the row's two buckets. All
times are the database's, so clocks need not agree.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from django.db import connection, transaction

from evalsite.tasks import workers
from judging.core.judges import limits
from judging.core.judges.limits import RateLimits, Recent, Spacing, Try
from judging.core.metric_definition import JudgeModel
from judging.endpoints.models import Endpoint, EndpointLoad

SILENT_SECONDS = 15.0  # after which a worker without a heartbeat loses its calls
TURN_SECONDS = 5.0  # how long one worker has the call that can't be divided
KEY = "endpoint "  # prefix of an endpoint's key
MANUAL = "manual "  # prefix of owners that are single calls, not workers: released only when they are silent


@dataclass(frozen=True, slots=True)
class Problem:
    """The last failure of a call: an error code, the server's words, and the HTTP status if there was one."""

    code: str = ""
    detail: str = ""
    status: int | None = None


@dataclass(slots=True)
class News:
    """What happened at an endpoint since a worker's last report."""

    replies: int = 0
    overloaded: bool = False
    closed_for: float = 0.0  # seconds
    tries: list[Try] = field(default_factory=list)
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """One worker's news, its calls in flight, and its claim (limits.even_share). `maximum`: the calls at a time where
    no endpoint is stored. `single`: it never needs more than one call. `ended`: it needs no call now."""

    key: str
    endpoint: int | None
    maximum: int
    in_flight: int
    claim: int | None
    news: News = field(default_factory=News)
    single: bool = False
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Status:
    """The shared state of an endpoint. `closed_for`: seconds that the server asked to wait; `down_for`: seconds, None
    while it answers."""

    closed_for: float = 0.0
    down_for: float | None = None
    recent: Recent = field(default_factory=dict)
    problem: Problem = Problem()

    @property
    def failed(self) -> int:
        """How many of the recent requests were not answered by their latest try."""
        return sum(not answered for answered in self.recent.values())


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a worker may do: its part of the calls, the endpoint's settings, and the shared state."""

    share: int
    maximum: int
    limits: RateLimits
    status: Status


def now() -> float:
    """The database's time in Unix seconds; on SQLite, this machine's."""
    if connection.vendor != "postgresql":
        return time.time()
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXTRACT(EPOCH FROM clock_timestamp())::float8")
        return float(cursor.fetchone()[0])


def endpoint_key(judge: JudgeModel) -> str:
    """The key under which limits are shared: the endpoint for all its users and models, or else the URL."""
    return f"{KEY}{judge.endpoint}" if judge.endpoint else judge.url[:1000]


def ensure_row(key: str) -> None:
    EndpointLoad.objects.get_or_create(key=key)


def rate_limits(row: Endpoint | None) -> RateLimits:
    return RateLimits(row.requests_per_minute, row.tokens_per_minute) if row else RateLimits()


def take(key: str, spacings: Sequence[Spacing], owed: float = 0.0) -> tuple[int, float]:
    """Let calls start within the rates: returns how many of them may, and the seconds until the next may.

    `owed`: the seconds of token rate that earlier calls used beyond their estimates.
    """
    with transaction.atomic():
        load = EndpointLoad.objects.select_for_update().get(key=key)
        free_at = load.requests_at, load.tokens_at + owed
        count, (load.requests_at, load.tokens_at), wait = limits.take(free_at, spacings, now())
        load.save(update_fields=["requests_at", "tokens_at"])
    return count, wait


def read_status(keys: Iterable[str]) -> dict[str, Status]:
    """The shared state of endpoints, by key."""
    at = now()
    return {load.key: _status(load, at) for load in EndpointLoad.objects.filter(key__in=list(keys))}


def _status(load: EndpointLoad, at: float) -> Status:
    return Status(
        max(0.0, load.closed_until - at),
        at - load.down_since if load.down_since else None,
        _recent(load),
        Problem(load.problem, load.problem_detail, load.problem_status),
    )


def _recent(load: EndpointLoad) -> Recent:
    return {request: bool(answered) for request, answered in load.recent}


def exchange(reports: Sequence[Report], owner: str) -> dict[str, Allowance]:
    """Store the reports and return what this worker may do, in one transaction. All workers lock rows in the same
    order."""
    rows = Endpoint.objects.in_bulk([report.endpoint for report in reports if report.endpoint])
    allowances = {}
    with transaction.atomic():
        for report in sorted(reports, key=lambda report: report.key):
            row = rows.get(report.endpoint or 0)
            maximum = row.concurrency if row else report.maximum
            load = EndpointLoad.objects.select_for_update().get(key=report.key)
            at = now()
            _store(load, report.news, maximum, at)
            share = _share(load, report, owner, at)
            load.save()
            allowances[report.key] = Allowance(share, maximum, rate_limits(row), _status(load, at))
    return allowances


def _store(load: EndpointLoad, news: News, maximum: int, at: float) -> None:
    limit = maximum if load.limit is None else min(load.limit, maximum)
    overloaded = news.overloaded and at - load.halved_at >= limits.COOLDOWN_SECONDS
    load.limit = limits.adapted_limit(limit, maximum, replies=news.replies, overloaded=overloaded)
    load.halved_at = at if overloaded else load.halved_at
    if news.closed_for:
        load.closed_until = max(load.closed_until, at + news.closed_for)
    recent = limits.with_tries(_recent(load), news.tries)
    load.recent = [[request, int(answered)] for request, answered in recent.items()]
    load.down_since = (load.down_since or at) if limits.is_down(recent) else 0
    if news.problem:
        problem = news.problem
        load.problem, load.problem_detail, load.problem_status = problem.code, problem.detail, problem.status


def _share(load: EndpointLoad, report: Report, owner: str, at: float) -> int:
    others = {
        name: (seen, held, claim)
        for name, (seen, held, claim) in load.workers.items()
        if name != owner and at - seen < SILENT_SECONDS
    }
    load.workers = {name: list(state) for name, state in others.items()}
    if report.ended:
        return 0
    limit = limits.lowered(load.limit or 1.0, _recent(load))
    claims = {name: claim for name, (_, _, claim) in others.items()} | {owner: report.claim}
    share = limits.even_share(limit, claims, owner, int(at / TURN_SECONDS))
    # Requests in flight can't be withdrawn, so their calls stay with their worker until they end.
    share = max(0, min(share, limit - sum(held for _, held, _ in others.values())))
    share = min(share, 1) if report.single else share
    load.workers[owner] = [at, max(share, report.in_flight), report.claim]
    return int(share)


def release(keys: Iterable[str], owner: str) -> None:
    """Release the calls of a worker that is shutting down."""
    _release(keys, lambda name: name == owner)


def release_dead() -> int:
    """Release the calls of silent and dead workers. Returns the number of workers released."""
    at = now()
    held = EndpointLoad.objects.exclude(workers={}).values_list("key", "workers")
    gone = {
        name
        for _, states in held
        for name, (seen, *_rest) in states.items()
        if at - seen >= SILENT_SECONDS or not (name.startswith(MANUAL) or workers.is_alive(name))
    }
    keys = [key for key, states in held if gone & states.keys()]
    return _release(keys, gone.__contains__)


def _release(keys: Iterable[str], is_gone: Callable[[str], bool]) -> int:
    released = 0
    with transaction.atomic():
        for load in EndpointLoad.objects.select_for_update().filter(key__in=list(keys)).order_by("key"):
            left = {name: state for name, state in load.workers.items() if not is_gone(name)}
            released += len(load.workers) - len(left)
            load.workers = left
            load.save(update_fields=["workers"])
    return released
