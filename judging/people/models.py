"""Human evaluations: items, raters, assignments, and every rating as submitted.

A rating becomes a Judgement like a judge model's verdict; these tables record its history.
"""

from __future__ import annotations

import uuid
from functools import cached_property

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from datasets.models import Candidate, Response, Row, Version
from evalsite import clock
from evalsite.accounts.models import User
from evalsite.deletable import Everything
from judging.core.people.criteria import Criterion
from judging.core.people.study import Course, StudyState, state_at
from judging.records.models import Run, RunMetric


class OpensAs(models.TextChoices):
    SINGLE = "single", _("one answer at a time")
    SIDE_BY_SIDE = "side_by_side", _("side by side")


class Scheme(models.TextChoices):
    """Which answers are compared."""

    NONE = "", _("none")
    EVERY_PAIR = "every_pair", _("every pair of candidates")
    BALANCED = "balanced", _("some pairs per row, balanced")
    BASELINE = "baseline", _("each candidate vs. a baseline")
    REFERENCE = "reference", _("reference vs. answer")
    VERSIONS = "versions", _("two legacy files")
    RANK = "rank", _("answers ranked")


class Order(models.TextChoices):
    RANDOM = "random", _("random")
    NEED = "need", _("fewest ratings first")


class GoldRule(models.TextChoices):
    """What happens to a rater who misses the pass mark of gold."""

    TELL = "tell", _("tell the organiser")
    PAUSE = "pause", _("pause the rater")


class NotDeletedEvaluations(models.Manager["Evaluation"]):
    def get_queryset(self) -> models.QuerySet[Evaluation]:
        return super().get_queryset().filter(run__deleted_at=None)


class Evaluation(models.Model):
    """The human side of a run of kind "people"; its criteria are the run's metrics (JSON of core.people.Criterion).

    Changes to assignments lock its row, so that two raters, or two tabs, wait for each other.
    """

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="evaluation")
    about_run = models.ForeignKey(
        Run,
        on_delete=models.SET_NULL,
        null=True,
        related_name="evaluations",
        help_text="the run whose answers were sampled for raters; its report includes their ratings",
    )
    about_rows = models.PositiveIntegerField(
        null=True, help_text="number of rows of about_run when they were sampled"
    )
    opens_as = models.CharField(max_length=12, choices=OpensAs.choices, default=OpensAs.SINGLE)
    scheme = models.CharField(max_length=12, choices=Scheme.choices, blank=True, default="")
    pairs_per_item = models.PositiveSmallIntegerField(null=True)
    baseline = models.ForeignKey(Candidate, on_delete=models.PROTECT, null=True, related_name="+")
    other_version = models.ForeignKey(Version, on_delete=models.PROTECT, null=True, related_name="+")
    guideline = models.TextField(blank=True, default="", help_text="Markdown, for all criteria")
    guideline_version = models.PositiveSmallIntegerField(
        default=1,
        db_default=1,
        help_text="the current version of the guideline and the criteria's definitions",
    )
    shows_reference = models.BooleanField(default=False)
    hidden_roles = models.JSONField(
        default=list, help_text="roles whose turns raters do not see: system, assistant, tool"
    )
    overlap = models.PositiveSmallIntegerField(default=1, help_text="raters per item")
    order = models.CharField(max_length=8, choices=Order.choices, default=Order.RANDOM)
    seed = models.BigIntegerField(default=0)
    stratify_by = models.CharField(max_length=200, blank=True, default="", help_text="a field of the rows")
    gold_share = models.FloatField(default=0)
    gold_mark = models.FloatField(default=0.8, help_text="share of gold items that must be right, 0…1")
    gold_rule = models.CharField(max_length=8, choices=GoldRule.choices, default=GoldRule.TELL)
    quality_thresholds = models.JSONField(
        null=True,
        help_text="where raters' figures stand out: {name: value} of core.people.quality.Thresholds",
    )
    repeat_share = models.FloatField(default=0)
    lease_minutes = models.PositiveIntegerField(default=30)
    items_count = models.PositiveIntegerField(default=0, help_text="without gold and repeats")
    next_position = models.PositiveIntegerField(
        default=0, help_text="position of the next judgement in the run"
    )
    draft = models.BooleanField(default=False, help_text="not opened yet: raters see nothing of it")
    paused_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    starts_at = models.DateTimeField(null=True, help_text="when a draft opens by itself")
    ends_at = models.DateTimeField(null=True, help_text="when it closes by itself")
    open_to_all = models.BooleanField(
        default=False, db_default=False, help_text="whether all raters of the project may join"
    )
    quota = models.PositiveIntegerField(
        null=True, help_text="how many items a rater gets at most; null: no limit"
    )
    share = models.PositiveIntegerField(
        null=True, help_text="what a rater gets at most by quota.py; null: without a quota"
    )
    pilot_items = models.PositiveIntegerField(null=True, help_text="size of the pilot")
    pilot_below = models.PositiveIntegerField(
        null=True, help_text="while the pilot runs, only items with a lower rank are assigned"
    )

    objects = NotDeletedEvaluations()
    all_objects = Everything()

    @property
    def state(self) -> StudyState:
        course = Course(
            self.draft,
            self.paused_at is not None,
            self.closed_at is not None,
            self.starts_at,
            self.ends_at,
        )
        return state_at(course, clock.now())

    @property
    def open(self) -> bool:
        """Whether raters can rate now."""
        return self.state == "open"

    @cached_property
    def metrics(self) -> list[RunMetric]:
        """The criteria as stored, in order; of a running evaluation only their definitions change."""
        return sorted(self.run.metrics.all(), key=lambda metric: metric.number)  # they may be prefetched

    @cached_property
    def criteria(self) -> dict[int, Criterion]:
        """The criteria by number, from 0."""
        return {metric.number: Criterion.from_json(metric.definition) for metric in self.metrics}


class Item(models.Model):
    """One thing to rate: an answer, two, or more that are ranked (FurtherAnswer). Gold (answers known) and hidden
    repeats don't create judgements."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, db_index=False, related_name="items")
    number = models.PositiveIntegerField(help_text="from 1")
    rank = models.PositiveIntegerField(help_text="position in the random order in which items are assigned")
    row = models.ForeignKey(Row, on_delete=models.PROTECT, db_index=False, related_name="+")
    response = models.ForeignKey(Response, on_delete=models.PROTECT, db_index=False, related_name="+")
    other_response = models.ForeignKey(
        Response, on_delete=models.PROTECT, db_index=False, null=True, related_name="+"
    )
    gold = models.TextField(
        blank=True,
        default="",
        help_text="known answers: JSON {criterion number: value, or accepted values, the expected one first}",
    )
    gold_reason = models.TextField(blank=True, default="", help_text="why these are the right answers")
    gold_removed = models.BooleanField(
        default=False, help_text="raters no longer get it, and it counts in no hits"
    )
    repeat_of = models.ForeignKey("self", on_delete=models.CASCADE, null=True, related_name="repeats")
    stratum = models.CharField(max_length=200, blank=True, default="")
    drawn_with = models.FloatField(null=True, help_text="probability; null: not drawn at random")
    draw = models.PositiveIntegerField(
        default=0, db_default=0, help_text="number of the later draw among a run's answers; 0: the first"
    )
    known_to = models.PositiveIntegerField(
        default=0, db_default=0, help_text="the first draw that took its rating as known; 0: none"
    )
    sent_by_rule = models.BooleanField(default=False, db_default=False)
    for_improving = models.BooleanField(
        default=False,
        db_default=False,
        help_text="drawn unfairly to improve a judge: counts in no other figure",
    )
    first_side = models.PositiveSmallIntegerField(null=True, help_text="left for its first rater: 1 or 2")
    needed = models.PositiveSmallIntegerField(
        default=1, help_text="number of ratings; 0: one by each rater who gets it"
    )
    free = models.PositiveSmallIntegerField(default=1, help_text="seats that are free")
    rated = models.PositiveSmallIntegerField(default=0, help_text="number of its ratings that hold a seat")
    assigned = models.PositiveSmallIntegerField(default=0, help_text="number of raters who have had it")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["evaluation", "number"], name="item_number_once")]
        indexes = [
            # not partial: SQLite uses no partial index for a bound parameter
            models.Index(fields=["evaluation", "rank"], name="item_by_rank"),
            models.Index(fields=["evaluation", "needed", "rank"], name="item_by_need"),
            models.Index(fields=["response"], name="item_of_response"),
            models.Index(fields=["other_response"], name="item_of_other"),
            models.Index(fields=["row"], name="item_of_row"),
        ]

    @property
    def answers(self) -> list[Response]:
        """The rated answers, in the item's order."""
        pair = [answer for answer in (self.response, self.other_response) if answer]
        return pair + [further.response for further in self.further.all()] if self.is_ranked else pair

    @property
    def is_ranked(self) -> bool:
        """Whether it has further answers: of two, one would stand first for its first rater."""
        return self.pk is not None and self.other_response_id is not None and self.first_side is None

    @property
    def candidate_names(self) -> list[str]:
        """The names of the candidates of its answers."""
        return [answer.candidate.name for answer in self.answers]

    @property
    def rates_reference(self) -> bool:
        """Whether a rated answer is the row's reference, which is stored in a row of its own
        (versions/references.py)."""
        return any(answer.row_id != self.row_id for answer in self.answers)

    @property
    def counts(self) -> bool:
        """Whether it is an ordinary item, neither gold nor a repeat."""
        return not self.gold and self.repeat_of_id is None


SENT_ONLY = Q(sent_by_rule=True, draw=0)
"""Items that a rule sent and no draw drew: they count in no figure of answers."""


class FurtherAnswer(models.Model):
    """The third and later answers of an item whose answers are ranked."""

    item = models.ForeignKey(Item, on_delete=models.CASCADE, db_index=False, related_name="further")
    place = models.PositiveSmallIntegerField(help_text="in the item's order, from 3")
    response = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ["place"]
        constraints = [models.UniqueConstraint(fields=["item", "place"], name="further_answer_once")]


class EvaluationRater(models.Model):
    """A rater of an evaluation; others see only the pseudonym."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="raters")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="evaluations")
    pseudonym = models.CharField(max_length=40)
    joined_at = models.DateTimeField(auto_now_add=True)
    left_at = models.DateTimeField(null=True)
    place = models.PositiveIntegerField(default=0, help_text="number of items assigned so far")
    in_pilot = models.BooleanField(default=False, help_text="whether they rate while the pilot runs")
    paused_at = models.DateTimeField(null=True)
    gold_failed_at = models.DateTimeField(null=True, help_text="when they missed the pass mark of gold")
    gold_since = models.DateTimeField(
        null=True, help_text="when they were let in again; earlier gold does not count for the pass mark"
    )
    promised = models.PositiveIntegerField(
        null=True, help_text="the number of items that they were told, and agreed to; they get no more"
    )
    work_told = models.BooleanField(default=False, help_text="whether webhooks were told that there is work")
    set_aside_at = models.DateTimeField(
        null=True, help_text="when their ratings were set aside: kept, shown, counted nowhere"
    )
    set_aside_reason = models.TextField(blank=True, default="", db_default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "user"], name="evaluation_rater_once"),
            models.UniqueConstraint(fields=["evaluation", "pseudonym"], name="evaluation_pseudonym_once"),
        ]

    @property
    def stopped(self) -> bool:
        """Whether they can't rate now, because they are paused or their ratings are set aside."""
        return self.paused_at is not None or self.set_aside_at is not None


class AssignmentState(models.TextChoices):
    LEASED = "leased", _("in progress")
    RATED = "rated", _("rated")
    SKIPPED = "skipped", _("skipped")
    RELEASED = "released", _("released")
    REASSIGNED = "reassigned", _("reassigned")


class AssignmentQuerySet(models.QuerySet["Assignment"]):
    def counted(self) -> AssignmentQuerySet:
        """Those whose rating counts: in force, and not of a rater whose ratings are set aside. Whatever computes
        something from stored ratings reads them through this; the judgements of the others aren't current."""
        return self.filter(state=AssignmentState.RATED, rating__isnull=False, rater__set_aside_at=None)


class Assignment(models.Model):
    """An item assigned to a rater. It is kept with its draft after the lease ends: the rater may get it again."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, db_index=False, related_name="+")
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="assignments", db_index=False)
    rater = models.ForeignKey(
        EvaluationRater, on_delete=models.CASCADE, related_name="assignments", db_index=False
    )
    state = models.CharField(max_length=10, choices=AssignmentState.choices, default=AssignmentState.LEASED)
    token = models.UUIDField(
        unique=True,
        default=uuid.uuid4,
        help_text="its name on the rater's page; random, because numbers could be compared with the data set's",
    )
    place = models.PositiveIntegerField(help_text="in its rater's order, from 1")
    shown_first = models.PositiveSmallIntegerField(null=True, help_text="left: 1 response, 2 other")
    shown_order = models.CharField(
        max_length=20,
        blank=True,
        default="",
        db_default="",
        help_text="positions of ranked answers in the order shown, from 0, comma-separated",
    )
    lease_until = models.DateTimeField()
    attempt = models.PositiveSmallIntegerField(default=0, help_text="verdicts given so far")
    rating = models.ForeignKey(
        "Rating",
        on_delete=models.SET_NULL,
        db_index=False,
        null=True,
        related_name="+",
        help_text="the rating in force",
    )
    draft = models.TextField(blank=True, default="", help_text="JSON {values, comment}, as shown")
    extra = models.BooleanField(
        default=False, help_text="holds no seat: beyond the ratings that the item needs, or set aside"
    )
    seconds = models.FloatField(default=0)
    rated_at = models.DateTimeField(null=True)

    objects = AssignmentQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["item", "rater"], name="assignment_once")]
        indexes = [
            models.Index(fields=["rater", "state", "place"], name="assignment_of_rater"),
            models.Index(fields=["evaluation", "state", "lease_until"], name="assignment_by_lease"),
            models.Index(fields=["rating"], condition=Q(rating__isnull=False), name="assignment_of_rating"),
        ]

    @property
    def order(self) -> list[int]:
        """Positions of the answers in the order shown, from 0; empty for one answer, or if unknown."""
        if self.shown_order:
            return [int(position) for position in self.shown_order.split(",")]
        return {1: [0, 1], 2: [1, 0]}.get(self.shown_first or 0, [])


class RatingKind(models.TextChoices):
    VERDICT = "verdict", _("verdict")
    CHANGE = "change", _("change")
    SKIP = "skip", _("skip")
    UNDO = "undo", _("undo")


class SkipReason(models.TextChoices):
    UNCLEAR = "unclear", _("The question is unclear")
    NO_KNOWLEDGE = "no_knowledge", _("I know too little about this")
    BROKEN = "broken", _("Something is broken or unreadable")
    OFFENSIVE = "offensive", _("I prefer not to read this")
    OTHER = "other", _("Another reason")


class Rating(models.Model):
    """A rater's action on an item. Append-only; the client creates `key`, so a double submit is stored once."""

    assignment = models.ForeignKey(Assignment, on_delete=models.CASCADE, related_name="ratings")
    rater = models.ForeignKey(EvaluationRater, on_delete=models.CASCADE, related_name="ratings")
    kind = models.CharField(max_length=8, choices=RatingKind.choices)
    attempt = models.PositiveSmallIntegerField(
        help_text="number of the verdict within the assignment; 0: none"
    )
    key = models.UUIDField(unique=True)
    of = models.OneToOneField(
        "self",
        on_delete=models.CASCADE,
        null=True,
        related_name="undone_by",
        help_text="the rating that an undo withdraws",
    )
    values = models.TextField(blank=True, default="", help_text="canonical: JSON {criterion number: value}")
    comment = models.TextField(blank=True, default="")
    reason = models.CharField(
        max_length=40, blank=True, default="", help_text="code of the reason why it was skipped"
    )
    seconds = models.FloatField(default=0)
    extra = models.BooleanField(default=False)
    guideline_version = models.PositiveSmallIntegerField(
        default=1, db_default=1, help_text="the version that its rater's page showed"
    )
    imported = models.BooleanField(default=False)
    ratings_import = models.ForeignKey(
        "RatingsImport", on_delete=models.SET_NULL, null=True, related_name="ratings", help_text="the file"
    )
    at = models.DateTimeField(default=clock.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["assignment", "attempt"],
                condition=Q(kind__in=("verdict", "change")),
                name="rating_attempt_once",
            )
        ]

    repeated = False
    """Whether a returned object existed already, so that nothing was created."""


class SentItem(models.Model):
    """An item sent to those who adjudicate: one whose label is in doubt, or one drawn at random to go with it. Which of
    the two it is isn't stored, so that nobody can tell them apart."""

    item = models.OneToOneField(Item, on_delete=models.CASCADE, related_name="sent")
    together = models.UUIDField(db_index=True, help_text="the same for items that were sent together")
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(auto_now_add=True)


class Adjudication(models.Model):
    """An adjudicator's decision where raters differ. Append-only; the newest counts."""

    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="adjudications")
    values = models.TextField(help_text="canonical: JSON {criterion number: value}")
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(auto_now_add=True)
