"""Lists of the API take as many queries for many items as for few."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalsite.accounts.models import Project, User
from judging.core.metric_definition import MetricDefinition
from judging.metrics.services import metric_create
from judging.records.models import Run
from tests.api import Api
from tests.judging.people.make import make_evaluation
from tests.make import a_version


def make_more(project: Project, word: str) -> None:
    version = a_version(project)
    for number in range(2):
        name = f"{word} {number}"
        metric_create(project=project, definition=MetricDefinition(name=name), user=None)
        Run.objects.create(project=project, name=name, version=version, state="finished")
        make_evaluation(project, version=version, name=f"people {name}")


@pytest.mark.django_db
def test_further_items_take_no_further_queries(alice: User, project: Project) -> None:
    api, queries = Api(alice), []
    api.get("projects")  # notes the token's use
    for word in ("first", "second"):
        make_more(project, word)
        for name in ("datasets", "metrics", "runs", "evaluations"):
            with CaptureQueriesContext(connection) as captured:
                assert api.get(f"projects/physics/{name}").status_code == 200
            queries.append((name, len(captured)))
    assert queries[:4] == queries[4:]
