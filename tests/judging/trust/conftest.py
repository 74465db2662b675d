"""Thirty rows that a judge passes every second one of."""

from __future__ import annotations

import pytest

from evalsite.accounts.models import Project
from judging.core.metric_definition import MetricDefinition
from judging.metrics.models import Metric
from judging.metrics.services import metric_create
from judging.records.models import Run
from tests.judging.judged import JUDGE_URL, a_judged_run, said
from tests.make import a_metric

ROWS = 30
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
