"""Draws of answers that people are asked about next, and rules that send answers to people."""

from __future__ import annotations

from django.db import models

from evalsite import clock
from evalsite.accounts.models import Project, User
from judging.people.models import Evaluation
from judging.records.models import Run


class AnswerDraw(models.Model):
    """A draw among the answers of a run that were not rated yet, each with its own probability (`Item.drawn_with`).

    Its items have its `number`. `rated_before`: ids of the drawn answers that a rule had sent and that were rated when
    they were drawn; the `waiting` others are dealt in random order, so that an unfinished draw is a smaller one.
    """

    about_run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="answer_draws")
    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="answer_draws")
    number = models.PositiveIntegerField(help_text="from 1 within the run")
    metric = models.CharField(max_length=200, help_text="the metric whose judge was in doubt")
    size = models.PositiveIntegerField(help_text="the number asked for")
    frame = models.PositiveIntegerField(help_text="number of answers that could be drawn")
    about_rows = models.PositiveIntegerField(help_text="number of rows of the run when they were drawn")
    waiting = models.PositiveIntegerField(help_text="number of drawn answers that had no rating")
    rated_before = models.JSONField(default=list)
    learnt = models.BooleanField(default=False, help_text="whether errors seen earlier led the probabilities")
    seed = models.BigIntegerField()
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["about_run", "number"], name="answer_draw_once")]

    @property
    def drawn(self) -> int:
        """How many answers it drew."""
        return self.waiting + len(self.rated_before)


class SendingRule(models.Model):
    """Sends the answers that match a filter of judgements to an evaluation, once for each run that ends.

    `query`: the filter as a query string, as the saved view had it.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="sending_rules")
    name = models.CharField(max_length=100)
    query = models.TextField()
    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="sending_rules")
    a_day = models.PositiveIntegerField(help_text="the most items that it sends in a day")
    paused_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=clock.now)


class Sending(models.Model):
    """What a rule did when a run had ended; `sent` is null until a worker has done it."""

    rule = models.ForeignKey(SendingRule, on_delete=models.CASCADE, related_name="sendings")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    matches = models.PositiveIntegerField(default=0, help_text="number of answers that the filter matched")
    sent = models.PositiveIntegerField(null=True)
    problem = models.CharField(max_length=40, blank=True, default="")
    at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rule", "run"], name="sending_once")]
