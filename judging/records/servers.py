"""Which servers answered for a run's judges: the model name, fingerprint and server version of their replies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

from django.db.models import Count

from judging.records import json_text
from judging.records.models import JudgeReply, Run, RunMetric

LOOKED_BACK = 10
"""Earlier runs of a metric among which one with known servers is looked for."""


class ServerSeen(NamedTuple):
    """A server as it named itself to the metric's judge with this number; '' for what it did not say."""

    judge: int
    model: str
    fingerprint: str
    server: str


def servers_counted(run_metric: RunMetric) -> list[tuple[ServerSeen, int]]:
    """Each server with its number of replies, reused ones left out, most first; reads the replies of the whole run."""
    replies = JudgeReply.objects.filter(
        judgement__run=run_metric.run_id, judgement__run_metric=run_metric, copy_of=None
    )
    counts: Counter[ServerSeen] = Counter()
    for judge, extra, count in (
        replies.exclude(extra="").values_list("judge", "extra").annotate(n=Count("pk"))
    ):
        said = json_text.loads(extra) or {}
        names = (str(said.get(name) or "") for name in ("model", "fingerprint", "server"))
        counts[ServerSeen(judge, *names)] += count
    return counts.most_common()


def servers_of(run_metric: RunMetric) -> set[ServerSeen]:
    """The servers as stored when the run had ended; none before, nor those that say nothing of themselves."""
    return {ServerSeen(*server[:4]) for server in run_metric.servers or () if any(server[1:4])}


class ServerChange(NamedTuple):
    """A metric whose judge's server said something else in an earlier run of it."""

    metric: str
    before: Run
    after: Run
    then: str
    now: str


def server_changes(run: Run) -> list[ServerChange]:
    """Of each metric, against the newest earlier run of it whose servers are known."""
    changes = []
    for run_metric in sorted(run.metrics.all(), key=lambda each: each.number):
        version = run_metric.metric_version
        if version is None or run_metric.servers is None:
            continue
        earlier = RunMetric.objects.filter(
            metric_version__metric=version.metric_id, run__lt=run.pk, run__deleted_at=None
        ).filter(servers__isnull=False)
        newest_first = earlier.select_related("run").order_by("-run")[:LOOKED_BACK]
        before = next((each for each in newest_first if servers_of(each)), None)
        if before is not None and (change := server_change(before, run_metric)):
            changes.append(change)
    return changes


def changes_among(runs: Collection[int]) -> list[ServerChange]:
    """The changes from each of these runs to the next one with a metric of the same name, oldest first."""
    known = RunMetric.objects.filter(run__in=runs).filter(servers__isnull=False)
    newest: dict[str, RunMetric] = {}
    changes = []
    for run_metric in known.select_related("run").order_by("run", "number"):
        before = newest.get(run_metric.name)
        if before is not None and (change := server_change(before, run_metric)):
            changes.append(change)
        if servers_of(run_metric):
            newest[run_metric.name] = run_metric
    return changes


def server_change(before: RunMetric, after: RunMetric) -> ServerChange | None:
    """The change between two runs of a metric; None if the same servers answered, or those of one are not known."""
    then, now = servers_of(before), servers_of(after)
    if not then or not now or then == now:
        return None
    return ServerChange(
        after.name, before.run, after.run, _named(then - now or then), _named(now - then or now)
    )


def _named(servers: Iterable[ServerSeen]) -> str:
    return ", ".join(" · ".join(filter(None, server[1:])) for server in sorted(servers)) or "–"
