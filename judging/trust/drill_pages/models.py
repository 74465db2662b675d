"""The fire drills that were begun from a page."""

from __future__ import annotations

from django.db import models

from datasets.models import Version
from evalsite.accounts.models import Project, User
from judging.metrics.models import MetricVersion
from judging.records.models import Run


class Drill(models.Model):
    """A drill: what it plants in which answers, its run once it is prepared, and its document once that has ended. It
    keeps the document whatever happens to its run and data set."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="drills")
    metric_version = models.ForeignKey(MetricVersion, on_delete=models.PROTECT, related_name="drills")
    version = models.ForeignKey(
        Version, on_delete=models.SET_NULL, null=True, related_name="+", help_text="the answers it draws from"
    )
    dataset_name = models.CharField(max_length=200)
    dataset_version = models.PositiveIntegerField()
    answers_in = models.ForeignKey(
        Run,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text="whose answers; null: uploaded ones",
    )
    model = models.TextField(blank=True, default="", help_text="whose answers; '': of all")
    rows = models.PositiveIntegerField(help_text="at most so many")
    seed = models.BigIntegerField(default=0)
    run = models.OneToOneField(Run, on_delete=models.SET_NULL, null=True, related_name="drill")
    document = models.JSONField(default=dict, help_text="as `drill --json`; empty until the run has finished")
    revision = models.PositiveIntegerField(null=True, help_text="of the run, when the document was computed")
    problem = models.TextField(blank=True, default="", help_text="why it could not be prepared")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["project", "-id"], name="drill_newest")]

    @property
    def flagged(self) -> list[str]:
        """The names of its flags, once it has finished."""
        return list(self.document.get("flagged", ()))
