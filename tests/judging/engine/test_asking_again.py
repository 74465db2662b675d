"""A judge whose reply could not be read is asked once more; every call is kept, shown and paid for."""

from __future__ import annotations

import msgspec
import pytest
from django.urls import reverse

from evalsite.accounts.models import Project, User
from judging.core.judges.scripted import Answer, Received, ScriptedJudge
from judging.engine.budget import Budget
from judging.records.models import Run
from judging.runs.services import RunOptions
from tests.conftest import ClientOf
from tests.judging.working import work
from tests.make import a_metric, a_run, a_version

pytestmark = pytest.mark.django_db(transaction=True)


def asked(
    project: Project, *replies: str | Answer, ask_again: int = 1, **options: object
) -> tuple[Run, list[Received]]:
    """A run with one judgement whose judge gives these replies, and the requests."""
    with ScriptedJudge(replies) as judge:
        metric = msgspec.structs.replace(a_metric(judge.url), ask_again=ask_again)
        run = work(a_run(a_version(project, rows=1, models=["alpha"]), metric, **options))
        return run, judge.requests


def test_a_reply_that_can_be_read_is_not_asked_for_again(project: Project) -> None:
    run, requests = asked(project, "Score: [[7]]")
    assert (run.judgements.get().score, run.calls, len(requests)) == (7, 1, 1)


def test_the_last_reply_counts_and_both_are_paid_for(project: Project) -> None:
    run, requests = asked(project, "7 or 8, I think.", "[[8]]")
    judgement, reply = run.judgements.get(), run.judgements.get().replies.get()
    assert (judgement.score, run.calls, run.prompt_tokens, reply.prompt_tokens) == (8, 2, 20, 20)
    assert [message["role"] for message in requests[1].body["messages"]] == ["user", "assistant", "user"]


def test_nobody_is_asked_more_often_than_the_metric_says(project: Project) -> None:
    run, requests = asked(project, "no idea", ask_again=2)
    assert (run.judgements.get().reason, len(requests)) == ("nothing_offered", 3)


def test_a_refusal_is_not_asked_for_again(project: Project) -> None:
    run, requests = asked(project, Answer("No.", finish_reason="content_filter"))
    assert (run.judgements.get().reason, len(requests)) == ("refusal", 1)


def test_the_budget_ends_asking_again_too(project: Project) -> None:
    _run, requests = asked(project, "no idea", ask_again=2, options=RunOptions(Budget(calls=2)))
    assert len(requests) == 2


def test_one_malformed_reply_in_ten_is_read_the_second_time(project: Project) -> None:
    def every_tenth(received: Received) -> str:
        again = len(received.body["messages"]) > 1
        return "[[6]]" if again else "Hard to say." if len(judge.requests) % 10 == 0 else "Score: [[6]]"

    with ScriptedJudge(every_tenth) as judge:
        metric = msgspec.structs.replace(a_metric(judge.url), ask_again=1)
        run = work(a_run(a_version(project, rows=20, models=["alpha"]), metric))
        again = sum(len(request.body["messages"]) > 1 for request in judge.requests)
    assert (run.scored, run.unparsed) == (20, 0)
    assert run.calls == 20 + again > 20


def test_the_judgements_page_shows_the_earlier_reply(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    run, _requests = asked(project, "Hard to say.", "[[8]]")
    url = reverse("runs:judgement", args=(project.slug, run.pk, run.judgements.get().pk))
    text = client_of(alice).get(url).content.decode()
    assert "Asked again, because this reply could not be read:" in text
    assert "Hard to say." in text
