"""A run of sixty answers, of which the judge failed every sixth, and passed one of those that people fail."""

from __future__ import annotations

import pytest

from evalsite.accounts.models import Project
from judging.records.models import Run, RunMetric
from tests.judging.judged import JUDGE_URL, a_judged_run, said
from tests.make import a_metric


@pytest.fixture
def run(project: Project) -> Run:
    metric = a_metric(JUDGE_URL, gives="pass_fail", parse="bool")
    return a_judged_run(project, lambda place: said(place % 6 != 0), rows=60, metric=metric, models=["alpha"])


@pytest.fixture
def judged(run: Run) -> RunMetric:
    return run.metrics.get()
