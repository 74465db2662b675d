"""Data for the status page and the Prometheus metrics: workers, queues, runs, endpoints, database, disk."""

from __future__ import annotations

import platform
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec
from django.conf import settings
from django.db import connection

from evalsite.models import WorkerProcess
from evalsite.tasks.workers import QUEUES, backend, is_alive, obstacle
from judging.core.judges.circuit_breaker import EndpointStatus
from judging.endpoints import limiter
from judging.endpoints.models import Endpoint, EndpointLoad
from judging.runs.models import NOT_ENDED, WITHOUT_WORKERS, Generation, JudgeReply, Run, RunState

REPLIES_LOOKED_AT = 1000
LOW_DISK = 0.1  # share of a disk that must stay free
PACKAGES = ("django", "aiohttp", "celery", "psycopg", "boto3")


@dataclass(frozen=True, slots=True)
class SeenWorker:
    """A registered worker process."""

    queue: str
    host: str
    pid: int
    alive: bool
    error: str
    started_at: datetime
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class SeenQueue:
    """The pending tasks of a queue. `obstacle`: see workers.obstacle."""

    name: str
    waiting: int
    oldest: datetime | None
    obstacle: str


@dataclass(frozen=True, slots=True)
class SeenEndpoint:
    """An endpoint's recent replies and its availability. `last_at` and `down_since` are Unix seconds.

    `down_since` is None while requests are sent; `wait`: seconds until the next probe, or until the server's
    Retry-After ends.
    """

    endpoint: Endpoint
    asked: int
    failed: int
    last_code: str
    last_at: float | None
    down_since: float | None = None
    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class SeenDatabase:
    """Sizes in bytes; `wal`: SQLite's write-ahead log, None on PostgreSQL."""

    kind: str
    version: str
    size: int
    wal: int | None


@dataclass(frozen=True, slots=True)
class SeenDisk:
    """The disk that holds DATA_DIR, in bytes."""

    path: Path
    free: int
    total: int

    @property
    def low(self) -> bool:
        return self.free < LOW_DISK * self.total


def workers() -> list[SeenWorker]:
    """All registered workers that the reconciler has not removed."""
    return [_worker(one) for one in WorkerProcess.objects.order_by("queue", "started_at")]


def _worker(one: WorkerProcess) -> SeenWorker:
    host, pid, _ = one.owner.rsplit(":", 2)
    alive = is_alive(one.owner)
    return SeenWorker(one.queue, host, int(pid), alive, one.error, one.started_at, one.seen_at)


def queues() -> list[SeenQueue]:
    """The queues of the task engine."""
    seen = []
    for name in QUEUES:
        waiting, oldest = backend().waiting(name)
        seen.append(SeenQueue(name, waiting, oldest, obstacle(name)))
    return seen


def runs_under_way() -> dict[str, int]:
    """Number of runs processed by workers in each state that is not final."""
    runs = Run.objects.filter(state__in=NOT_ENDED).exclude(kind__in=WITHOUT_WORKERS)
    counts = Counter(runs.values_list("state", flat=True))
    return {str(state): counts[state] for state in NOT_ENDED}


def stopped_by_budget() -> int:
    """Number of runs paused because their budget is spent."""
    return Run.objects.filter(state=RunState.PAUSED, problem__startswith="budget_").count()


def endpoints() -> list[SeenEndpoint]:
    """The endpoints of the site's latest replies and those that are down, worst first."""
    found: dict[int, list[tuple[str, str]]] = {}
    for said in (JudgeReply, Generation):  # replies of judge models and of models under test
        last = said.objects.order_by("-pk").values_list("endpoint_id", "error", "calls")[:REPLIES_LOOKED_AT]
        for endpoint, error, calls in last:
            if endpoint is not None:
                found.setdefault(endpoint, []).append((error, calls))
    down = EndpointLoad.objects.filter(down_since__gt=0, key__startswith=limiter.KEY).values_list(
        "key", flat=True
    )
    wanted = {*found, *(int(key.removeprefix(limiter.KEY)) for key in down)}
    known = Endpoint.objects.select_related("project").in_bulk(wanted)
    circuits = limiter.read_status(f"{limiter.KEY}{pk}" for pk in known) if known else {}
    seen = [
        _endpoint(endpoint, found.get(pk, []), circuits.get(f"{limiter.KEY}{pk}"))
        for pk, endpoint in known.items()
    ]
    return sorted(seen, key=lambda one: (one.down_since is None, -one.failed, one.endpoint.name))


def _endpoint(
    endpoint: Endpoint, replies: list[tuple[str, str]], circuit: EndpointStatus | None
) -> SeenEndpoint:
    failures = [(error, calls) for error, calls in replies if error]
    code, calls = failures[0] if failures else ("", "")
    tried = msgspec.json.decode(calls) if calls else []
    last_at = tried[-1]["started_unix"] if tried else None
    down_since, wait = None, circuit.closed_for if circuit else 0.0
    if circuit and circuit.down_for is not None:
        code = code or circuit.problem
        down_since, wait = limiter.now() - circuit.down_for, circuit.probe_in
    return SeenEndpoint(endpoint, len(replies), len(failures), code, last_at, down_since, wait)


def database() -> SeenDatabase:
    """The database's type, version and size."""
    if connection.vendor == "sqlite":
        path = Path(str(connection.settings_dict["NAME"]))
        return SeenDatabase(
            "SQLite", _one("SELECT sqlite_version()"), _size(path), _size(Path(f"{path}-wal"))
        )
    size = int(_one("SELECT pg_database_size(current_database())"))
    return SeenDatabase("PostgreSQL", _one("SHOW server_version"), size, None)


def _one(query: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return str(cursor.fetchone()[0])


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def disk() -> SeenDisk:
    """The disk under DATA_DIR."""
    usage = shutil.disk_usage(settings.DATA_DIR)
    return SeenDisk(settings.DATA_DIR, usage.free, usage.total)


def versions() -> Iterator[tuple[str, str]]:
    """(name, version) of the installed software."""
    yield "Python", platform.python_version()
    for name in PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue
    yield "Linux", platform.release()
