"""Metrics in Prometheus's text format, version 0.0.4.

Written by hand: all values come from database queries at request time, so the client library's per-process registry of
counters would be unused.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Sum
from django.utils import timezone

from evalsite.tasks import workers
from judging import sandboxes
from judging.endpoints.models import EndpointLoad
from judging.records.models import Run
from judging.status import selectors

Sample = tuple[str, dict[str, str], float]
SUMS = {
    "judgements_total": ("scored", "no_score", "unparsed", "unsettled", "errors"),
    "calls_total": ("calls", "calls_failed", "calls_again"),
    "tokens_total": ("prompt_tokens", "completion_tokens"),
}
HELP = {
    "worker_up": ("gauge", "Living worker processes of a queue."),
    "queue_waiting": ("gauge", "Tasks that no worker has taken up."),
    "queue_oldest_seconds": ("gauge", "For how long the oldest of them has waited."),
    "queue_obstructed": (
        "gauge",
        "1 if waiting work can't be taken up: no worker, no broker, or a full disk.",
    ),
    "runs": ("gauge", "Runs that have not ended, by state."),
    "runs_stopped_by_budget": ("gauge", "Those of the paused ones that have spent what they may."),
    "endpoints_down": ("gauge", "Endpoints that nobody asks because they do not answer."),
    "judgements_total": ("counter", "Judgements made, by state."),
    "calls_total": (
        "counter",
        "Calls to judges: all, failed ones, made again after a worker was lost.",
    ),
    "tokens_total": ("counter", "Tokens read and written by judges."),
    "database_bytes": ("gauge", "Size of the database."),
    "disk_free_bytes": ("gauge", "Free space on the disk that holds DATA_DIR."),
    "sandbox_level": ("gauge", "How well scripts are locked up, 0 to 3; -1 if they can't run."),
}


def exposition() -> str:
    """The complete text, each family with its HELP and TYPE."""
    lines: list[str] = []
    current = ""
    for name, labels, value in samples():
        if name != current:
            kind, help_text = HELP[name]
            lines += [f"# HELP evalsite_{name} {help_text}", f"# TYPE evalsite_{name} {kind}"]
            current = name
        shown = ",".join(f'{label}="{text}"' for label, text in labels.items())
        lines.append(f"evalsite_{name}{{{shown}}} {value:.17g}" if shown else f"evalsite_{name} {value:.17g}")
    return "\n".join(lines) + "\n"


def samples() -> Iterator[Sample]:
    """(name, labels, value), grouped by family."""
    living = [worker.queue for worker in selectors.workers() if worker.alive]
    for name in workers.QUEUES:
        yield "worker_up", {"queue": name}, living.count(name)
    queues = selectors.queues()
    for queue in queues:
        yield "queue_waiting", {"queue": queue.name}, queue.waiting
    for queue in queues:
        waited = (timezone.now() - queue.oldest).total_seconds() if queue.oldest else 0.0
        yield "queue_oldest_seconds", {"queue": queue.name}, waited
    for queue in queues:
        yield "queue_obstructed", {"queue": queue.name}, bool(queue.obstacle)
    for state, count in selectors.runs_under_way().items():
        yield "runs", {"state": state}, count
    yield "runs_stopped_by_budget", {}, selectors.stopped_by_budget()
    yield "endpoints_down", {}, EndpointLoad.objects.filter(down_since__gt=0).count()
    yield from _sums()
    yield "database_bytes", {}, selectors.database().size
    yield "disk_free_bytes", {}, selectors.disk().free
    level = sandboxes.status().level
    yield "sandbox_level", {}, -1 if level is None else level


def _sums() -> Iterator[Sample]:
    fields = [field for family in SUMS.values() for field in family]
    sums = Run.objects.aggregate(**{field: Sum(field) for field in fields})
    for name, family in SUMS.items():
        for field in family:
            yield name, {"kind": field}, sums[field] or 0
