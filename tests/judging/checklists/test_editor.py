"""The metric editor of a checklist: the prompt of each criterion, and trials about one or all of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalsite.accounts.models import Project, User
from judging.core.judges.scripted import Received, ScriptedJudge
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.endpoints.models import Endpoint
from judging.metrics.models import Metric
from judging.metrics.selectors import newest_version
from judging.metrics.services import metric_create
from tests.conftest import ClientOf
from tests.judging.checklists.helpers import RUBRIC, TEMPLATE, with_rubrics
from tests.judging.metrics.conftest import form_of

pytestmark = pytest.mark.django_db
METRICS = "/p/physics/metrics/"
ALL = (
    '{"criteria": [{"id": "1", "reasoning": "it does", "verdict": "met"}, {"id": "3", "verdict": "not met"}]}'
)


def said(request: Received) -> str:
    if "criterion" not in request.prompt and "names a dose" in request.prompt and "is kind" in request.prompt:
        return ALL
    return "Verdict: " + ("met" if "kind" in request.prompt else "not met")


@pytest.fixture
def metric(project: Project, alice: User) -> Any:
    with_rubrics(project, [RUBRIC])
    with ScriptedJudge(said) as server:
        endpoint = Endpoint.objects.create(
            project=project,
            name="Live",
            url=server.url,
            model="m",
            input_price=1,
            output_price=1,
            currency="USD",
        )
        judge = JudgeModel(name="Live", endpoint=endpoint.pk, template=TEMPLATE)
        definition = MetricDefinition(
            name="Points", judges=(judge,), gives="checklist", min_score=0, max_score=1
        )
        yield metric_create(project=project, definition=definition, user=alice)


def tries(client: Any, metric: Metric, address: str = "try/", **typed: object) -> list[dict[str, str]]:
    answer = client.post(METRICS + address, form_of(metric, **typed))
    return [json.loads(line) for line in b"".join(answer.streaming_content).splitlines() if line]


def test_the_prompt_of_each_criterion_is_shown(metric: Metric, alice: User, client_of: ClientOf) -> None:
    typed = form_of(metric, row_criterion="2")
    page = client_of(alice).post(METRICS + "preview/", typed, headers={"HX-Request": "true"}).text
    assert '<option value="2" selected>2 · is kind</option>' in page
    assert 'title="criterion.text&nbsp;· line 3">is kind</mark>' in page


def test_one_criterion_is_tried(metric: Metric, alice: User, client_of: ClientOf) -> None:
    *_pieces, end = tries(client_of(alice), metric, row_criterion="2")
    assert "met</mark>" in end["html"]


def test_all_criteria_are_tried_one_after_another(metric: Metric, alice: User, client_of: ClientOf) -> None:
    *pieces, end = tries(client_of(alice), metric, "try/?all=1")
    assert [piece["text"] for piece in pieces if piece["kind"] == "wait"][-1] == "3 of 3 criteria done."
    assert [end["html"].count(f">{outcome}</span>") for outcome in ("met", "not met")] == [1, 2]
    assert "USD" in end["html"]


def test_all_criteria_at_once_are_one_request(metric: Metric, alice: User, client_of: ClientOf) -> None:
    template = "{% for each in criteria %}{{ each.id }}. {{ each.text }} {% endfor %}"
    typed: dict[str, Any] = {"at_once": "on", "judge-0-template": template}
    *_pieces, end = tries(client_of(alice), metric, **typed)
    assert [end["html"].count(f">{outcome}</span>") for outcome in ("met", "not met", "can&#x27;t tell")] in (
        [1, 1, 1],
        [1, 1, 0],
    )
    assert "it does" in end["html"]


def test_the_choice_is_saved(metric: Metric, alice: User, client_of: ClientOf) -> None:
    client_of(alice).post(f"{METRICS}{metric.pk}/", form_of(metric, at_once="on", ask_again="0"))
    version = newest_version(metric)
    assert version is not None
    assert MetricDefinition.from_json(version.definition).at_once
