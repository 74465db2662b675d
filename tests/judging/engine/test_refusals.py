"""A judge's reply that its server refused, filtered or cut off is unparsed: its words are kept and it is not sent
again."""

from __future__ import annotations

import json

import pytest

from evalsite.accounts.models import Project
from judging.core.judges.scripted import Answer, ScriptedJudge, refusal
from judging.records.models import Judgement, Run
from tests.judging.working import work
from tests.make import a_metric, a_run, a_version

pytestmark = pytest.mark.django_db(transaction=True)


def judged_by(project: Project, answer: Answer, **metric: object) -> tuple[Judgement, int]:
    """One judgement with this answer of the judge's server, and the number of requests."""
    with ScriptedJudge(answer) as judge:
        run: Run = work(a_run(a_version(project, rows=1, models=["alpha"]), a_metric(judge.url, **metric)))
        return run.judgements.get(), len(judge.requests)


def refused_document(**message: object) -> Answer:
    """OpenAI's reply with a refusal instead of content."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return Answer(body=json.dumps({"choices": [choice]}).encode())


REFUSALS = [
    (Answer("Score: [[9]]", finish_reason="content_filter"), "Score: [[9]]"),
    (Answer("", finish_reason="sensitive"), ""),
    (refused_document(content=None, refusal="I can't help."), "I can't help."),
    (refusal(400, "Filtered by policy.", code="content_filter"), "Filtered by policy."),
    (refusal(400, "data_inspection_failed: no"), "data_inspection_failed: no"),
]


@pytest.mark.parametrize(("answer", "words"), REFUSALS)
def test_a_refused_reply_is_unparsed_with_its_words_and_sent_once(
    project: Project, answer: Answer, words: str
) -> None:
    judgement, requests = judged_by(project, answer)
    reply = judgement.replies.get()
    assert (judgement.state, judgement.reason, requests) == ("unparsed", "refusal", 1)
    assert (reply.content, reply.error) == (words, "")


def test_a_users_expression_does_not_read_a_refusal(project: Project) -> None:
    answer = refusal(400, "Code 7: blocked by the content filter.")
    judgement, _requests = judged_by(project, answer, parse={"regex": "Code ([0-9])"})
    assert (judgement.state, judgement.reason) == ("unparsed", "refusal")


def test_an_exhausted_quota_stays_an_error(project: Project) -> None:
    judgement, _requests = judged_by(project, refusal(429, "You exceeded your current quota"))
    assert (judgement.state, judgement.reason) == ("error", "quota")


def test_a_reply_that_ended_while_thinking_is_cut_off(project: Project) -> None:
    judgement, requests = judged_by(project, Answer("", reasoning="Let me", finish_reason="length"))
    assert (judgement.state, judgement.reason, requests) == ("unparsed", "cut_off", 1)
    assert judgement.replies.get().reasoning == "Let me"
