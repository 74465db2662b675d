"""Review collaboration: comments, tags, assignments and exclusions on an answer and a metric of a run.

Like overrides, they belong to the answer and metric, whichever attempt is current. Marks are never deleted; the action
that removes a mark is stored on it, so that every action can be undone.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from datasets.models import Response
from evalsite.accounts.models import Project, User
from evalsite.webhooks.models import Webhook
from judging.records.models import Run, RunMetric

FLAG = ""
"""The name of the built-in tag, the flag."""


class MarkKind(models.TextChoices):
    TAG = "tag"
    ASSIGNED = "assigned"
    EXCLUDED = "excluded"


class ReviewAction(models.Model):
    """A change of marks on one judgement or on all matches of a filter, or a re-judging or re-parsing of these matches
    (Rejudging), where `added` counts the new attempts and undo is not possible. Large actions are processed in batches:
    `place` is the last processed position in the run, or during undo the id of the last mark."""

    class Kind(models.TextChoices):
        TAG = "tag", _("Tag added")
        UNTAG = "untag", _("Tag removed")
        ASSIGN = "assign", _("Assigned")
        UNASSIGN = "unassign", _("Unassigned")
        FINISH = "finish", _("Review finished")
        EXCLUDE = "exclude", _("Excluded from figures")
        INCLUDE = "include", _("Included again")
        REJUDGE = "rejudge", _("Re-judged")
        REPARSE = "reparse", _("Re-parsed")

    class State(models.TextChoices):
        WAITING = "waiting", _("in progress")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")
        STOPPED = "stopped", _("stopped")
        UNDOING = "undoing", _("being undone")
        UNDONE = "undone", _("undone")

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="review_actions")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    name = models.CharField(max_length=60, blank=True, default="", help_text="the tag; empty for flags")
    user = models.ForeignKey(
        User, on_delete=models.PROTECT, db_index=False, null=True, related_name="+", help_text="the assignee"
    )
    reason = models.TextField(blank=True, default="")
    query = models.TextField(blank=True, default="", help_text="the filter as a query string")
    single = models.BooleanField(default=False, help_text="whether it is about one answer and metric")
    state = models.CharField(max_length=8, choices=State.choices, default=State.WAITING)
    place = models.BigIntegerField(default=-1)
    share = models.FloatField(default=0, help_text="completed share of the work, from 0 to 1")
    added = models.PositiveIntegerField(default=0, help_text="number of marks added")
    removed = models.PositiveIntegerField(default=0, help_text="number of marks removed")
    by = models.ForeignKey(User, on_delete=models.PROTECT, db_index=False, related_name="+")
    at = models.DateTimeField(auto_now_add=True)
    undone_by = models.ForeignKey(User, on_delete=models.PROTECT, db_index=False, null=True, related_name="+")
    undone_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["state"], condition=Q(state__in=("waiting", "undoing")), name="review_action_open"
            ),
        ]

    @property
    def changed(self) -> int:
        return max(self.added, self.removed)

    @property
    def under_way(self) -> bool:
        return self.state in UNDER_WAY

    @property
    def undoable(self) -> bool:
        """Whether the action can be undone. Failed actions can be, because they may have changed marks."""
        ended = self.state in (self.State.DONE, self.State.FAILED)
        return ended and self.changed > 0 and self.kind not in (self.Kind.REJUDGE, self.Kind.REPARSE)

    @property
    def percent(self) -> int:
        return int(100 * self.share)


UNDER_WAY = (ReviewAction.State.WAITING, ReviewAction.State.UNDOING)


class AboutAnswer(models.Model):
    """Belongs to an answer and a metric of a run. It is deleted before them; no database constraint checks that."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, db_index=False, related_name="+")
    run_metric = models.ForeignKey(RunMetric, on_delete=models.CASCADE, db_index=False, related_name="+")
    response = models.ForeignKey(
        Response, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )

    class Meta:
        abstract = True


class MarkQuerySet(models.QuerySet["Mark"]):
    def current(self) -> MarkQuerySet:
        return self.filter(removed_by=None)


class Mark(AboutAnswer):
    """A tag (`name`; empty: the flag), an assignment, or an exclusion from figures. Current until an action removes it.
    An answer and metric has at most one assignee."""

    action = models.ForeignKey(ReviewAction, on_delete=models.CASCADE, related_name="marks")
    removed_by = models.ForeignKey(
        ReviewAction, on_delete=models.CASCADE, db_index=False, null=True, related_name="marks_removed"
    )
    kind = models.CharField(max_length=8, choices=MarkKind.choices)
    name = models.CharField(max_length=60, blank=True, default="")
    user = models.ForeignKey(User, on_delete=models.PROTECT, db_index=False, null=True, related_name="+")

    objects = MarkQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["response", "run_metric", "kind", "name"],
                condition=Q(removed_by=None),
                name="mark_once",
            )
        ]
        indexes = [
            models.Index(
                fields=["run", "kind", "name", "user", "run_metric", "response"],
                condition=Q(removed_by=None),
                name="mark_in_run",
            ),
            models.Index(
                fields=["user"], condition=Q(removed_by=None, user__isnull=False), name="mark_of_user"
            ),
            models.Index(
                fields=["removed_by", "response"],
                condition=Q(removed_by__isnull=False),
                name="mark_removed_by",
            ),
        ]


class Comment(AboutAnswer):
    """A Markdown comment. `version` increases with each edit, to reject edits of outdated versions."""

    author = models.ForeignKey(User, on_delete=models.PROTECT, db_index=False, related_name="+")
    text = models.TextField()
    version = models.PositiveIntegerField(default=1)
    at = models.DateTimeField(auto_now_add=True)
    edited_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["run", "run_metric", "response"], name="comment_of_answer")]


class Notice(models.Model):
    """A notification for a user who was mentioned in a comment or got an assignment, or whose project's webhook was
    turned off, or the watch of whose judge raised an alarm."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, db_index=False, related_name="+")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    comment = models.ForeignKey(Comment, on_delete=models.CASCADE, null=True, related_name="notices")
    action = models.ForeignKey(ReviewAction, on_delete=models.CASCADE, null=True, related_name="notices")
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, null=True, related_name="+")
    watch = models.ForeignKey("judging.Watch", on_delete=models.CASCADE, null=True, related_name="+")
    at = models.DateTimeField(auto_now_add=True)
    read_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["user", "id"], name="notice_of_user"),
            models.Index(fields=["user"], condition=Q(read_at=None), name="notice_unread"),
        ]
