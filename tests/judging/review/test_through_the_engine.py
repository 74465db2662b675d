"""A run judged over HTTP, as shown on pages and in downloads."""

from __future__ import annotations

import json
import threading

import pytest
from django.urls import reverse

from evalsite.accounts.models import Project, User
from judging.core.judges import scripted
from judging.core.judges.scripted import Answer, Received, ScriptedJudge
from judging.engine import run_worker
from judging.records.models import Run
from judging.transfer.export.files import jsonl_lines
from tests.conftest import ClientOf
from tests.judging.judged import first_of
from tests.make import a_metric, a_run, a_version

pytestmark = pytest.mark.django_db(transaction=True)
PREPROCESS = """
def preprocess(data, resp):
    data.n = len(resp.content)
    print('length', data.n)
    return data.n
"""


def answer(asked: Received) -> Answer | str:
    """Reply to alpha's answers with reasoning and NUL characters; refuse beta's with HTTP 403."""
    if "beta" in asked.prompt:
        return scripted.refusal(403, "not this one")
    return Answer(content="Good \0. Score: [[8]]", reasoning="I compared \0 them.")


@pytest.fixture
def run(project: Project) -> Run:
    with ScriptedJudge(reply=answer) as judge:
        run = a_run(a_version(project), a_metric(judge.url, preprocess=PREPROCESS))
        run_worker.work("test:1:1", stop=threading.Event(), only=run.pk)
    return Run.objects.get(pk=run.pk)


def test_the_download_tells_what_truly_happened(run: Run) -> None:
    scored, failed = (json.loads(line) for line in list(jsonl_lines(run))[:2])
    assert (scored["model"], scored["value"], scored["preprocess"]["printed"]) == ("alpha", 8, "length 14\n")
    assert scored["preprocess"]["changed"]["data"] == {"n": 14}
    assert scored["judges"][0]["request"]["messages"][-1]["content"] == "Q: question 1\nA: alpha says 1.1"
    assert scored["judges"][0]["reply"]["reasoning_content"] == "I compared \ufffd them."
    assert (failed["model"], failed["state"]) == ("beta", "error")
    assert failed["reason"].startswith("forbidden")
    assert [call["status"] for call in failed["judges"][0]["tries"]] == [403]


@pytest.mark.parametrize(
    ("tab", "shown"),
    [
        ("rendered", "alpha says 1.1"),
        ("request", "A: alpha says 1.1"),
        ("reply", "I compared \ufffd them."),
        ("script", "length 14"),
    ],
)
def test_the_page_shows_what_truly_happened(
    run: Run, bob: User, client_of: ClientOf, tab: str, shown: str
) -> None:
    address = reverse("runs:judgement", args=("physics", run.pk, first_of(run).pk))
    assert shown in client_of(bob).get(address, {"tab": tab}).content.decode()
