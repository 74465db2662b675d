"""Whether a judge may be believed: splits of data sets, sealed tests, their openings, and the licences they give."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from datasets.models import Dataset, Version
from evalsite.accounts.models import Project, User
from judging.core.statistics.uses import Thresholds
from judging.endpoints.models import Endpoint
from judging.look.models import Look, NoteGroup
from judging.metrics.models import Metric, MetricVersion, ModelDraft
from judging.people.models import Evaluation
from judging.records.models import Run, RunMetric

USUAL = Thresholds()


class Split(models.Model):
    """A data set's rows divided for one metric into train, dev and test. Rows are known by their keys (`row_keys`), so
    a new version keeps the split."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="splits")
    metric = models.ForeignKey(Metric, on_delete=models.CASCADE, related_name="splits")
    criterion = models.CharField(max_length=200, help_text="name of the criterion that people rate")
    seed = models.BigIntegerField()
    by_id = models.BooleanField(help_text="whether rows are known by their id, else by content")
    weighted = models.BooleanField(
        default=False, db_default=False, help_text="train and dev: rows that the judge failed more often"
    )
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset", "metric"], name="split_once")]


class PartName(models.TextChoices):
    TRAIN = "train", _("train")
    DEV = "dev", _("dev")
    TEST = "test", _("test")


class SplitRow(models.Model):
    """A row of a split. A row without one belongs to no part."""

    split = models.ForeignKey(Split, on_delete=models.CASCADE, db_index=False, related_name="rows")
    key = models.CharField(max_length=48)
    part = models.CharField(max_length=5, choices=PartName.choices)
    drawn_with = models.FloatField(
        null=True, help_text="probability in a weighted draw of train and dev; null: drawn evenly"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["split", "key"], name="split_row_once")]


class SealedTest(models.Model):
    """The test of a split, evenly drawn: being rated until it is closed, then opened for versions of the metric.

    Until it is opened, its labels are shown to nobody but those who give or adjudicate them. Each of `labels` of a
    checklist also has `criteria`: {id of a criterion: whether it is met}; its value is None if one is open.
    """

    split = models.OneToOneField(Split, on_delete=models.CASCADE, related_name="test")
    version = models.ForeignKey(
        Version, on_delete=models.SET_NULL, null=True, related_name="+", help_text="whose rows were drawn"
    )
    evaluation = models.ForeignKey(
        Evaluation,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text="in which people rate it",
    )
    imported = models.ForeignKey(
        Run,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text="whose verdicts of people are its labels, if they were not rated here",
    )
    labels_before = models.BooleanField(default=False, help_text="whether labels existed before the draw")
    closed_at = models.DateTimeField(null=True)
    closed_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    labels = models.JSONField(
        default=list,
        help_text="people's values when it was closed: [{row, candidate, response, value, tier}]",
    )
    ceiling = models.JSONField(
        null=True, help_text="how well people agreed when it was closed: {items, exact, kappa}"
    )

    @property
    def open(self) -> bool:
        """Whether it is still being rated."""
        return self.closed_at is None

    @property
    def evaluations(self) -> list[Evaluation]:
        """Those in which people rate its split's rows, one for each draw; without deleted ones."""
        first = [] if self.evaluation is None else [self.evaluation]
        return [*first, *self.further_evaluations]

    @property
    def further_evaluations(self) -> list[Evaluation]:
        """Those of further draws."""
        draws = self.further_draws.select_related("evaluation__run__version").order_by("pk")
        return [draw.evaluation for draw in draws if draw.evaluation is not None]

    @property
    def labelled_runs(self) -> list[Run]:
        """The runs with people's verdicts; none if they were deleted."""
        imported = [] if self.imported is None else [self.imported]
        return [*imported, *(evaluation.run for evaluation in self.evaluations)]

    @property
    def newest_version(self) -> Version | None:
        """Whose rows were drawn last."""
        last = self.further_draws.select_related("version").order_by("pk").last()
        return self.version if last is None else last.version

    @property
    def can_grow(self) -> bool:
        """Whether a further draw may add rows to it: it is still being rated, and no label was there before it."""
        return self.open and not self.labels_before


class FurtherDraw(models.Model):
    """Rows that were drawn later, of which none was in a part of the split, with an evaluation of their own."""

    test = models.ForeignKey(SealedTest, on_delete=models.CASCADE, related_name="further_draws")
    version = models.ForeignKey(
        Version, on_delete=models.SET_NULL, null=True, related_name="+", help_text="whose rows were drawn"
    )
    evaluation = models.ForeignKey(
        Evaluation,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text="in which people rate them",
    )
    seed = models.BigIntegerField()
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)


class Opening(models.Model):
    """A closed test opened for one version of the metric; counted and kept for ever."""

    test = models.ForeignKey(SealedTest, on_delete=models.CASCADE, db_index=False, related_name="openings")
    number = models.PositiveSmallIntegerField(help_text="from 1")
    metric_version = models.ForeignKey(MetricVersion, on_delete=models.PROTECT, related_name="+")
    run = models.ForeignKey(
        Run, on_delete=models.SET_NULL, null=True, related_name="+", help_text="whose verdicts were compared"
    )
    opened_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    opened_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["test", "number"], name="opening_number_once"),
            models.UniqueConstraint(fields=["test", "metric_version"], name="opening_once_for_a_version"),
        ]


class LicenceState(models.TextChoices):
    VALID = "valid", _("valid")
    LAPSED = "lapsed", _("lapsed")
    SUSPENDED = "suspended", _("suspended")


class Licence(models.Model):
    """What an opening said about a judge. It keeps its figures whatever happens to run, test and data set."""

    opening = models.OneToOneField(Opening, on_delete=models.SET_NULL, null=True, related_name="licence")
    metric_version = models.ForeignKey(MetricVersion, on_delete=models.PROTECT, related_name="licences")
    definition_hash = models.CharField(max_length=64, db_index=True)
    judge = models.CharField(max_length=300)
    use = models.CharField(
        max_length=10, blank=True, default="", help_text="exploring, trends or gates; '': none"
    )
    opening_number = models.PositiveSmallIntegerField()
    figures = models.JSONField(help_text="of core.statistics.licence.LicenceFigures")
    answers = models.JSONField(help_text="values of both: [[row, candidate, response, judge, people]]")
    dev_gap = models.JSONField(null=True, help_text="dev − test agreement: [difference, low, high]")
    thresholds = models.JSONField(help_text="those in force at the opening")
    tier = models.CharField(max_length=11, help_text="one, majority or adjudicated")
    ceiling = models.JSONField(null=True, help_text="how well people agree: {items, exact, kappa}")
    opened_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    labels_before = models.BooleanField()
    dataset_name = models.CharField(max_length=200)
    dataset_version = models.PositiveIntegerField()
    opened_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    lapse_told = models.BooleanField(default=False, help_text="webhooks were told that its date has come")
    fingerprints = models.JSONField(
        null=True, help_text="of the judges' servers in the test; null: not known"
    )

    class Meta:
        indexes = [models.Index(fields=["metric_version", "-opened_at"], name="licence_newest")]


class Cause(models.TextChoices):
    """What suspended a licence of itself."""

    ALARM = (
        "alarm",
        _("The watch of this judge raised an alarm: its verdicts on the sentinel answers have changed."),
    )
    FINGERPRINT = (
        "fingerprint",
        _("The judge's server has a fingerprint that was not seen in the test: its model may have changed."),
    )


class Suspension(models.Model):
    """A time in which a licence does not hold, until somebody who manages the project lifts it with a reason."""

    licence = models.ForeignKey(Licence, on_delete=models.CASCADE, related_name="suspensions")
    reason = models.TextField(help_text="'' if there is a cause")
    cause = models.CharField(max_length=11, choices=Cause.choices, blank=True, default="", db_default="")
    at = models.DateTimeField(auto_now_add=True)
    lifted_at = models.DateTimeField(null=True)
    lifted_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    lifted_because = models.TextField(blank=True, default="")

    @property
    def sentence(self) -> str:
        """Why, in the reader's language."""
        return str(self.get_cause_display()) if self.cause else self.reason


class LicenceThresholds(models.Model):
    """A project's own thresholds; a change touches no licence that was given."""

    project = models.OneToOneField(Project, on_delete=models.CASCADE, related_name="licence_thresholds")
    trends_rate = models.FloatField(default=USUAL.trends_rate)
    trends_kappa = models.FloatField(default=USUAL.trends_kappa)
    gates_rate = models.FloatField(default=USUAL.gates_rate)
    gates_kappa = models.FloatField(default=USUAL.gates_kappa)
    fingerprints_suspend = models.BooleanField(
        default=True,
        db_default=True,
        help_text="whether a server fingerprint that was not seen in the test suspends a licence",
    )

    def values(self) -> Thresholds:
        return Thresholds(self.trends_rate, self.trends_kappa, self.gates_rate, self.gates_kappa)


class Measurement(models.Model):
    """A metric of the gallery measured with a judge of the project: its calls, its verdicts, and the record that they
    led to. All stay listed, also those that failed or were stopped."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="measurements")
    card = models.CharField(max_length=60, help_text="the metric's id in the gallery")
    language = models.CharField(max_length=2, help_text="of the prompt")
    endpoint = models.ForeignKey(Endpoint, on_delete=models.SET_NULL, null=True, related_name="+")
    model = models.CharField(max_length=300, help_text="the endpoint's model")
    labels = models.ForeignKey(
        RunMetric,
        on_delete=models.CASCADE,
        null=True,
        related_name="+",
        help_text="the criterion that people rated, or a metric with imported verdicts of people",
    )
    look = models.ForeignKey(
        Look,
        on_delete=models.CASCADE,
        null=True,
        related_name="+",
        help_text="whose answers people passed or failed; with no `labels` either: the gallery's examples",
    )
    group = models.ForeignKey(
        NoteGroup, on_delete=models.SET_NULL, null=True, related_name="+", help_text="of the look: it fails"
    )
    data_name = models.CharField(max_length=420, blank=True, default="", help_text="'': the examples")
    definition = models.TextField(help_text="JSON of the MetricDefinition")
    answers = models.PositiveIntegerField(help_text="labelled answers")
    most_calls = models.PositiveIntegerField(help_text="its budget")
    calls = models.PositiveIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    cost = models.FloatField(null=True, help_text="in `currency`; null: the endpoint has no prices")
    currency = models.CharField(max_length=8, blank=True, default="")
    results = models.JSONField(
        default=dict, help_text="{key of an answer: [the judge's verdict, reason, people's verdict, row]}"
    )
    record = models.JSONField(default=dict, help_text="as in record.json; empty until an answer was judged")
    problem = models.CharField(max_length=40, blank=True, default="", help_text="code: what ended it early")
    problem_detail = models.TextField(blank=True, default="")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["project", "card", "-id"], name="measurement_of_card")]


class PromptSuggestion(ModelDraft):
    """A better template for a judge of a version, suggested by a model from disagreements on dev and train rows.
    Somebody takes it into their draft of the prompt, or closes it."""

    split = models.ForeignKey(Split, on_delete=models.CASCADE, related_name="suggestions")
    metric_version = models.ForeignKey(
        MetricVersion, on_delete=models.CASCADE, related_name="+", help_text="whose prompt it changes"
    )
    judge = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="whose template, by its place among the judges, from 0"
    )
    template = models.TextField(blank=True, default="")
    run = models.ForeignKey(
        Run, on_delete=models.SET_NULL, null=True, related_name="+", help_text="over the dev rows"
    )
