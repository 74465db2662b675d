"""Access to metrics with permission checks. Views must load metrics through here."""

from __future__ import annotations

from django.http import Http404, HttpRequest

from evalsite import access
from evalsite.access import May
from judging.metrics.models import Metric, MetricVersion


def get_metric(request: HttpRequest, slug: str, metric_id: int) -> Metric:
    """Return a metric of the project `slug`. Raises Http404 or PermissionDenied."""
    project = access.get_project(request, slug, May.METRICS)
    metric = Metric.objects.filter(project=project, pk=metric_id).first()
    if metric is None:
        raise Http404
    return metric


def get_metric_version(request: HttpRequest, slug: str, metric_id: int, number: int) -> MetricVersion:
    """Return version `number` of a metric of the project `slug`. Raises Http404 or PermissionDenied."""
    metric = get_metric(request, slug, metric_id)
    version = MetricVersion.objects.filter(metric=metric, number=number).select_related("created_by").first()
    if version is None:
        raise Http404
    version.metric = metric
    return version
