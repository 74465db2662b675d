"""Training and qualification: gold items that stand before a rater's real queue."""

from __future__ import annotations

from django.db import models

from evalsite import clock
from evalsite.accounts.models import User
from judging.people.models import Assignment, Evaluation, EvaluationRater, Item


class Qualification(models.Model):
    """How many gold items a new rater must rate first, and the share that must be right."""

    evaluation = models.OneToOneField(Evaluation, on_delete=models.CASCADE, related_name="qualification")
    items = models.PositiveSmallIntegerField()
    mark = models.FloatField(help_text="share of items that must be right, 0…1")


class TrainingItem(models.Model):
    """A gold item that each new rater gets first and whose answer is shown afterwards; it counts nowhere."""

    item = models.OneToOneField(Item, on_delete=models.CASCADE, related_name="training")


class QualificationTry(models.Model):
    """A rater's try at the qualification. Without `ended_at` it goes on; who fails waits for an organiser."""

    rater = models.ForeignKey(EvaluationRater, on_delete=models.CASCADE, related_name="tries")
    number = models.PositiveSmallIntegerField(help_text="from 1")
    items = models.PositiveSmallIntegerField()
    mark = models.FloatField()
    began_at = models.DateTimeField(default=clock.now)
    ended_at = models.DateTimeField(null=True)
    right = models.PositiveSmallIntegerField(default=0, help_text="items of which all known answers were hit")
    passed = models.BooleanField(default=False)
    let_in_at = models.DateTimeField(null=True, help_text="when an organiser let them in all the same")
    let_in_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rater", "number"], name="qualification_try_once")]


class EntryAssignment(models.Model):
    """Marks an assignment of training (without a try) or of a qualification. Its ratings count in no figure."""

    assignment = models.OneToOneField(Assignment, on_delete=models.CASCADE, related_name="entry")
    qualification_try = models.ForeignKey(
        QualificationTry, on_delete=models.CASCADE, null=True, related_name="entries"
    )
