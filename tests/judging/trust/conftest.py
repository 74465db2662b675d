"""Thirty rows that a judge passes every second one of."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evalsite.accounts.models import Project, User
from judging.core.licensing import Sizes
from judging.core.metric_definition import MetricDefinition
from judging.metrics.models import Metric
from judging.metrics.services import metric_create
from judging.records.models import Run, RunMetric
from judging.trust.drawing import Asking, sealed_test_draw
from judging.trust.models import SealedTest, Split
from judging.trust.sources import Source
from tests.judging.judged import JUDGE_URL, a_judged_run, said
from tests.judging.people.make import rate_each
from tests.make import a_metric

Draw = Callable[..., Split]
ROWS = 30
WRONG = (2, 3, 5, 8, 13, 21)
"""Lines on which Rita and the judge differ."""
DEFINITION = a_metric(JUDGE_URL, gives="pass_fail", parse="bool")


@pytest.fixture
def definition() -> MetricDefinition:
    return DEFINITION


@pytest.fixture
def rows() -> int:
    return ROWS


@pytest.fixture
def metric(project: Project, definition: MetricDefinition) -> Metric:
    return metric_create(project=project, definition=definition, user=None)


@pytest.fixture
def run(project: Project, metric: Metric, definition: MetricDefinition, rows: int) -> Run:
    """The judge passes every second row."""
    run = a_judged_run(
        project, lambda place: said(place % 2 == 0), rows=rows, metric=definition, models=["alpha"]
    )
    run.metrics.update(metric_version=metric.versions.get())
    return run


@pytest.fixture
def draw(run: Run, metric: Metric, alice: User, rita: User) -> Draw:
    """Draw rows of the run for Rita to rate; with an overlap of two for Alice too."""

    def drawn(sizes: Sizes, overlap: int = 1) -> Split:
        return sealed_test_draw(
            metric=metric,
            definition=DEFINITION,
            source=Source(run.version, run),
            sizes=sizes,
            user=alice,
            asking=Asking([rita, alice][:overlap], overlap),
            seed=5,
        )

    return drawn


@pytest.fixture
def split(draw: Draw, rita: User) -> Split:
    """Ten rows of each part, rated by Rita as the judge did, but for six."""
    split = draw(Sizes(10, 10, 10))
    evaluation = SealedTest.objects.get(split=split).evaluation
    assert evaluation is not None
    rate_each(evaluation, rita, lambda item: (item.row.line % 2 == 1) != (item.row.line in WRONG))
    return Split.objects.get(pk=split.pk)


@pytest.fixture
def judged(run: Run) -> RunMetric:
    return run.metrics.select_related("run__version__dataset", "metric_version").get()
