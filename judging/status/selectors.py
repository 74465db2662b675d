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

from evalsite import __version__
from evalsite.models import WorkerProcess
from evalsite.tasks.workers import QUEUES, backend, is_alive, obstacle
from judging.endpoints import limiter
from judging.endpoints.limiter import Status
from judging.endpoints.models import Endpoint, EndpointLoad
from judging.records.models import NOT_ENDED, WITHOUT_WORKERS, Generation, JudgeReply, Run, RunState

REPLIES_LOOKED_AT = 1000
LOW_DISK = 0.1  # share of a disk that must stay free
PACKAGES = {
    "django": "Django",
    "aiohttp": "aiohttp",
    "celery": "Celery",
    "psycopg": "psycopg",
    "boto3": "boto3",
}


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
    """The number of an endpoint's recent replies and its availability. `last_at` and `down_since` are Unix seconds.

    `down_since` is None while it answers; `wait`: seconds that the server asked to wait.
    """

    endpoint: Endpoint
    replies: int
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
    return [_worker(process) for process in WorkerProcess.objects.order_by("queue", "started_at")]


def _worker(process: WorkerProcess) -> SeenWorker:
    host, pid, _ = process.owner.rsplit(":", 2)
    alive = is_alive(process.owner)
    return SeenWorker(
        process.queue, host, int(pid), alive, process.error, process.started_at, process.seen_at
    )


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
    replies: dict[int, list[tuple[str, str]]] = {}
    for said in (JudgeReply, Generation):  # replies of judge models and of models under test
        last = said.objects.order_by("-pk").values_list("endpoint_id", "error", "calls")[:REPLIES_LOOKED_AT]
        for endpoint, error, calls in last:
            if endpoint is not None:
                replies.setdefault(endpoint, []).append((error, calls))
    down = EndpointLoad.objects.filter(down_since__gt=0, key__startswith=limiter.KEY).values_list(
        "key", flat=True
    )
    wanted = {*replies, *(int(key.removeprefix(limiter.KEY)) for key in down)}
    by_id = Endpoint.objects.select_related("project").in_bulk(wanted)
    states = limiter.read_status(f"{limiter.KEY}{pk}" for pk in by_id) if by_id else {}
    seen = [
        _endpoint(endpoint, replies.get(pk, []), states.get(f"{limiter.KEY}{pk}"))
        for pk, endpoint in by_id.items()
    ]
    return sorted(seen, key=lambda entry: (entry.down_since is None, -entry.failed, entry.endpoint.name))


def _endpoint(endpoint: Endpoint, replies: list[tuple[str, str]], status: Status | None) -> SeenEndpoint:
    failures = [(error, calls) for error, calls in replies if error]
    code, calls = failures[0] if failures else ("", "")
    tried = msgspec.json.decode(calls) if calls else []
    last_at = tried[-1]["started_unix"] if tried else None
    status, down_since = status or Status(), None
    if status.down_for is not None:
        code = code or status.problem.code
        down_since = limiter.now() - status.down_for
    return SeenEndpoint(endpoint, len(replies), len(failures), code, last_at, down_since, status.closed_for)


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
    yield "evalsite", __version__
    yield "Python", platform.python_version()
    for name, title in PACKAGES.items():
        try:
            yield title, version(name)
        except PackageNotFoundError:
            continue
    yield "Linux", platform.release()
