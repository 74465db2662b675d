"""Watches of judges, and their sittings: those of the baseline and the checks."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from datasets.models import Version
from evalsite.accounts.models import User
from judging.records.models import Run
from judging.trust.models import Licence


class WatchState(models.TextChoices):
    LEARNING = "learning", _("learning")
    WATCHING = "watching", _("watching")
    PAUSED = "paused", _("paused")
    ALARM = "alarm", _("alarm")
    ENDED = "ended", _("ended")


class Watch(models.Model):
    """The sentinels of a licensed judge, and when they are judged again.

    `sentinels`: [[row, candidate, response, other, other_response, judge, people]] of the licence, in the order of the
    lines of `version`, a data set of the watch's own. Sittings belong to a `period`; a new one, with a new baseline,
    begins when a suspension of the licence is lifted.
    """

    licence = models.ForeignKey(Licence, on_delete=models.CASCADE, related_name="watches")
    state = models.CharField(max_length=8, choices=WatchState.choices, default=WatchState.LEARNING)
    problem = models.CharField(
        max_length=40, blank=True, default="", help_text="code of the reason why it is paused or ended"
    )
    seed = models.BigIntegerField()
    sentinels = models.JSONField()
    version = models.ForeignKey(
        Version, on_delete=models.SET_NULL, null=True, related_name="+", help_text="null: not stored yet"
    )
    definition = models.TextField(help_text="JSON of the MetricDefinition that is licensed")
    sitting_calls = models.PositiveIntegerField(help_text="calls of one sitting, if all succeed")
    schedule = models.CharField(
        max_length=200, blank=True, default="", help_text="five cron fields; '': after runs of the metric"
    )
    due_at = models.DateTimeField(null=True, help_text="of the next check by schedule")
    seen_until = models.DateTimeField(
        null=True, help_text="when the last run of the metric ended that a check was made for"
    )
    ceiling_calls = models.PositiveIntegerField(help_text="in a month")
    ceiling_money = models.BigIntegerField(null=True, help_text="in a month, in millionths; null: none")
    sight = models.JSONField(null=True, help_text="of watch.results.sight_of; null: still learning")
    period = models.PositiveIntegerField(default=1)
    after_suspension = models.BigIntegerField(
        default=0, help_text="id of the licence's newest suspension before the period; 0: none"
    )
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField()
    ended_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["licence"], condition=Q(ended_at=None), name="watch_of_licence_once"
            )
        ]

    @property
    def active(self) -> bool:
        """Whether it has not ended."""
        return self.ended_at is None


class Sitting(models.Model):
    """All sentinels judged once: for the baseline, or as a check.

    `verdicts`: for each sentinel a value, {"none": state} where the judge gave none, null where it did not answer; null
    until the run has ended. `number`: from 1 within the period, of sittings of its kind that count; null for others.
    """

    watch = models.ForeignKey(Watch, on_delete=models.CASCADE, related_name="sittings")
    period = models.PositiveIntegerField()
    baseline = models.BooleanField()
    run = models.OneToOneField(Run, on_delete=models.SET_NULL, null=True, related_name="watch_sitting")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    number = models.PositiveIntegerField(null=True)
    problem = models.CharField(
        max_length=40, blank=True, default="", help_text="code of the reason why it does not count"
    )
    calls = models.PositiveIntegerField(default=0)
    money = models.BigIntegerField(default=0, help_text="millionths of the currency of its run")
    currency = models.CharField(max_length=8, blank=True, default="")
    verdicts = models.JSONField(null=True)
    result = models.JSONField(null=True, help_text="of a check: as in watch.results.stored_result")
    alarm = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["watch"], condition=Q(ended_at=None), name="watch_sitting_one_at_a_time"
            )
        ]
        indexes = [models.Index(fields=["watch", "started_at"], name="watch_sitting_newest")]
