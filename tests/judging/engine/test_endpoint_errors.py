"""A wrong key or model pauses a run after a few requests, with a message on how to fix it."""

from __future__ import annotations

import pytest
from django.urls import reverse

from evalsite.accounts.models import Project, User
from judging.core.judges.client import RetryPolicy
from judging.core.judges.scripted import Answer, ScriptedJudge, refusal
from judging.endpoints.models import Endpoint
from judging.records.models import Run, RunState
from judging.runs import services
from tests.conftest import ClientOf
from tests.judging.working import an_endpoint, run_on, work, worked_by
from tests.make import a_metric, a_project, a_run, a_version

pytestmark = pytest.mark.django_db(transaction=True)
MAX_FAILURES = RetryPolicy().max_consecutive_failures or 0


def refused(rows: int = 300) -> tuple[Endpoint, Run]:
    """A run whose judge rejects the API key."""
    with ScriptedJudge(refusal(401, "invalid key")) as judge:
        endpoint = an_endpoint(a_project(), judge.url, concurrency=8)
        return endpoint, worked_by(run_on(endpoint, rows), 1)


def test_a_wrong_key_pauses_the_run_after_a_few_errors() -> None:
    _, run = refused()
    assert (run.state, run.problem, run.errors) == (RunState.PAUSED, "bad_key", MAX_FAILURES)
    assert run.problem_detail.startswith("judge: ")
    assert not run.chunks.exclude(owner="").exists()


def test_what_is_under_way_when_it_is_found_out_is_all_that_is_asked_in_vain() -> None:
    _, run = refused()
    assert run.calls <= MAX_FAILURES + 8


def test_a_run_that_was_fixed_goes_on_with_the_rest_and_retries_what_failed() -> None:
    endpoint, run = refused(rows=40)
    with ScriptedJudge("[[5]]") as judge:
        moved_to(run, endpoint, judge.url)
        assert services.run_resume(run)
        assert (worked_by(run, 1).state, Run.objects.get(pk=run.pk).scored) == ("finished", 30)
        assert services.run_retry(run) == MAX_FAILURES
        assert worked_by(run, 1).scored == 40


def test_a_paused_run_is_resumed_with_its_errors_at_once() -> None:
    endpoint, run = refused(rows=40)
    with ScriptedJudge("[[5]]") as judge:
        moved_to(run, endpoint, judge.url)
        assert services.run_retry(run) == MAX_FAILURES
        assert worked_by(run, 1).scored == 40


def moved_to(run: Run, endpoint: Endpoint, url: str) -> None:
    """Simulate a fixed server by a new URL, since tests cannot start a server at the old one again."""
    metric = run.metrics.get()
    metric.definition = metric.definition.replace(endpoint.url, url)
    metric.save()


def test_refusals_between_replies_do_not_pause() -> None:
    def every_other(asked: object) -> Answer:
        every_other.count += 1  # type: ignore[attr-defined]
        return refusal(403, "not this one") if every_other.count % 2 else Answer("[[5]]")  # type: ignore[attr-defined]

    every_other.count = 0  # type: ignore[attr-defined]
    with ScriptedJudge(every_other) as judge:
        endpoint = an_endpoint(a_project(), judge.url, concurrency=1)
        run = worked_by(run_on(endpoint, 40), 1)
    assert (run.state, run.errors) == (RunState.FINISHED, 20)


def test_a_missing_variable_for_the_key_pauses_without_a_request() -> None:
    run = work(
        a_run(a_version(a_project(), rows=100), a_metric("http://127.0.0.1:9/v1", api_key_env="NOWHERE_SET"))
    )
    assert (run.state, run.problem, run.calls) == (RunState.PAUSED, "key_missing", 0)


@pytest.mark.django_db
def test_the_page_says_what_to_do(project: Project, alice: User, client_of: ClientOf) -> None:
    run = a_run(a_version(project), a_metric("http://127.0.0.1:9/v1"))
    Run.objects.filter(pk=run.pk).update(
        state="paused", problem="bad_key", problem_detail="judge: no", errors=2
    )
    page = client_of(alice).get(reverse("runs:detail", args=(project.slug, run.pk))).content.decode()
    assert "Enter the key again in the endpoint" in page
    assert "Resume and retry 2 errors" in page


@pytest.mark.django_db
def test_a_paused_page_shows_that_someone_resumed(project: Project, alice: User, client_of: ClientOf) -> None:
    run = a_run(a_version(project), a_metric("http://127.0.0.1:9/v1"))
    Run.objects.filter(pk=run.pk).update(state="paused", problem="budget_calls", budget_calls=1, calls=1)
    client, address = client_of(alice), reverse("runs:detail", args=(project.slug, run.pk))
    asks = {"seen": "paused"}
    assert "HX-Refresh" not in client.get(address, asks, headers={"HX-Request": "true"})
    Run.objects.filter(pk=run.pk).update(state="running", problem="")
    assert client.get(address, asks, headers={"HX-Request": "true"})["HX-Refresh"] == "true"
