"""Metrics and their versions, and stored lint results of templates."""

from __future__ import annotations

from django.db import models

from datasets.models import Version
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


class TemplateLint(models.Model):
    """The lint result of a template or rule program with a preprocess script over all rows of a version, computed once.
    The texts are stored for the worker until the lint is finished."""

    class Kind(models.TextChoices):
        TEMPLATE = "template"
        RULES = "rules"

    version = models.ForeignKey(Version, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.TEMPLATE)
    template_hash = models.CharField(max_length=64, help_text="SHA-256 of the kind's text")
    preprocess_hash = models.CharField(max_length=64)
    template = models.TextField(blank=True, default="")
    preprocess = models.TextField(blank=True, default="")
    result = models.TextField(blank=True, default="", help_text="JSON of a Lint; empty: not done yet")
    problem = models.CharField(
        max_length=40, blank=True, default="", help_text="code of the reason why it failed"
    )
    owner = models.CharField(
        max_length=120, blank=True, default="", help_text="the process that is working on it"
    )
    subjects_done = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["version", "template_hash", "preprocess_hash"], name="template_lint_once"
            )
        ]
