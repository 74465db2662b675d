"""Queries for metrics and their versions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import OuterRef, QuerySet, Subquery

from evalsite.accounts.models import Project
from evalsite.hooks import Hook
from judging.core.metric_definition import MetricDefinition
from judging.endpoints.models import Endpoint
from judging.metrics.models import Metric, MetricVersion


@dataclass(frozen=True, slots=True)
class HistoryNote:
    """Something besides a version that happened to a metric, and the address of its page."""

    at: datetime
    text: str
    url: str


history_notes: Hook[Callable[[Metric], list[HistoryNote]]] = Hook("judging.metrics.selectors.history_notes")
"""What higher packages tell in a metric's history."""


@dataclass(frozen=True, slots=True)
class MetricLine:
    """A metric in the list, with its newest version and parsed definition."""

    metric: Metric
    version: MetricVersion
    definition: MetricDefinition
    judges: str


def metrics_of(project: Project, *, archived: bool = False) -> list[MetricLine]:
    """The project's metrics by name, each with its newest version."""
    metrics = Metric.objects.filter(project=project, archived_at__isnull=not archived).order_by("name")
    newest = newest_versions(list(metrics))
    names = endpoint_names(project.pk)
    return [_line(metric, newest[metric.pk], names) for metric in metrics if metric.pk in newest]


def endpoint_names(project: int) -> dict[int, str]:
    """The names of all the project's endpoints, by id."""
    return dict(Endpoint.objects.filter(project=project).values_list("pk", "name"))


def _line(metric: Metric, version: MetricVersion, names: dict[int, str]) -> MetricLine:
    definition = MetricDefinition.from_json(version.definition)
    judges = (names.get(judge.endpoint or 0) or judge.name or judge.model for judge in definition.judges)
    return MetricLine(metric, version, definition, ", ".join(judges))


def newest_versions(metrics: list[Metric]) -> dict[int, MetricVersion]:
    """The newest version of each metric, by the metric's id."""
    newest = MetricVersion.objects.filter(metric=OuterRef("metric")).order_by("-number").values("number")[:1]
    versions = MetricVersion.objects.filter(metric__in=metrics, number=Subquery(newest))
    return {version.metric_id: version for version in versions.select_related("created_by")}


def newest_version(metric: Metric) -> MetricVersion:
    """The newest version of a metric. Every metric has one, since services create it with its first version."""
    return MetricVersion.objects.filter(metric=metric).select_related("created_by").latest("number")


def versions_of(metric: Metric) -> QuerySet[MetricVersion]:
    """All versions of a metric, newest first."""
    return MetricVersion.objects.filter(metric=metric).select_related("created_by").order_by("-number")


def metrics_that_use(endpoint: Endpoint) -> list[MetricLine]:
    """Metrics whose newest version uses this endpoint, without archived ones."""
    lines = metrics_of(endpoint.project)
    return [line for line in lines if any(judge.endpoint == endpoint.pk for judge in line.definition.judges)]
