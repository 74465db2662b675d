"""Stored comparisons of two runs."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from judging.runs.models import Run


class Comparison(models.Model):
    """Why the scores of two runs differ. Its cells belong to the stored revisions of the runs, and remain while
    newer ones are computed."""

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting to be compared")
        WORKING = "working", _("being compared")
        READY = "ready", _("ready")
        FAILED = "failed", _("could not be compared")

    before = models.ForeignKey(Run, on_delete=models.CASCADE, db_index=False, related_name="+")
    after = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    state = models.CharField(max_length=7, choices=State.choices, default=State.WAITING)
    owner = models.CharField(
        max_length=120, blank=True, default="", help_text="the process that is working on it"
    )
    tries = models.PositiveSmallIntegerField(
        default=0, help_text="times it was started since it was requested"
    )
    share = models.FloatField(default=0, help_text="completed share of the work, from 0 to 1")
    layout = models.PositiveSmallIntegerField(
        default=0, help_text="format version of the stored cells; 0: none yet"
    )
    before_revision = models.PositiveIntegerField(default=0)
    after_revision = models.PositiveIntegerField(default=0)
    made_at = models.DateTimeField(null=True)
    took = models.FloatField(default=0, help_text="seconds")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["before", "after"], name="runs_compared_once")]
        indexes = [
            models.Index(
                fields=["state"], condition=Q(state__in=("waiting", "working")), name="comparison_open"
            )
        ]

    @property
    def under_way(self) -> bool:
        return self.state in (self.State.WAITING, self.State.WORKING)

    @property
    def percent(self) -> int:
        return int(100 * self.share)


class ComparedCell(models.Model):
    """One candidate under one metric, in the later run's order. Both binary fields are MessagePack, see kept.py."""

    comparison = models.ForeignKey(Comparison, on_delete=models.CASCADE, db_index=False, related_name="cells")
    number = models.PositiveIntegerField()
    change = models.BinaryField()
    items = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["comparison", "number"], name="compared_cell_once")]
