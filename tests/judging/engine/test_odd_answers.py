"""Empty or cut-off answers are flagged on their judgements, whether uploaded or generated."""

from __future__ import annotations

import json
import threading

import pytest
from django.urls import reverse

from datasets.models import Response, Version
from evalsite.accounts.models import Project, User
from judging.core.judges.scripted import ScriptedJudge
from judging.engine import run_worker
from judging.people import assignments
from judging.records.models import Judgement
from tests.conftest import ClientOf
from tests.judging.people.make import give, make_evaluation
from tests.make import a_metric, a_run, a_version


@pytest.fixture
def version(project: Project) -> Version:
    """Four rows: a normal answer, an empty one, a cut-off one, and a tool call."""
    made = a_version(project, rows=4, models=["alpha"])
    answers = [
        {"content": "fine"},
        {"content": " "},
        {"content": "half", "finish_reason": "length"},
        {"content": None, "tool_calls": [{"type": "function"}]},
    ]
    for response, answer in zip(Response.objects.order_by("row__line"), answers, strict=True):
        response.raw = json.dumps(answer)
        response.save(update_fields=["raw"])
    return made


def flags() -> list[str]:
    return list(Judgement.objects.order_by("row__line").values_list("flags", flat=True))


EXPECTED = ["", "answer_empty", "answer_truncated", ""]


@pytest.mark.django_db(transaction=True)
def test_uploaded_answers_are_flagged_and_found_by_the_filter(
    version: Version, alice: User, client_of: ClientOf
) -> None:
    with ScriptedJudge(lambda _asked: "[[5]]") as judge:
        run = a_run(version, a_metric(judge.url))
        run_worker.work("test:1:1", stop=threading.Event(), only=run.pk)
    assert flags() == EXPECTED
    page = client_of(alice).get(
        reverse("runs:judgements", args=("physics", run.pk)), {"flag": "answer_empty"}
    )
    assert [line.judgement.row.line for line in page.context["page"].lines] == [2]


@pytest.mark.django_db
def test_human_verdicts_on_them_are_flagged_too(version: Version, project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], version=version, side_by_side=False)
    while held := assignments.claim(evaluation=evaluation, user=rita, count=1):
        give(held[0], 3)
    assert flags() == EXPECTED
