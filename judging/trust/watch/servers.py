"""Servers of judges after a run has ended: stored with the run, and compared with those of the licence's test."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from judging.records.definitions import definition_now
from judging.records.models import Run, RunMetric
from judging.records.servers import servers_counted, servers_of
from judging.trust.models import Cause, Licence, LicenceState
from judging.trust.selectors import licence_in_force, licence_state
from judging.trust.services import fingerprints_suspend, licence_suspend

RECENT = timedelta(days=1)
AT_ONCE = 20
"""Runs that ended more than a day ago are not read any more, and no more than so many at a time."""


def servers_store() -> None:
    """Store the servers of runs that have ended, and suspend licences of judges whose server has a new fingerprint;
    called by the reconciler."""
    ended = Run.objects.by_workers().with_verdicts().filter(finished_at__gte=timezone.now() - RECENT)
    waiting = RunMetric.objects.filter(servers__isnull=True, run__in=ended).order_by("pk")
    for run_metric in waiting.select_related("run__project")[:AT_ONCE]:
        servers = [[*server, count] for server, count in servers_counted(run_metric)]
        with transaction.atomic():
            if RunMetric.objects.filter(pk=run_metric.pk, servers__isnull=True).update(servers=servers):
                run_metric.servers = servers
                fingerprints_compare(run_metric)


def fingerprints_compare(run_metric: RunMetric) -> None:
    """Suspend the licence of a judge whose server has a fingerprint unlike all those of the test, unless the project
    has turned that off. The fingerprint is known from then on, so that lifting the suspension accepts it."""
    fingerprints = {server.fingerprint for server in servers_of(run_metric)} - {""}
    run = run_metric.run
    licence = licence_in_force(definition_now(run_metric), run.project) if fingerprints else None
    if licence is None or run.finished_at is None or run.finished_at < licence.opened_at:
        return
    seen_before = set(known_fingerprints(licence))
    if not seen_before or not fingerprints - seen_before:
        return
    Licence.objects.filter(pk=licence.pk).update(fingerprints=sorted(seen_before | fingerprints))
    if fingerprints_suspend(run.project) and licence_state(licence) == LicenceState.VALID:
        licence_suspend(licence=licence, cause=Cause.FINGERPRINT)


def known_fingerprints(licence: Licence) -> list[str]:
    """Those of the run behind the licence, and those accepted since. None where servers send none."""
    if licence.fingerprints is not None:
        return list(licence.fingerprints)
    run = licence.opening.run if licence.opening else None
    tested = run.metrics.filter(metric_version=licence.metric_version).first() if run else None
    fingerprints = {server.fingerprint for server, _count in servers_counted(tested)} if tested else set()
    return sorted(fingerprints - {""})
