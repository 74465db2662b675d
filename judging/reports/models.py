"""Tables for stored parts of reports and shared links."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from datasets.models import Candidate
from evalsite.accounts.models import User
from judging.runs.models import Run, RunMetric


class KeptFigures(models.Model):
    """A large run's figures, computed by a worker; pages show them until newer ones are stored.

    The layout is 0 if none have been computed yet.
    """

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True, related_name="kept_figures")
    wanted = models.BooleanField(default=False, help_text="whether a page waits for new figures")
    layout = models.PositiveSmallIntegerField(
        default=0, help_text="format version of `packed`; figures of other versions are computed again"
    )
    revision = models.PositiveIntegerField(default=0, help_text="the run's revision when they were computed")
    made_at = models.DateTimeField(null=True)
    took = models.FloatField(default=0, help_text="seconds")
    packed = models.BinaryField(default=b"", help_text="MessagePack: see figures.py")


class KeptMeans(models.Model):
    """Each item's mean for one metric and candidate, from the judgements behind the stored figures."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, db_index=False, related_name="kept_means")
    run_metric = models.ForeignKey(RunMetric, on_delete=models.CASCADE, db_index=False, related_name="+")
    candidate = models.ForeignKey(Candidate, on_delete=models.CASCADE, db_index=False, related_name="+")
    packed = models.BinaryField(help_text="see pairing.py: ItemMeans")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "run_metric", "candidate"], name="kept_means_once")
        ]


class KeptPart(models.Model):
    """A part of a large run's report that is shown on request; see kept_parts.py."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, db_index=False, related_name="kept_parts")
    digest = models.CharField(max_length=32, help_text="hash of its name")
    name = models.TextField()
    wanted = models.BooleanField(default=False, help_text="whether a page waits for it")
    layout = models.PositiveSmallIntegerField(
        default=0, help_text="format version of `packed`; figures of other versions are computed again"
    )
    revision = models.PositiveIntegerField(default=0, help_text="the run's revision when it was computed")
    packed = models.BinaryField(default=b"", help_text="MessagePack")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "digest"], name="kept_part_once")]


class ReportLink(models.Model):
    """A link that shows a run's report, without its items, to anyone; see sharing.py."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="report_links")
    note = models.CharField(max_length=200, blank=True, default="")
    token_hash = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)

    @property
    def open(self) -> bool:
        return self.revoked_at is None and self.expires_at > timezone.now()


class RunOutcome(models.Model):
    """A run's result for lists of runs: each candidate's mean; see outcomes.py."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True, related_name="outcome")
    revision = models.PositiveIntegerField(help_text="the run's revision when it was computed")
    metrics = models.JSONField(default=list, help_text="see outcomes.py: MetricOutcome")
