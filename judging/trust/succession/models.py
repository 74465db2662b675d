"""Successions: a new judge beside the old one on the same stored answers."""

from __future__ import annotations

from django.db import models

from evalsite.accounts.models import Project, User
from judging.metrics.models import MetricVersion
from judging.records.models import Run, RunMetric


class Succession(models.Model):
    """A new judge that judges the answers of a finished run. It keeps its document whatever happens to both runs."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="successions")
    metric_version = models.ForeignKey(MetricVersion, on_delete=models.PROTECT, related_name="successions")
    old = models.ForeignKey(
        RunMetric,
        on_delete=models.SET_NULL,
        null=True,
        related_name="successions",
        help_text="the old verdicts",
    )
    run = models.OneToOneField(
        Run, on_delete=models.SET_NULL, null=True, related_name="succession", help_text="the new verdicts"
    )
    old_judge = models.TextField(help_text="model names of the old judges")
    new_judge = models.TextField()
    margin = models.FloatField(
        help_text="of the scale's width, or of a rate; of labels the share that may turn: 0…1"
    )
    document = models.JSONField(
        default=dict, help_text="of core.statistics.succession; empty until the run ended"
    )
    computed_from = models.JSONField(default=list, help_text="revisions of both runs, and the margin")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["project", "-id"], name="succession_newest")]

    @property
    def decision(self) -> str:
        """`together`, `apart` or `undecided`; '' until it is computed."""
        return str(self.document.get("decision", ""))
