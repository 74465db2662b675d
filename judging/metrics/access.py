"""Access to metrics with permission checks. Views must load metrics through here."""

from __future__ import annotations

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from evalsite import access
from evalsite.access import May
from judging.metrics.models import Metric, MetricVersion


def get_metric(request: HttpRequest, slug: str, metric_id: int) -> Metric:
    """Return a metric of the project `slug`. Raises Http404 or PermissionDenied."""
    project = access.get_project(request, slug, May.METRICS)
    return get_object_or_404(Metric, project=project, pk=metric_id)


def get_metric_version(request: HttpRequest, slug: str, metric_id: int, number: int) -> MetricVersion:
    """Return version `number` of a metric of the project `slug`. Raises Http404 or PermissionDenied."""
    metric = get_metric(request, slug, metric_id)
    versions = MetricVersion.objects.select_related("created_by")
    version = get_object_or_404(versions, metric=metric, number=number)
    version.metric = metric
    return version
