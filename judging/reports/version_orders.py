"""The order of candidates under other versions of a metric, from stored results of runs over the same data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judging.records.models import NOT_ENDED, Run, RunMetric
from judging.reports.outcomes import stored_outcomes

VersionMeans = dict[str, list[tuple[int, dict[str, float]]]]
"""{metric: (number of another version, {candidate of this run: its mean there})}."""


def with_version_orders(
    rankings: Sequence[Mapping[str, Any]], versions: Mapping[str, Sequence[tuple[int, Mapping[str, float]]]]
) -> list[dict[str, Any]]:
    """The document's rankings, with the orders under other versions of the metric after those of judges and repeats:
    `by` is `v3`, `version` the number. `versions`: as `means_under_versions` returns them."""
    return [
        {
            **ranking,
            "orders": [
                *ranking["orders"],
                *(
                    {
                        "by": f"v{number}",
                        "version": number,
                        "names": sorted(means, key=lambda n: (-means[n], n)),
                    }
                    for number, means in versions.get(ranking["metric"], ())
                ),
            ],
        }
        for ranking in rankings
    ]


def means_under_versions(run: Run) -> VersionMeans:
    """The candidates' means, or win rates, under other versions of the run's metrics, each in its newest run, where
    they rank two at least. Runs that people still rate blind are left out."""
    own = {
        each.metric_version.metric_id: each
        for each in run.metrics.exclude(metric_version=None).select_related("metric_version")
        if each.metric_version is not None
    }
    others = RunMetric.objects.filter(
        metric_version__metric__in=own,
        run__version=run.version_id,
        run__project=run.project_id,
        run__archived_at=None,
        run__deleted_at=None,
    )
    others = others.exclude(metric_version__in=[each.metric_version_id for each in own.values()])
    others = others.exclude(run__evaluations__run__state__in=NOT_ENDED)
    newest: dict[int, RunMetric] = {}
    for each in others.select_related("metric_version").order_by("-run_id"):
        newest.setdefault(each.metric_version_id or 0, each)
    stored = stored_outcomes(each.run_id for each in newest.values())
    names = set(run.run_candidates.values_list("candidate__name", flat=True))
    versions: VersionMeans = {}
    for each in sorted(newest.values(), key=lambda used: used.metric_version_id or 0):
        outcome = next(
            (outcome for outcome in stored.get(each.run_id, ()) if outcome.metric == each.name), None
        )
        if outcome is None or each.metric_version is None:
            continue
        means = {
            entry.name: entry.mean
            for entry in outcome.candidates
            if entry.mean is not None and entry.name in names
        }
        if len(means) > 1:
            name = own[each.metric_version.metric_id].name
            versions.setdefault(name, []).append((each.metric_version.number, means))
    return versions
