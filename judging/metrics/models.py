"""Metrics and their versions, and what drafts by models have in common."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

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


class GalleryEntry(models.Model):
    """A metric in its project's own gallery, as it was when it was saved there."""

    metric = models.OneToOneField(Metric, on_delete=models.CASCADE, related_name="gallery_entry")
    version = models.ForeignKey(MetricVersion, on_delete=models.CASCADE, related_name="+")
    sentence = models.CharField(max_length=200, blank=True, default="", help_text="what it is for")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)


class DraftState(models.TextChoices):
    DRAFT = "draft", _("draft")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")


class ModelDraft(models.Model):
    """A model's reply to a request for a draft. All stay listed, with their calls, also those that failed."""

    state = models.CharField(max_length=6, choices=DraftState.choices)
    model = models.CharField(max_length=300, help_text="name of the endpoint that was called")
    reply = models.TextField(blank=True, default="")
    problem = models.CharField(max_length=40, blank=True, default="")
    problem_detail = models.TextField(blank=True, default="")
    calls = models.PositiveSmallIntegerField(default=0)
    prompt_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    cost = models.FloatField(null=True, help_text="in `currency`; null: the endpoint has no prices")
    currency = models.CharField(max_length=8, blank=True, default="")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True

    def conclude(self, has_parts: bool, otherwise: str) -> None:
        """A reply with something to take is a draft; one without has failed, for the reason `otherwise`."""
        self.state = DraftState.DRAFT if has_parts else DraftState.FAILED
        self.problem = "" if has_parts else otherwise
