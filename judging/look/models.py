"""Looks at answers: a drawn sample, what people noted on it, and the groups of their notes.

Rows and responses are never deleted before a look at them (judging/deletion); as for judgements, the database does not
enforce that.
"""

from __future__ import annotations

from functools import cached_property

from django.db import models

from datasets.models import Response, Row, Version
from evalsite.accounts.models import Project, User
from judging.metrics.models import Metric, ModelDraft
from judging.records.models import Run, RunMetric


class SetAside(models.Model):
    """Rows of a run, or of a version without a run, from which tests of judges are drawn. No look and no worked example
    ever shows them."""

    version = models.ForeignKey(Version, on_delete=models.CASCADE, related_name="+")
    run = models.OneToOneField(Run, on_delete=models.CASCADE, null=True, related_name="set_aside")
    seed = models.BigIntegerField()
    rows = models.JSONField(help_text="ids of rows, at most 400")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["version"], condition=models.Q(run=None), name="set_aside_of_version"
            )
        ]


class Look(models.Model):
    """A random sample of answers for people to look at. It never changes once it is drawn."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="looks")
    version = models.ForeignKey(Version, on_delete=models.CASCADE, related_name="looks")
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, null=True, related_name="looks", help_text="null: of a data set"
    )
    query = models.TextField(blank=True, default="", help_text="the filter of the run's judgements")
    by_score_of = models.ForeignKey(
        RunMetric,
        on_delete=models.CASCADE,
        null=True,
        related_name="+",
        help_text="answers with low scores of this metric were drawn more often; null: drawn evenly",
    )
    seed = models.BigIntegerField()
    size = models.PositiveSmallIntegerField(help_text="number of drawn answers")
    population = models.PositiveIntegerField(help_text="number of answers that could be drawn")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    @property
    def weighted(self) -> bool:
        """Whether its answers had different probabilities."""
        return self.by_score_of_id is not None

    @cached_property
    def name(self) -> str:
        """The name of what it looks at."""
        return self.run.name if self.run else f"{self.version.dataset.name} v{self.version.number}"


class LookAnswer(models.Model):
    """A drawn answer."""

    look = models.ForeignKey(Look, on_delete=models.CASCADE, db_index=False, related_name="answers")
    place = models.PositiveSmallIntegerField(help_text="in the random order in which it is shown, from 1")
    row = models.ForeignKey(
        Row, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    response = models.ForeignKey(
        Response, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    drawn_with = models.FloatField(help_text="probability with which it was drawn")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["look", "place"], name="look_answer_once")]


class Note(models.Model):
    """What a person noted on an answer; saved while they write."""

    answer = models.ForeignKey(LookAnswer, on_delete=models.CASCADE, related_name="notes")
    author = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    text = models.TextField(blank=True, default="")
    passed = models.BooleanField(null=True, help_text="null: not decided yet")
    new_kind = models.BooleanField(default=False, help_text="names a kind of failure not seen before")
    edits = models.PositiveIntegerField(
        default=0, help_text="number of changes; a page names the last it has seen"
    )
    page = models.UUIDField(null=True, help_text="the page that stored it last")
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["answer", "author"], name="note_once")]


class NoteGroup(models.Model):
    """A named kind of failure among a look's notes. A note may be in several groups."""

    look = models.ForeignKey(Look, on_delete=models.CASCADE, related_name="groups")
    name = models.CharField(max_length=100)
    definition = models.TextField(blank=True, default="")
    edits = models.PositiveIntegerField(default=0, help_text="number of changes of name and definition")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    notes = models.ManyToManyField(Note, through="GroupedNote", related_name="groups")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["look", "name"], name="group_name_once")]


class GroupedNote(models.Model):
    """A note in a group."""

    group = models.ForeignKey(NoteGroup, on_delete=models.CASCADE, db_index=False, related_name="grouped")
    note = models.ForeignKey(Note, on_delete=models.CASCADE, related_name="grouped")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["group", "note"], name="grouped_note_once")]


class GroupProposal(ModelDraft):
    """Groups proposed by a model, of which people take what they like."""

    look = models.ForeignKey(Look, on_delete=models.CASCADE, related_name="proposals")
    groups = models.JSONField(default=list, help_text="[{name, definition, notes: [ids], taken: bool}]")


class TrainLabel(models.Model):
    """An answer's label for a metric that was written from a group: it may be shown in a prompt as an example, and is
    never part of a test."""

    metric = models.ForeignKey(Metric, on_delete=models.CASCADE, related_name="train_labels")
    version = models.ForeignKey(Version, on_delete=models.CASCADE, related_name="+")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, related_name="+")
    row = models.ForeignKey(
        Row, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    response = models.ForeignKey(
        Response, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    passed = models.BooleanField()
    note = models.TextField(blank=True, default="", help_text="why it fails, as noted")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["metric", "response"], name="train_label_once"),
        ]
