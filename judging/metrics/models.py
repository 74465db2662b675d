"""Metrics and their versions."""

from __future__ import annotations

from django.db import models

from evalsite.accounts.models import Project, User


class Metric(models.Model):
    """A named metric; its definitions are in its versions."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="metrics")
    name = models.CharField(max_length=200)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="metric_name_once")]


class MetricVersion(models.Model):
    """An immutable version of a metric. `definition`: JSON text of a MetricDefinition."""

    metric = models.ForeignKey(Metric, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    definition = models.TextField()
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["metric", "number"], name="metric_version_once")]
