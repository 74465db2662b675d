"""Versions of a human evaluation's guideline, the repeats that measure a new one, and when raters read it."""

from __future__ import annotations

from django.db import models

from evalsite import clock
from evalsite.accounts.models import User
from judging.people.models import Evaluation, EvaluationRater, Item


class GuidelineVersion(models.Model):
    """The texts of a version. The first is stored with the first change; an evaluation without any has version 1."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="guideline_versions")
    number = models.PositiveSmallIntegerField(help_text="from 1")
    guideline = models.TextField(blank=True, default="", help_text="Markdown, for all criteria")
    criteria = models.JSONField(
        default=dict, help_text="{criterion number, as a text: its definition, Markdown}"
    )
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "number"], name="guideline_version_once")
        ]


class VersionRepeat(models.Model):
    """A hidden repeat for one rater under a new version. It counts in that version's shift and nowhere else."""

    version = models.ForeignKey(GuidelineVersion, on_delete=models.CASCADE, related_name="repeats")
    rater = models.ForeignKey(EvaluationRater, on_delete=models.CASCADE, related_name="+")
    item = models.OneToOneField(Item, on_delete=models.CASCADE, related_name="version_repeat")


class GuidelineReading(models.Model):
    """When a rater's page opened a version of the guideline by itself, and when they closed it with “Understood”."""

    rater = models.ForeignKey(EvaluationRater, on_delete=models.CASCADE, related_name="readings")
    version = models.PositiveSmallIntegerField()
    opened_at = models.DateTimeField(default=clock.now)
    understood_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rater", "version"], name="guideline_reading_once")]
