"""A metric whose judge scores alpha 4, other candidates 6, and 9 for any prompt with STRICT in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evalsite.accounts.models import Project, User
from judging.core.judges.scripted import Received, ScriptedJudge
from judging.metrics.models import Metric
from judging.metrics.services import metric_create
from tests.make import a_metric


@pytest.fixture
def judge() -> Iterator[ScriptedJudge]:
    def reply(asked: Received) -> str:
        return "[[9]]" if "STRICT" in asked.prompt else "[[4]]" if "alpha" in asked.prompt else "[[6]]"

    with ScriptedJudge(reply) as server:
        yield server


@pytest.fixture
def metric(project: Project, judge: ScriptedJudge, alice: User) -> Metric:
    return metric_create(project=project, definition=a_metric(judge.url), user=alice)
