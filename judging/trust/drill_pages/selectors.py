"""The drills of a project, and those of its judges."""

from __future__ import annotations

from collections.abc import Iterable

from evalsite.accounts.models import Project
from judging.core.metric_definition import MetricDefinition
from judging.metrics.models import MetricVersion
from judging.runs.selectors import metric_choices
from judging.trust.drill_pages.models import Drill

SHOWN = 50


def drills_of(project: Project) -> list[Drill]:
    """The newest drills of a project."""
    parts = ("metric_version__metric", "run", "created_by")
    drills = Drill.objects.filter(project=project).select_related(*parts)
    return list(drills.order_by("-pk")[:SHOWN])


def newest_drills(versions: Iterable[int]) -> dict[int, Drill]:
    """{version of a metric: its newest finished drill}."""
    finished = Drill.objects.filter(metric_version__in=list(versions)).exclude(document={})
    return {drill.metric_version_id: drill for drill in finished.order_by("pk")}


def drillable_versions(project: Project, also: int | None = None) -> list[MetricVersion]:
    """The newest versions of the metrics that ask a judge model, by name, and the version `also`."""
    versions = [choice.version for choice in metric_choices(project) if choice.definition.judges]
    offered = [version for version in versions if version is not None]
    if also is not None and also not in {version.pk for version in offered}:
        asked = MetricVersion.objects.filter(pk=also, metric__project=project).select_related("metric")
        offered += [each for each in asked if MetricDefinition.from_json(each.definition).judges]
    return offered
