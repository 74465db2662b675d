"""A project's judges: each version of a metric with a judge model, its licence, and the runs that rest on it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalsite.accounts.models import Project
from judging.core.licensing import definition_hash
from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.means import Rate
from judging.metrics.models import Metric, MetricVersion
from judging.records.models import Run, RunMetric
from judging.trust.drill_pages.models import Drill
from judging.trust.drill_pages.selectors import newest_drills
from judging.trust.models import Licence, LicenceState
from judging.trust.selectors import licence_state

PER_PAGE = 50
RUNS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Judge:
    """A version of a metric with judge models, and their names. `licence`: the newest of it, or of equal content; with
    its `state`. `runs`: those that used it, newest first. `drill`: the newest that finished."""

    version: MetricVersion
    names: Sequence[str]
    runs: Sequence[Run]
    licence: Licence | None = None
    state: LicenceState | None = None
    drill: Drill | None = None

    @property
    def watch(self) -> Any:
        """The watch of its licence that has not ended; None without one."""
        watches = self.licence.watches.all() if self.licence else ()
        return next((watch for watch in watches if watch.active), None)

    @property
    def agreement(self) -> Rate | None:
        """With people, on the licence's test."""
        return Rate(**self.licence.figures["agreement"]) if self.licence else None

    @property
    def further_runs(self) -> int:
        """How many runs a list does not name."""
        return max(0, len(self.runs) - RUNS_SHOWN)

    @property
    def use(self) -> str:
        """What it may be used for now; '' for nothing."""
        valid = self.licence is not None and self.state == LicenceState.VALID
        return self.licence.use if self.licence and valid else ""


def judges_of(project: Project, after: str = "", limit: int = PER_PAGE) -> tuple[list[Judge], str]:
    """The judges of `limit` metrics that are not archived, by name, newest version first; and the name of the last
    metric, '' on the last page."""
    metrics = Metric.objects.filter(project=project, archived_at=None, name__gt=after).order_by("name")
    page = list(metrics[: limit + 1])
    versions = MetricVersion.objects.filter(metric__in=page[:limit]).select_related("metric")
    defined = [
        (version, definition)
        for version in versions.order_by("metric__name", "-number")
        if (definition := MetricDefinition.from_json(version.definition)).judges
    ]
    used = _used([version.pk for version, _definition in defined])
    licences = _Licences.of(project)
    judges = [
        _judge(version, definition, used.get(version.pk, []), licences) for version, definition in defined
    ]
    drills = newest_drills(version.pk for version, _definition in defined)
    judges = [replace(judge, drill=drills.get(judge.version.pk)) for judge in judges]
    return judges, page[limit - 1].name if len(page) > limit else ""


def _used(versions: Sequence[int]) -> dict[int, list[RunMetric]]:
    """{version: its frozen copies in runs, newest first}."""
    copies = RunMetric.objects.filter(metric_version__in=versions, run__deleted_at=None)
    by_version: dict[int, list[RunMetric]] = defaultdict(list)
    for copy in copies.select_related("run").order_by("-run"):
        by_version[copy.metric_version_id or 0].append(copy)
    return by_version


@dataclass(frozen=True, slots=True)
class _Licences:
    """A project's newest licences, by version and by the hash of the definition."""

    by_version: dict[int, Licence]
    by_hash: dict[str, Licence]

    @classmethod
    def of(cls, project: Project) -> _Licences:
        licences = Licence.objects.filter(metric_version__metric__project=project)
        oldest_first = list(
            licences.select_related("opening__test__split")
            .prefetch_related("watches")
            .order_by("opened_at", "pk")
        )
        return cls(
            {licence.metric_version_id: licence for licence in oldest_first},
            {licence.definition_hash: licence for licence in oldest_first},
        )


def _judge(
    version: MetricVersion, definition: MetricDefinition, used: Sequence[RunMetric], licences: _Licences
) -> Judge:
    names, runs = [judge.name for judge in definition.judges], [copy.run for copy in used]
    frozen = MetricDefinition.from_json(used[0].definition) if used else None
    licence = licences.by_hash.get(definition_hash(frozen)) if frozen else None
    licence = licence or licences.by_version.get(version.pk)
    if licence is None:
        return Judge(version, names, runs)
    return Judge(version, names, runs, licence, licence_state(licence, frozen))
