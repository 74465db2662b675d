"""Runs, their judgements, and everything that led to each judgement.

These tables are hot: run workers write them with plain SQL (engine/write_buffer.py), payloads are JSON stored as TEXT,
and there are only indexes that a page or a worker needs.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from datasets.models import Candidate, Response, Row, Version
from evalsite.accounts.models import Project, User
from evalsite.deletable import Deletable, NotDeleted
from judging.endpoints.models import Endpoint
from judging.metrics.models import MetricVersion

INFER = "infer_and_judge"
"""The kind of a run that generates answers with candidate models and judges them."""

PEOPLE = "people"
"""The kind of a run judged by people (judging.people); workers don't process it."""

IMPORTED = "imported"
"""The kind of a run whose judgements were imported from a results file."""

WITHOUT_WORKERS = (PEOPLE, IMPORTED)
"""The kinds of runs that workers don't judge."""


class RunState(models.TextChoices):
    PLANNING = "planning", _("preparing")
    RUNNING = "running", _("running")
    PAUSED = "paused", _("paused")
    CANCELLED = "cancelled", _("cancelled")
    FINISHED = "finished", _("finished")
    FAILED = "failed", _("failed to start")


WORKED_ON = (RunState.PLANNING, RunState.RUNNING)
NOT_ENDED = (*WORKED_ON, RunState.PAUSED)


class Priority(models.IntegerChoices):
    LOW = -1, _("low")
    NORMAL = 0, _("normal")
    HIGH = 1, _("high")


class JudgementState(models.TextChoices):
    SCORED = "scored", _("scored")
    NO_SCORE = "no_score", _("no score")
    UNPARSED = "unparsed", _("unparsed")
    UNSETTLED = "unsettled", _("unsettled")
    ERROR = "error", _("error")
    NOT_RUN = "not_run", _("not run")


COUNTERS = {
    JudgementState.SCORED: "scored",
    JudgementState.NO_SCORE: "no_score",
    JudgementState.UNPARSED: "unparsed",
    JudgementState.UNSETTLED: "unsettled",
    JudgementState.ERROR: "errors",
}
"""The run's counter field for each state. Judgements that are not run yet have none."""

SET_ASIDE = (WORKER_DIED, WORK_FAILED) = ("worker_died", "work_failed")
"""The `problem` of a run that was paused because it kept workers from working on the others."""

SETTLED = "settled"  # the `problem` of a run that ended by early stopping
ANSWER_FAILED = "answer_failed"  # the `reason` of a judgement whose answer could not be generated


class RunQuerySet(models.QuerySet["Run"]):
    def by_workers(self) -> RunQuerySet:
        """Runs judged by workers."""
        return self.exclude(kind__in=WITHOUT_WORKERS)

    def with_verdicts(self) -> RunQuerySet:
        """Runs with a verdict; a pair is also judged where its orders disagree."""
        return self.filter(Q(scored__gt=0) | Q(unsettled__gt=0))

    def to_plan(self) -> RunQuerySet:
        """Runs that a run worker has to plan, excluding those whose new attempts are planned in batches (Rejudging)."""
        return self.filter(state=RunState.PLANNING, rejudging=None)


class Run(Deletable):
    """An evaluation of candidates by metrics on one version, with frozen copies of the metrics."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="runs")
    name = models.CharField(max_length=200)
    version = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="runs")
    kind = models.CharField(max_length=16, default="judge_only")
    state = models.CharField(max_length=10, choices=RunState.choices, default=RunState.PLANNING)
    problem = models.CharField(
        max_length=40,
        blank=True,
        default="",
        help_text="code of the reason why it could not start or stopped",
    )
    problem_detail = models.TextField(blank=True, default="")
    sample_size = models.PositiveIntegerField(
        null=True, help_text="number of rows drawn at random; null: all rows"
    )
    only_rows = models.JSONField(
        null=True, help_text="ids of the rows that it is limited to; null: the version's"
    )
    seed = models.BigIntegerField(default=0)
    bad_rows_left_out = models.PositiveIntegerField(default=0)
    rubric_rows_left_out = models.PositiveIntegerField(
        default=0, help_text="rows left out, because no checklist can be judged by their rubric"
    )
    rows = models.PositiveIntegerField(default=0, help_text="number of rows that it judges")
    total = models.PositiveIntegerField(default=0)
    scored = models.PositiveIntegerField(default=0)
    no_score = models.PositiveIntegerField(default=0)
    unparsed = models.PositiveIntegerField(default=0)
    unsettled = models.PositiveIntegerField(default=0)
    errors = models.PositiveIntegerField(default=0)
    calls = models.PositiveIntegerField(default=0)
    calls_failed = models.PositiveIntegerField(default=0)
    calls_again = models.PositiveIntegerField(
        default=0, help_text="calls whose replies were lost with their worker and that are made again"
    )
    prompt_tokens = models.BigIntegerField(default=0)
    completion_tokens = models.BigIntegerField(default=0)
    revision = models.PositiveIntegerField(
        default=0, help_text="incremented with every change of a judgement"
    )
    only_worker = models.CharField(
        max_length=120, blank=True, default="", help_text="the only process that may work on it; empty: any"
    )
    planner = models.CharField(
        max_length=120, blank=True, default="", help_text="the process that plans it; empty: none"
    )
    worker_deaths = models.PositiveSmallIntegerField(
        default=0,
        help_text="workers that died while they worked on it, until it goes on without: worker/deaths.py",
    )
    worker_died_at = models.FloatField(default=0, help_text="Unix time of the last of them")
    in_flight_at_death = models.JSONField(
        default=list, help_text="[[work, id]] of the requests that were lost"
    )
    sandbox_level = models.PositiveSmallIntegerField(null=True)
    budget_calls = models.BigIntegerField(null=True)
    budget_tokens = models.BigIntegerField(null=True, help_text="input and output tokens together")
    budget_money = models.BigIntegerField(null=True, help_text="millionths of `currency`")
    spent = models.BigIntegerField(default=0, help_text="millionths of `currency`, if prices are set")
    currency = models.CharField(max_length=8, blank=True, default="")
    prices = models.JSONField(
        default=dict,
        help_text="{endpoint: [price of a million input tokens, output tokens]} when the run was created",
    )
    priority = models.SmallIntegerField(choices=Priority.choices, default=Priority.NORMAL)
    stop_width = models.FloatField(
        null=True, help_text="end the run when each mean is known to ± this; null: never"
    )
    reuse_replies = models.BooleanField(
        default=False, help_text="whether stored replies to the same request are reused"
    )
    reuse_at_any_temperature = models.BooleanField(
        default=False, help_text="also for temperatures other than 0"
    )
    batched = models.BooleanField(
        default=False, help_text="requests are sent in batches, cheaper, and answered within a day"
    )
    plain_if_expired = models.BooleanField(
        default=False, help_text="requests of batches that were not answered in time are sent alone"
    )
    reused = models.PositiveIntegerField(default=0, help_text="number of replies that were reused")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    archived_at = models.DateTimeField(null=True)

    objects = NotDeleted.from_queryset(RunQuerySet)()  # type: ignore[misc]  # as Deletable has, with more methods

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="run_name_once")]
        indexes = [models.Index(fields=["state"], name="run_by_state")]

    @property
    def done(self) -> int:
        return self.scored + self.no_score + self.unparsed + self.unsettled + self.errors

    @property
    def not_run(self) -> int:
        return self.total - self.done

    @property
    def ended(self) -> bool:
        return self.state not in NOT_ENDED

    @property
    def complete(self) -> bool:
        """Whether its results are final: it has ended, or its raters have rated everything."""
        return self.ended or (self.by_people and 0 < self.total <= self.done)

    @property
    def shown_state(self) -> RunState:
        """The state for readers: an evaluation that is rated to its end has finished, although it is still open."""
        return RunState.FINISHED if self.complete and not self.ended else RunState(self.state)

    @property
    def extendable(self) -> bool:
        """Whether the run has finished on a sample of its rows."""
        size = self.sample_size or 0
        sampled = self.only_rows is None and 0 < size < self.version.valid_rows
        return self.by_workers and self.state == RunState.FINISHED and sampled

    @property
    def by_people(self) -> bool:
        """Whether the run is judged by raters."""
        return self.kind == PEOPLE

    @property
    def by_workers(self) -> bool:
        """Whether the run is judged by workers, so that it can be paused, resumed and re-judged."""
        return self.kind not in WITHOUT_WORKERS

    @property
    def imported(self) -> bool:
        """Whether the judgements were imported."""
        return self.kind == IMPORTED

    @cached_property
    def compares_candidates(self) -> bool:
        """Whether a metric compares candidates; true also if a text in one looks like it."""
        models.prefetch_related_objects([self], "metrics")
        return any('"compares":' in metric.definition for metric in self.metrics.all())

    @property
    def is_idle(self) -> bool:
        """Whether the run has ended or is paused."""
        return self.state not in WORKED_ON

    def reopen(self, state: RunState, only_worker: str = "") -> None:
        """Prepare a stopped run for more work, without saving it. Shifts `started_at`, so that durations exclude the
        idle time."""
        if self.started_at and self.finished_at:
            self.started_at += timezone.now() - self.finished_at
        self.finished_at = None
        if self.problem == SETTLED:
            self.stop_width = None  # continuing includes the rest
        self.state, self.only_worker = state, only_worker
        self.problem = self.problem_detail = ""
        self.worker_deaths, self.in_flight_at_death = 0, []


class RunMetric(models.Model):
    """A run's frozen copy of a metric. `definition`: JSON text of a MetricDefinition, without API keys."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="metrics")
    number = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=200)
    definition = models.TextField()
    metric_version = models.ForeignKey(MetricVersion, on_delete=models.PROTECT, null=True, related_name="+")
    servers = models.JSONField(
        null=True,
        help_text="[[judge, model, fingerprint, server version, replies]] of its replies; null: not counted yet",
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "number"], name="run_metric_once")]


class Reading(models.Model):
    """A later definition for one metric of a run. By default it re-parses stored replies: the frozen definition with
    another parser, postprocess or scale, but the same judges and prompts. A reading that `sends_requests` is another
    version of the metric, used to re-judge items with new requests."""

    run_metric = models.ForeignKey(RunMetric, on_delete=models.CASCADE, related_name="readings")
    number = models.PositiveSmallIntegerField(help_text="from 1")
    definition = models.TextField()
    sends_requests = models.BooleanField(
        default=False, help_text="whether it makes new requests, with its own templates and judges"
    )
    whole = models.BooleanField(
        default=True, help_text="whether it applies to all judgements of the metric, including later ones"
    )
    metric_version = models.ForeignKey(MetricVersion, on_delete=models.PROTECT, null=True, related_name="+")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run_metric", "number"], name="reading_once")]


class Rejudging(models.Model):
    """A re-judging or re-parsing of many judgements, while a worker plans the new attempts in batches; the run is
    `planning` meanwhile. `action`: the review action with the filter that selects them; its `place` is the position
    planned so far."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True)
    action = models.OneToOneField("judging.ReviewAction", on_delete=models.CASCADE)
    reading = models.ForeignKey(
        Reading,
        on_delete=models.CASCADE,
        db_index=False,
        null=True,
        related_name="+",
        help_text="null: the templates and judges did not change",
    )
    last = models.PositiveIntegerField(help_text="position of the last judgement that may get a new attempt")
    state_before = models.CharField(max_length=10, choices=RunState.choices, help_text="of the run")


class RunCandidate(models.Model):
    """A candidate of a run. If the run generates its answers, `definition` is the JSON text of a
    core.candidates.CandidateModel, without API keys, and the counters count its generations."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="run_candidates")
    candidate = models.ForeignKey(Candidate, on_delete=models.PROTECT, related_name="+")
    definition = models.TextField(blank=True, default="")
    answered = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0, help_text="failed attempts to generate the answer")
    calls = models.PositiveIntegerField(default=0)
    prompt_tokens = models.BigIntegerField(default=0)
    completion_tokens = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "candidate"], name="run_candidate_once")]


class Generation(models.Model):
    """One attempt to generate an answer: the request as sent, every call and the result.

    The answer itself is the response's `raw`. A response has at most one answered attempt, its last.
    """

    class State(models.TextChoices):
        ANSWERED = "answered", _("answered")
        FAILED = "failed", _("failed")

    run = models.ForeignKey(Run, on_delete=models.CASCADE, db_index=False, related_name="generations")
    response = models.ForeignKey(
        Response, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="generations"
    )
    attempt = models.PositiveSmallIntegerField(help_text="from 1")
    state = models.CharField(max_length=8, choices=State.choices)
    error = models.CharField(max_length=40, blank=True, default="")
    detail = models.TextField(blank=True, default="")
    endpoint = models.ForeignKey(
        Endpoint, on_delete=models.SET_NULL, db_index=False, null=True, related_name="+"
    )
    request = models.TextField()
    calls = models.TextField(help_text="every HTTP request: JSON list")
    prompt_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    seconds = models.FloatField(default=0)
    first_token_seconds = models.FloatField(null=True)
    finish_reason = models.CharField(max_length=100, blank=True, default="")
    model = models.CharField(
        max_length=300, blank=True, default="", help_text="the model name that the server returned"
    )
    finished_at = models.FloatField(help_text="Unix seconds")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["response", "attempt"], name="generation_once")]


class Chunk(models.Model):
    """A range of a run's judgements, leased by one worker at a time."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, db_index=False, related_name="chunks")
    first = models.PositiveIntegerField(help_text="position of its first judgement")
    last = models.PositiveIntegerField()
    done = models.BooleanField(default=False)
    owner = models.CharField(max_length=120, blank=True, default="")
    lease_until = models.FloatField(default=0, help_text="Unix seconds")
    leases = models.PositiveIntegerField(default=0, help_text="number of times it was leased")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "first"], name="chunk_once")]
        indexes = [models.Index(fields=["run", "owner", "first"], condition=Q(done=False), name="chunk_open")]


class SourceKind(models.TextChoices):
    JUDGE = "judge", _("judge model")
    RATER = "rater", _("rater")
    RULES = "rules", _("rules")
    SCRIPT = "script", _("script")
    COMBINED = "combined", _("several judges combined")
    ADJUDICATOR = "adjudicator", _("adjudicator")


class VerdictSource(models.Model):
    """The author of imported verdicts, for example a judge model, or a rater who need not have an account here."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="verdict_sources")
    kind = models.CharField(max_length=12, choices=SourceKind.choices)
    name = models.CharField(max_length=300)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "kind", "name"], name="verdict_source_once")]


class JudgementQuerySet(models.QuerySet["Judgement"]):
    def by_metrics(self) -> JudgementQuerySet:
        """Judgements made by the run's metrics: neither by raters nor imported."""
        return self.filter(rater=None, source=None)


COVERED = ("run_metric", "candidate", "state_in_force", "score_in_force")
"""What the indexes of sort orders contain besides their own fields, so that most filters need nothing else."""


def _order_index(name: str, field: str) -> models.Index:
    """The index of a sort order (orders.py), of current and of older attempts."""
    fields = ["run", "current", field, "position", *(column for column in COVERED if column != field)]
    return models.Index(fields=fields, name=name)


class Judgement(models.Model):
    """The verdict of one metric, rater or imported source on one response (or two). Created as `not_run` when a run is
    planned.

    Its row, candidate and response are never deleted before it (judging/deletion). The database does not enforce that,
    because without an index each check would scan the whole table.

    Each attempt is a separate row; `current` marks the newest. Replies belong to the attempt that requested them:
    `replies_from`, or this one if null.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, db_index=False, related_name="judgements")
    position = models.PositiveIntegerField(help_text="from 0 within the run")
    run_metric = models.ForeignKey(RunMetric, on_delete=models.CASCADE, db_index=False, related_name="+")
    row = models.ForeignKey(
        Row, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    candidate = models.ForeignKey(
        Candidate, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    response = models.ForeignKey(
        Response, on_delete=models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+"
    )
    other_response = models.ForeignKey(
        Response,
        on_delete=models.DO_NOTHING,
        db_index=False,
        db_constraint=False,
        null=True,
        related_name="+",
    )
    rater = models.ForeignKey(User, on_delete=models.DO_NOTHING, db_index=False, null=True, related_name="+")
    rating = models.ForeignKey(
        "judging.Rating",
        on_delete=models.DO_NOTHING,
        db_index=False,
        null=True,
        related_name="judgements",
        help_text="the rating that it was made from",
    )
    source = models.ForeignKey(
        VerdictSource,
        on_delete=models.DO_NOTHING,
        db_index=False,
        null=True,
        related_name="+",
        help_text="the author of an imported verdict; null: the run's metric or the rater",
    )
    repeat = models.PositiveSmallIntegerField(
        default=1, help_text="number of the judge's repeat, for an imported verdict"
    )
    shown_first = models.PositiveSmallIntegerField(
        null=True,
        help_text="the side seen first (people: left): 1 response, 2 other response; null: both, or unknown",
    )
    drawn_with = models.FloatField(
        null=True, help_text="probability with which the item was drawn for people"
    )
    attempt = models.PositiveSmallIntegerField(default=1)
    current = models.BooleanField(default=True)
    replies_from = models.ForeignKey(
        "self", on_delete=models.DO_NOTHING, db_index=False, null=True, related_name="+"
    )
    reading = models.ForeignKey(
        Reading,
        on_delete=models.DO_NOTHING,
        db_index=False,
        null=True,
        related_name="+",
        help_text="null: the frozen definition",
    )

    state = models.CharField(max_length=9, choices=JudgementState.choices, default=JudgementState.NOT_RUN)
    value = models.TextField(null=True, help_text="exact, as JSON: a number, a bool or a string")  # noqa: DJ001
    score = models.FloatField(null=True, help_text="the value as a number; null for a category")
    reason = models.CharField(
        max_length=40, blank=True, default="", help_text="code of the reason why there is no value"
    )
    detail = models.TextField(blank=True, default="", help_text="the reason in words")
    scripts = models.TextField(
        blank=True, default="", help_text="the results of the scripts that ran, as a list in their order"
    )
    verdicts = models.TextField(
        blank=True, default="", help_text="the verdict parsed from each judge's reply"
    )
    rules = models.TextField(blank=True, default="")
    checklist = models.TextField(
        blank=True, default="", help_text="what became of each criterion of the row's rubric: JSON"
    )
    flags = models.CharField(max_length=200, blank=True, default="", help_text="comma-separated codes")
    spread = models.FloatField(
        null=True,
        help_text="difference between its judges (core/pipeline.py); null: fewer than two gave a value",
    )
    seconds = models.FloatField(null=True)
    finished_at = models.FloatField(null=True, help_text="Unix seconds")

    # The override in force, on the current attempt only (overrides.py). `state` and `value` keep the original result.
    override_value = models.TextField(null=True, help_text="exact, as JSON; null: not overridden")  # noqa: DJ001
    override_score = models.FloatField(null=True)
    override_at = models.FloatField(
        null=True, help_text="Unix seconds of the newest override or withdrawal; null: there was none"
    )
    state_in_force = models.GeneratedField(
        expression=Case(
            When(override_value=None, then=F("state")), default=Value(JudgementState.SCORED.value)
        ),
        output_field=models.CharField(max_length=9),
        db_persist=True,
    )
    value_in_force = models.GeneratedField(
        expression=Coalesce("override_value", "value"), output_field=models.TextField(), db_persist=True
    )
    score_in_force = models.GeneratedField(
        expression=Case(When(override_value=None, then=F("score")), default=F("override_score")),
        output_field=models.FloatField(),
        db_persist=True,
    )
    changed_at = models.GeneratedField(
        expression=Case(
            When(override_at__gt=F("finished_at"), then=F("override_at")),
            default=Coalesce("finished_at", "override_at"),
        ),
        output_field=models.FloatField(),
        db_persist=True,
        help_text="Unix seconds: when the value in force last changed; null: not judged yet",
    )

    objects = JudgementQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "position"], name="judgement_position_once"),
            models.UniqueConstraint(
                fields=["response", "run_metric", "attempt"],
                condition=Q(rater=None, source=None, other_response=None),
                name="judgement_once",
            ),
            models.UniqueConstraint(
                fields=["response", "run_metric", "other_response", "attempt"],
                condition=Q(rater=None, source=None, other_response__isnull=False),
                name="comparison_once",
            ),
            models.UniqueConstraint(
                "response",
                "run_metric",
                "source",
                "repeat",
                Coalesce("other_response", 0),
                Coalesce("shown_first", 0),
                condition=Q(source__isnull=False),
                name="imported_verdict_once",
            ),
            models.CheckConstraint(
                name="judgement_value_or_reason",
                condition=Q(state="scored", value__isnull=False, reason="")
                | (~Q(state="scored") & Q(value=None, score=None) & ~Q(reason="")),
            ),
        ]
        indexes = [
            models.Index(
                fields=["run", "run_metric", "candidate", "state_in_force", "score_in_force", "position"],
                condition=Q(current=True),
                name="judgement_figures",
            ),
            # One index for each sort order of lists; by position, states have their own, as long ranges lack some.
            models.Index(fields=["run", "current", "position"], name="judgement_position"),
            models.Index(fields=["run", "current", "state_in_force", "position"], name="judgement_state"),
            _order_index("judgement_score", "score_in_force"),
            _order_index("judgement_seconds", "seconds"),
            _order_index("judgement_changed", "changed_at"),
            models.Index(
                fields=["run", "spread", "position"],
                condition=Q(current=True, spread__isnull=False),
                name="judgement_spread",
            ),
            # Partial indexes on rare attributes, without cost for judgements with a score.
            models.Index(
                fields=["run", "state", "reason", "position"],
                condition=Q(
                    current=True, finished_at__isnull=False, reason__gt="", override_value__isnull=True
                ),
                name="judgement_reasons",
            ),
            models.Index(
                fields=["run", "position", "state"],
                condition=Q(override_value__isnull=False),
                name="judgement_overridden",
            ),
            models.Index(fields=["run", "position"], condition=Q(flags__gt=""), name="judgement_flagged"),
            models.Index(fields=["rating"], condition=Q(rating__isnull=False), name="judgement_of_rating"),
            # When a run is deleted, the database looks for what refers to each deleted row.
            models.Index(
                fields=["replies_from"],
                condition=Q(replies_from__isnull=False),
                name="judgement_replies_from",
            ),
            models.Index(fields=["source"], condition=Q(source__isnull=False), name="judgement_of_source"),
            models.Index(fields=["reading"], condition=Q(reading__isnull=False), name="judgement_of_reading"),
        ]

    @property
    def definition(self) -> str:
        """JSON text of the metric definition that this attempt was judged and parsed with."""
        return self.reading.definition if self.reading else self.run_metric.definition

    @property
    def overridden(self) -> bool:
        return self.override_value is not None


class Override(models.Model):
    """An entry in the override history of an answer and a metric. The newest entry is in force, whichever attempt it
    was made on, until a later one withdraws it. Entries are only appended, never changed."""

    judgement = models.ForeignKey(
        Judgement,
        on_delete=models.CASCADE,
        related_name="overrides",
        help_text="the attempt that the reviewer saw",
    )
    value = models.TextField(null=True, help_text="exact, as JSON; null: withdrawn")  # noqa: DJ001
    score = models.FloatField(null=True)
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(auto_now_add=True)


class JudgeReply(models.Model):
    """One question to a judge model for a judgement: the request as sent, the reply as received, and every call."""

    judgement = models.ForeignKey(Judgement, on_delete=models.CASCADE, related_name="replies")
    judge = models.PositiveSmallIntegerField(help_text="number of the metric's judge model, from 0")
    repeat = models.PositiveSmallIntegerField(default=0)
    swapped = models.BooleanField(default=False, help_text="asked with the two answers swapped")
    criterion = models.PositiveSmallIntegerField(
        default=0, help_text="number of the criterion of a checklist, from 1; 0: not about a single one"
    )
    endpoint = models.ForeignKey(
        Endpoint, on_delete=models.SET_NULL, db_index=False, null=True, related_name="+"
    )
    request = models.TextField()
    content = models.TextField(null=True)  # noqa: DJ001
    reasoning = models.TextField(null=True)  # noqa: DJ001
    extra = models.TextField(blank=True, default="", help_text="tool_calls, finish_reason, model: JSON")
    error = models.CharField(max_length=40, blank=True, default="")
    detail = models.TextField(blank=True, default="")
    calls = models.TextField(help_text="every HTTP request: JSON list")
    prompt_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    seconds = models.FloatField(default=0)
    first_token_seconds = models.FloatField(null=True)
    copy_of = models.ForeignKey(
        "self",
        on_delete=models.DO_NOTHING,
        db_index=False,
        db_constraint=False,
        null=True,
        related_name="+",
        help_text="the earlier reply to the same request that was reused instead of a call",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["judgement", "judge", "repeat", "swapped", "criterion"], name="judge_reply_once"
            )
        ]


class CachedReply(models.Model):
    """A reply that can be reused for an identical request, by its cache key."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False, related_name="+")
    digest = models.CharField(max_length=64, help_text="SHA-256 of address, request and repeat")
    reply = models.ForeignKey(JudgeReply, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "digest"], name="cached_reply_once")]


class BatchState(models.TextChoices):
    SENDING = "sending", _("being sent")
    SENT = "sent", _("sent")
    COLLECTED = "collected", _("collected")
    FAILED = "failed", _("refused")


class RequestBatch(models.Model):
    """Requests of a run that a server answers together within a day. It is stored before anything is sent, so that a
    batch of which nobody knows whether it arrived is found again by its marker."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="request_batches")
    endpoint = models.ForeignKey(Endpoint, on_delete=models.SET_NULL, null=True, related_name="+")
    marker = models.CharField(max_length=40, unique=True, help_text="in its metadata at the server")
    state = models.CharField(max_length=9, choices=BatchState.choices, default=BatchState.SENDING)
    tried = models.BooleanField(default=False, help_text="whether sending it has begun")
    cancel_asked = models.BooleanField(default=False)
    read = models.BooleanField(
        default=False, db_default=False, help_text="whether workers were told to judge by its replies"
    )
    remote_id = models.CharField(max_length=200, blank=True, default="")
    remote_state = models.CharField(max_length=40, blank=True, default="")
    items = models.PositiveIntegerField()
    answered = models.PositiveIntegerField(default=0)
    problem = models.CharField(max_length=40, blank=True, default="", help_text="code of its last error")
    problem_detail = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    sent_at = models.DateTimeField(null=True)
    collected_at = models.DateTimeField(null=True)


class BatchRequest(models.Model):
    """A request that is sent in a batch. `custom_id`: judgement (which is an attempt) and place. Without a batch it
    waits for one; `plain`: it expired and is sent alone."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, db_index=False, related_name="+")
    batch = models.ForeignKey(RequestBatch, on_delete=models.SET_NULL, null=True, related_name="requests")
    endpoint = models.ForeignKey(
        Endpoint, on_delete=models.SET_NULL, null=True, db_index=False, related_name="+"
    )
    custom_id = models.CharField(max_length=64, unique=True)
    request = models.TextField(help_text="JSON, in the form of chat completions")
    plain = models.BooleanField(default=False)
    done = models.BooleanField(default=False)
    status = models.PositiveSmallIntegerField(null=True, help_text="HTTP; 0: not answered within a day")
    body = models.TextField(blank=True, default="")

    class Meta:
        indexes = [models.Index(fields=["run", "done", "batch"], name="batch_request_open")]
