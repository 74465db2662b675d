"""A response with its own earlier turns is judged, shown and exported with that conversation."""

from __future__ import annotations

import json
import threading

import pytest
from django.http import QueryDict

from datasets.models import Response, Row, Version
from datasets.versions.references import references_made
from evalsite.accounts.models import Project, User
from judging.core.judges.scripted import ScriptedJudge
from judging.engine import run_worker
from judging.metrics.editor.samples import choose_sample
from judging.metrics.lint import answers_of
from judging.people import assignments
from judging.people.item_view import shown_to
from judging.records.models import Judgement, Run
from judging.transfer.export.records import records
from tests.conftest import ClientOf
from tests.judging.people.make import make_evaluation
from tests.make import a_metric, a_run, a_version

pytestmark = pytest.mark.django_db
TEMPLATE = "{{ data.history }} | {{ data.question }} | {{ data.gt }} | {{ data.messages[1].content }}"
PREPROCESS = "def preprocess(data, resp):\n    return data.history"
TURNS = [("user", "one?"), ("assistant", "theirs"), ("user", "two?"), ("assistant", "expected")]
MESSAGES = [{"role": role, "content": content} for role, content in TURNS]
OWN = [MESSAGES[0], {"role": "assistant", "content": "mine"}]


@pytest.fixture
def version(project: Project) -> Version:
    """One row of two turns. alpha answers in the row's conversation, beta has its own earlier turns."""
    made = a_version(project, rows=1)
    Row.objects.filter(version=made).update(raw=json.dumps({"messages": MESSAGES}))
    own = json.dumps({"content": "beta says", "earlier_messages": OWN})
    Response.objects.filter(row__version=made, candidate__name="beta").update(raw=own)
    return made


@pytest.mark.django_db(transaction=True)
def test_a_judge_reads_each_answer_in_its_own_conversation(
    project: Project, version: Version, alice: User, client_of: ClientOf
) -> None:
    with ScriptedJudge(reply=lambda _: "Score: [[8]]") as judge:
        run = a_run(version, a_metric(judge.url, template=TEMPLATE, preprocess=PREPROCESS))
        run_worker.work("test:1:1", stop=threading.Event(), only=run.pk)
    asked = {one["model"]: one["judges"][0]["request"]["messages"][-1]["content"] for one in records(run)}
    assert asked == {
        "alpha": "[USER] one?\n[BOT] theirs | two? | expected | theirs",
        "beta": "[USER] one?\n[BOT] mine | two? | expected | mine",
    }
    scripted = {one["model"]: one["preprocess"]["result"] for one in records(run)}
    assert scripted == {"alpha": "[USER] one?\n[BOT] theirs", "beta": "[USER] one?\n[BOT] mine"}
    page = client_of(alice).get(address_of(run, "beta")).content.decode()
    assert "theirs" not in page


def address_of(run: Run, model: str) -> str:
    judgement = Judgement.objects.get(run=run, candidate__name=model)
    return f"/p/physics/runs/{run.pk}/judgements/{judgement.pk}/"


def test_previews_and_lint_see_the_answers_own_conversation(project: Project, version: Version) -> None:
    response = Response.objects.get(candidate__name="beta")
    sample = choose_sample(project, QueryDict(f"row_response={response.candidate_id}:1"))
    assert sample is not None
    assert sample.item.data["history"] == "[USER] one?\n[BOT] mine"
    assert [data["history"][-6:] for _line, data, _response in answers_of(version)] == ["theirs", "] mine"]


def test_a_rater_sees_one_answer_in_its_own_conversation(
    project: Project, version: Version, rita: User
) -> None:
    beta = list(version.candidates.filter(name="beta"))
    choice = {"candidates": beta}
    evaluation = make_evaluation(project, [rita], version=version, side_by_side=False, choice=choice)
    (held,) = assignments.claim(evaluation=evaluation, user=rita, count=1)
    assert [one["content"] for one in shown_to(held).messages] == ["one?", "mine", "two?"]


def test_a_rater_sees_two_answers_each_in_its_own_conversation(
    project: Project, version: Version, rita: User
) -> None:
    evaluation = make_evaluation(project, [rita], version=version)
    (held,) = assignments.claim(evaluation=evaluation, user=rita, count=1)
    seen = shown_to(held)
    assert [one["content"] for one in seen.messages] == ["one?"]
    sides = {side.content: side.before[0]["content"] for side in (seen.left, seen.right) if side}
    assert sides == {"alpha says 1.1": "theirs", "beta says": "mine"}


def test_the_reference_of_a_legacy_row_keeps_the_turns_before_it(project: Project) -> None:
    version = a_version(project, rows=1)
    version.format = "legacy_jsonl"
    version.save()
    turns = [{"prompt": "one?", "response": "theirs"}, {"prompt": "two?", "response": "expected"}]
    Row.objects.filter(version=version).update(raw=json.dumps({"conversation": turns}))
    _candidate, references = references_made(version, list(Row.objects.filter(version=version)))
    raw = Response.objects.get(pk__in=references.values()).raw
    assert json.loads(raw)["earlier_messages"] == MESSAGES[:2]
