"""How far a test is: its parts, ratings, openings and licences, and for which versions it can be opened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from judging.core.licensing import DEV, TEST, TRAIN
from judging.metrics.models import Metric
from judging.people.models import Evaluation, Item
from judging.records.models import RunMetric
from judging.trust.answers import Answer
from judging.trust.dev import run_metrics_of, runs_of, values_in
from judging.trust.models import Licence, LicenceState, SealedTest
from judging.trust.selectors import licence_state

RATED, CLOSED, OPENED = "rated", "closed", "opened"


@dataclass(frozen=True, slots=True)
class GivenLicence:
    """A licence and whether it holds now."""

    licence: Licence
    state: LicenceState


@dataclass(frozen=True, slots=True)
class SplitProgress:
    """`evaluations`: in which people rate its rows, one for each draw; `next_evaluation`: the first that is not done.
    `state`: being rated, closed or opened. `ratings` of `needed`, over all parts; `answers`: labelled when it was
    closed. `judged`: whether a version has judged rows of the data set. `licences`, newest first."""

    test: SealedTest
    evaluations: Sequence[Evaluation]
    next_evaluation: Evaluation | None
    state: str
    train: int
    dev: int
    tested: int
    ratings: int
    needed: int
    judged: bool
    licences: Sequence[GivenLicence]

    @property
    def complete(self) -> bool:
        """Whether every item has the ratings asked for."""
        return bool(self.needed) and self.ratings >= self.needed

    @property
    def left(self) -> int:
        return max(0, self.needed - self.ratings)

    @property
    def answers(self) -> int:
        return len(self.test.labels)


def tests_of(metric: Metric) -> QuerySet[SealedTest]:
    """The metric's tests, newest first; one for each data set."""
    tests = SealedTest.objects.filter(split__metric=metric, split__dataset__deleted_at=None)
    parts = (
        "split__metric__project",
        "split__dataset",
        "version__dataset",
        "evaluation__run",
        "imported",
        "closed_by",
    )
    return tests.select_related(*parts, "split__created_by").order_by("-pk")


def progress_of(test: SealedTest) -> SplitProgress:
    """How far this test is."""
    parts = Counter(test.split.rows.values_list("part", flat=True))
    ratings = needed = 0
    evaluations = test.evaluations
    items = Item.objects.filter(evaluation__in=evaluations, needed__gt=0)
    unrated: set[int] = set()
    for evaluation, rated, wanted in items.values_list("evaluation", "rated", "needed"):
        ratings, needed = ratings + min(rated, wanted), needed + wanted
        if rated < wanted:
            unrated.add(evaluation)
    if test.imported_id is not None:
        ratings, needed = ratings + len(test.labels), needed + len(test.labels)
    licences = Licence.objects.filter(opening__test=test).select_related("metric_version").order_by("-pk")
    given = [GivenLicence(licence, licence_state(licence)) for licence in licences]
    state = RATED if test.open else OPENED if given else CLOSED
    judged = runs_of(test.split.metric, test.split).exists()
    return SplitProgress(
        test,
        evaluations,
        next((each for each in evaluations if each.pk in unrated), None),
        state,
        parts[TRAIN],
        parts[DEV],
        parts[TEST],
        ratings,
        needed,
        judged,
        given,
    )


@dataclass(frozen=True, slots=True)
class ToOpen:
    """A run of a version for which the test was not opened yet, and how many of the labelled answers it scored."""

    run_metric: RunMetric
    version: int
    scored: int


def candidates_to_open(test: SealedTest) -> list[ToOpen]:
    """Newest version first, each in a run over as many answers as possible, since it is opened once. Only how many
    answers were scored is told, never how."""
    opened = set(test.openings.values_list("metric_version", flat=True))
    labelled = {Answer.of(label) for label in test.labels}
    offered = []
    run_metrics = run_metrics_of(test.split.metric, test.split, fullest=True) if labelled else []
    for run_metric in run_metrics:
        version = run_metric.metric_version
        if version is None or version.pk in opened:
            continue
        scored = len(labelled & values_in(test.split, run_metric).keys())
        if scored:
            offered.append(ToOpen(run_metric, version.number, scored))
    return offered
