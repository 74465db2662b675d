"""The reply cache: identical requests to a judge are sent once per project, if the run allows it."""

from __future__ import annotations

import json

import pytest

from evalsite.accounts.models import User
from judging.core.judges import scripted
from judging.core.judges.scripted import ScriptedJudge
from judging.engine.reply_cache import digest_of
from judging.records.models import JudgeReply, Run
from judging.runs.services import RunOptions
from tests.conftest import ClientOf
from tests.judging.working import work
from tests.make import a_metric, a_project, a_run, a_version

pytestmark = pytest.mark.django_db(transaction=True)
COLD = {"params": {"temperature": 0}}
REUSE = {"options": RunOptions(reuse_replies=True)}


def test_a_second_run_asks_nothing_that_the_first_has_asked() -> None:
    with ScriptedJudge("[[8]]") as judge:
        version, metric = a_version(a_project()), a_metric(judge.url, **COLD)
        first = work(a_run(version, metric, **REUSE))
        again = work(a_run(version, metric, **REUSE))
        assert len(judge.requests) == 6
    assert (first.reused, again.reused, again.scored) == (0, 6, 6)
    assert (again.calls, again.prompt_tokens, again.completion_tokens) == (0, 0, 0)


def test_a_copied_reply_shows_where_it_was_asked_first() -> None:
    with ScriptedJudge("[[8]]") as judge:
        version, metric = a_version(a_project(), rows=1, models=("alpha",)), a_metric(judge.url, **COLD)
        work(a_run(version, metric, name="first", **REUSE))
        again = work(a_run(version, metric, **REUSE))
    copied = JudgeReply.objects.get(judgement__run=again)
    assert copied.copy_of is not None
    assert copied.copy_of.judgement.run.name == "first"
    assert (copied.content, json.loads(copied.calls)) == ("[[8]]", [])


@pytest.mark.parametrize(
    ("metric", "run"),
    [({"params": {"temperature": 0.7}}, REUSE), ({}, REUSE), (COLD, {})],
    ids=["temperature above 0", "unknown", "refused"],
)
def test_what_may_be_answered_otherwise_is_asked_again(
    metric: dict[str, object], run: dict[str, object]
) -> None:
    with ScriptedJudge("[[8]]") as judge:
        version, definition = a_version(a_project()), a_metric(judge.url, **metric)
        for _ in range(2):
            assert work(a_run(version, definition, **run)).reused == 0
        assert len(judge.requests) == 12


def test_where_it_is_asked_for_any_temperature_counts() -> None:
    with ScriptedJudge("[[8]]") as judge:
        version, metric = a_version(a_project()), a_metric(judge.url, params={"temperature": 0.7})
        options = {"options": RunOptions(reuse_at_any_temperature=True)}
        assert [work(a_run(version, metric, **options)).reused for _ in range(2)] == [0, 6]
        assert len(judge.requests) == 6


def test_replies_never_pass_to_another_project() -> None:
    with ScriptedJudge("[[8]]") as judge:
        for name in ("one", "two"):
            work(a_run(a_version(a_project(name)), a_metric(judge.url, **COLD), **REUSE))
        assert len(judge.requests) == 12


def test_equal_requests_of_one_run_are_asked_once_though_all_begin_together() -> None:
    with ScriptedJudge(lambda _: scripted.Answer("[[8]]", delay=0.2)) as judge:
        metric = a_metric(judge.url, template="What is {{ 1 }}?", **COLD)
        run = work(a_run(a_version(a_project(), rows=50), metric, **REUSE))
        assert len(judge.requests) == 1
    assert (run.scored, run.reused) == (100, 99)
    assert not JudgeReply.objects.filter(calls="[]", copy_of=None).exists()


def test_each_repeat_is_asked() -> None:
    with ScriptedJudge("[[8]]") as judge:
        version = a_version(a_project(), rows=1, models=("alpha",))
        work(a_run(version, a_metric(judge.url, repeats=3, **COLD), **REUSE))
        assert len(judge.requests) == 3


def test_a_failure_is_not_remembered() -> None:
    with ScriptedJudge([scripted.Answer(), "[[8]]"]) as judge:
        version = a_version(a_project(), rows=1, models=("alpha",))
        runs = [work(a_run(version, a_metric(judge.url, **COLD), **REUSE)) for _ in range(2)]
    assert [(run.errors, run.scored) for run in runs] == [(1, 0), (0, 1)]


def test_any_difference_is_another_request() -> None:
    request = {"model": "m", "temperature": 0, "messages": [{"role": "user", "content": "x"}]}
    others = [
        digest_of("http://h:1", {**request, "max_tokens": 9}, 0),
        digest_of("http://h:2", request, 0),
        digest_of("http://h:1", request, 1),
    ]
    same = digest_of("http://h:1/v1/", dict(reversed(request.items())), 0)
    assert same == digest_of("http://h:1", request, 0)
    assert len({same, *others}) == 4


def test_a_command_asks_every_time() -> None:
    assert Run._meta.get_field("reuse_replies").default is RunOptions().reuse_replies is False


def test_the_judgements_page_says_where_the_reply_comes_from(olga: User, client_of: ClientOf) -> None:
    with ScriptedJudge("[[8]]") as judge:
        project = a_project()
        version, metric = a_version(project, rows=1, models=("alpha",)), a_metric(judge.url, **COLD)
        work(a_run(version, metric, name="the first", **REUSE))
        again = work(a_run(version, metric, **REUSE))
    address = f"/p/{project.slug}/runs/{again.pk}/judgements/{again.judgements.get().pk}/?tab=reply"
    assert "first sent in “the first”" in client_of(olga).get(address).text
