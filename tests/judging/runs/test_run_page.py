"""The page of a run: progress, problems and controls."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from datasets.models import Version
from evalsite.accounts.models import Project, User
from evalsite.tasks import workers
from judging.endpoints import limiter
from judging.endpoints.models import Endpoint, EndpointLoad
from judging.engine import planning, stopping
from judging.records.models import Run, RunState
from tests.conftest import ClientOf
from tests.judging.judged import JUDGE_URL, a_judged_run, failed, judge, said
from tests.make import a_metric, a_run, a_version

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture
def waiting(project: Project) -> Run:
    """A planned run waiting for a worker."""
    run = a_run(a_version(project), a_metric(JUDGE_URL))
    planning.plan(run.pk)
    return Run.objects.get(pk=run.pk)


def address(run: Run, name: str = "detail") -> str:
    return reverse(f"runs:{name}", args=("physics", run.pk))


def text(response: HttpResponse) -> str:
    return re.sub(r"\s+", " ", response.content.decode())


def test_a_finished_run_says_so_in_markup_and_asks_no_more(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    page = text(client_of(alice).get(address(a_judged_run(project))))
    assert 'data-run-state="finished"' in page
    assert "every 1s" not in page


def test_names_of_candidates_stay_whole_where_the_line_ends(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    page = text(client_of(alice).get(address(a_judged_run(project))))
    assert '<span class="whole">alpha</span>, <span class="whole">beta</span>' in page


def test_a_running_run_asks_every_second(waiting: Run, alice: User, client_of: ClientOf) -> None:
    page = text(client_of(alice).get(address(waiting)))
    assert 'data-run-state="running"' in page
    assert 'hx-trigger="every 1s"' in page


def test_a_paused_run_asks_too_since_its_last_calls_still_end(
    waiting: Run, alice: User, client_of: ClientOf
) -> None:
    stopping.run_pause(waiting)
    page = text(client_of(alice).get(address(waiting)))
    section = page[page.index('<section class="stack" id="run-progress"') :]
    assert 'hx-trigger="every 1s"' in section[: section.index(">")]
    Run.objects.filter(pk=waiting.pk).update(scored=1)
    part = text(client_of(alice).get(address(waiting), {"seen": "paused"}, headers=HTMX))
    assert re.search(r"<strong>1</strong> <span[^>]*>/ ", part)


def test_a_budget_being_typed_stays_while_the_figures_change(
    waiting: Run, alice: User, client_of: ClientOf
) -> None:
    stopping.run_pause(waiting)
    Run.objects.filter(pk=waiting.pk).update(problem="budget_calls", budget_calls=1)
    page = text(client_of(alice).get(address(waiting)))
    section = page[page.index('<section class="stack" id="run-progress"') :]
    assert "hx-trigger" not in section[: section.index(">")]
    figures = section[section.index('id="run-figures"') :]
    assert 'hx-select="#run-figures"' in figures[: figures.index(">")]
    assert 'name="budget_calls"' in section[: section.index('id="run-figures"')]


def test_a_poll_gets_the_progress_alone(waiting: Run, alice: User, client_of: ClientOf) -> None:
    part = client_of(alice).get(address(waiting), {"seen": "running"}, headers=HTMX)
    assert b"<html" not in part.content
    assert b'id="run-progress"' in part.content


def test_a_poll_after_a_change_of_state_draws_the_page_again(
    waiting: Run, alice: User, client_of: ClientOf
) -> None:
    judge(waiting, lambda _: said(5))
    answer = client_of(alice).get(address(waiting), {"seen": "running"}, headers=HTMX)
    assert answer.headers["HX-Refresh"] == "true"


def test_the_rate_is_that_since_the_last_poll(waiting: Run, alice: User, client_of: ClientOf) -> None:
    workers.heartbeat(workers.RUNS)
    Run.objects.filter(pk=waiting.pk).update(scored=4)
    before = {"seen": "running", "done": "0", "at": "1", "rate": "0.00000001"}
    part = client_of(alice).get(address(waiting), before, headers=HTMX)
    assert "/s<" in text(part)
    assert "left" in text(part)


@pytest.mark.parametrize("nonsense", ["nan", "inf", "-5", "x", ""])
def test_nonsense_in_a_poll_harms_nothing(
    waiting: Run, alice: User, client_of: ClientOf, nonsense: str
) -> None:
    before = {"seen": "running", "done": nonsense, "at": nonsense, "rate": nonsense}
    assert client_of(alice).get(address(waiting), before, headers=HTMX).status_code == 200


def test_a_missing_worker_is_said_with_what_to_do(waiting: Run, alice: User, client_of: ClientOf) -> None:
    page = text(client_of(alice).get(address(waiting)))
    assert "No worker is running." in page
    assert "manage.py worker" in page


@pytest.mark.parametrize("page", ["list", "judgements", "report", "project"])
def test_every_page_that_waits_for_a_worker_says_so(
    page: str, waiting: Run, alice: User, client_of: ClientOf
) -> None:
    addresses = {
        "list": reverse("runs:list", args=("physics",)),
        "project": reverse("project", args=("physics",)),
    }
    where = addresses.get(page) or address(waiting, page)
    assert "No worker is running." in text(client_of(alice).get(where))
    workers.heartbeat(workers.RUNS)
    assert "No worker is running" not in text(client_of(alice).get(where))


def test_a_living_worker_is_not_missed(waiting: Run, alice: User, client_of: ClientOf) -> None:
    workers.heartbeat(workers.RUNS)
    assert "No worker is running" not in text(client_of(alice).get(address(waiting)))


def test_the_end_of_the_command_that_owns_a_run_is_reported(
    waiting: Run, alice: User, client_of: ClientOf
) -> None:
    Run.objects.filter(pk=waiting.pk).update(only_worker="elsewhere:1:1")
    assert "manage.py evaluate --resume" in text(client_of(alice).get(address(waiting)))


def test_errors_are_counted_by_reason_and_lead_to_their_judgements(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    run = a_judged_run(project, lambda place: failed() if place < 2 else said(5))
    page = client_of(alice).get(address(run))
    assert [(one["code"], one["count"]) for one in page.context["reasons"]] == [("rate_limited", 2)]
    assert f"{address(run, 'judgements')}?state=error&amp;reason=rate_limited" in page.content.decode()


@pytest.mark.parametrize("offered", [True, False])
def test_a_report_is_offered_only_where_something_is_scored(
    offered: bool, project: Project, alice: User, client_of: ClientOf
) -> None:
    run = a_judged_run(project)
    if not offered:
        Run.objects.filter(pk=run.pk).update(scored=0, errors=run.total)
    assert (address(run, "report") in text(client_of(alice).get(address(run)))) is offered


def test_rows_left_out_are_said(project: Project, alice: User, client_of: ClientOf) -> None:
    version = a_version(project)
    Version.objects.filter(pk=version.pk).update(rows=5, left_out_at="2026-01-01T00:00Z")
    version.refresh_from_db()
    run = a_run(version, a_metric(JUDGE_URL))
    assert "2 invalid rows" in text(client_of(alice).get(address(run)))


def test_what_it_judges_by_is_shown_as_frozen(project: Project, alice: User, client_of: ClientOf) -> None:
    metric = a_metric(JUDGE_URL, params={"temperature": 0.5}, system_prompt="Be <b>strict</b>.")
    page = text(client_of(alice).get(address(a_judged_run(project, metric=metric))))
    for shown in (JUDGE_URL, "temperature", "Q: {{ data.question }}", "Be &lt;b&gt;strict&lt;/b&gt;."):
        assert shown in page


def test_a_run_is_paused_and_resumed(waiting: Run, alice: User, client_of: ClientOf) -> None:
    client_of(alice).post(address(waiting, "pause"))
    assert Run.objects.get().state == RunState.PAUSED
    client_of(alice).post(address(waiting, "resume"))
    assert Run.objects.get().state == RunState.RUNNING


def test_a_run_is_cancelled_and_taken_up_again(waiting: Run, alice: User, client_of: ClientOf) -> None:
    client_of(alice).post(address(waiting, "cancel"))
    assert Run.objects.get().state == RunState.CANCELLED
    client_of(alice).post(address(waiting, "resume"))
    assert Run.objects.get().state == RunState.RUNNING


def test_errors_are_retried_and_unparsed_only_if_asked(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    run = a_judged_run(project, lambda place: [failed(), said(None), said(5)][place % 3])
    client_of(alice).post(address(run, "retry"), {"state": "error"})
    after = Run.objects.get(pk=run.pk)
    assert (after.state, after.errors, after.unparsed, after.not_run) == (RunState.RUNNING, 0, 2, 2)


def test_steering_a_run_that_has_ended_is_answered_with_a_sentence(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    run = a_judged_run(project)
    for name in ("pause", "resume", "cancel", "retry"):
        answer = client_of(alice).post(address(run, name), follow=True)
        assert answer.status_code == 200
        assert len(answer.context["messages"]) == 1


@pytest.mark.parametrize("name", ["pause", "resume", "cancel", "retry"])
@pytest.mark.parametrize(("who", "status"), [("bob", 403), ("rita", 403), ("charlie", 404)])
def test_who_may_not_steer_a_run(
    waiting: Run, cast: dict[str, User], client_of: ClientOf, name: str, who: str, status: int
) -> None:
    assert client_of(cast[who]).post(address(waiting, name)).status_code == status
    assert Run.objects.get().state == RunState.RUNNING


@pytest.mark.parametrize("name", ["pause", "resume", "cancel", "retry"])
def test_a_link_steers_nothing(waiting: Run, alice: User, client_of: ClientOf, name: str) -> None:
    assert client_of(alice).get(address(waiting, name)).status_code == 405


def test_a_reviewer_sees_no_buttons_that_steer(waiting: Run, bob: User, client_of: ClientOf) -> None:
    page = text(client_of(bob).get(address(waiting)))
    assert address(waiting, "cancel") not in page


def test_the_list_shows_runs_newest_first_by_pages(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    version = a_version(project, rows=1)
    runs = [a_run(version, a_metric(JUDGE_URL)) for _ in range(53)]
    first = client_of(alice).get(reverse("runs:list", args=("physics",)))
    second = client_of(alice).get(
        reverse("runs:list", args=("physics",)), {"before": first.context["further"]}
    )
    shown = [*first.context["runs"], *second.context["runs"]]
    assert [run for run, _counts in shown] == runs[::-1]


@pytest.mark.parametrize("before", ["x", "-1", "9" * 30, "9" * 5000])
def test_nonsense_in_the_lists_address_harms_nothing(
    project: Project, alice: User, client_of: ClientOf, before: str
) -> None:
    assert (
        client_of(alice).get(reverse("runs:list", args=("physics",)), {"before": before}).status_code == 200
    )


def test_the_number_of_queries_does_not_grow_with_the_run(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    counts = []
    for rows in (2, 40):
        run = a_judged_run(project, lambda place: [failed(), said(5)][place % 2], rows=rows)
        browser = client_of(alice)
        browser.get(address(run))  # computes its figures once
        with CaptureQueriesContext(connection) as queries:
            browser.get(address(run))
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 28


def test_cancelling_before_the_plan_leaves_a_run_that_can_be_taken_up(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    run = a_run(a_version(project), a_metric(JUDGE_URL))
    stopping.run_cancel(run)
    assert client_of(alice).get(address(run)).status_code == 200


def test_the_most_frequent_words_are_with_their_reason(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    words = ["'data.levle' is undefined (line 3)", "'data.x' is undefined (line 1)"]
    run = a_judged_run(project, lambda place: failed("prompt_undefined", words[place % 3 == 0]))
    page = unescape(text(client_of(alice).get(address(run))))
    assert "Most common: 'data.levle' is undefined (line 3)" in page
    assert "data.x" not in page


def test_each_way_in_which_answers_failed_is_reported_with_what_to_do(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    words = ["context_too_long: 9000 tokens", "content_filter", "content_filter"]
    run = a_judged_run(project, lambda place: failed("answer_failed", words[place % 3]))
    page = unescape(text(client_of(alice).get(address(run))))
    filtered, long = page.index("because of this row's text"), page.index("use a model with a larger context")
    assert filtered < long
    assert "× 4" in page[filtered:long]
    assert "× 2" in page[long:]
    assert "Most common" not in page


def run_with_calls(
    project: Project, failed: int, of: int, *, name: str = "judge B", **load: object
) -> tuple[Run, Endpoint]:
    """A run in progress whose endpoint did not answer some of its recent calls."""
    endpoint = Endpoint.objects.create(project=project, name=name, url=JUDGE_URL, model="m")
    run = a_run(a_version(project), a_metric("", endpoint=endpoint.pk))
    planning.plan(run.pk)
    recent = [[number, int(number >= failed)] for number in range(of)]
    EndpointLoad.objects.create(key=f"endpoint {endpoint.pk}", recent=recent, **load)
    workers.heartbeat(workers.RUNS)
    return run, endpoint


def test_the_page_says_how_many_of_the_last_calls_failed_and_how(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    run, endpoint = run_with_calls(project, 12, 40, problem="server_error", problem_status=500)
    page = " ".join(unescape(text(client_of(alice).get(address(run)))).split())
    assert "“judge B”: 12 of the last 40 calls failed (500)." in page
    assert f'href="/p/physics/endpoints/{endpoint.pk}/"' in page
    assert "Waiting for the server" not in page


def test_a_few_failed_calls_are_no_notice(project: Project, alice: User, client_of: ClientOf) -> None:
    run, _ = run_with_calls(project, 2, 40, problem="connect")
    assert "calls failed (" not in text(client_of(alice).get(address(run)))


def test_a_run_whose_server_is_down_waits_for_it_without_an_estimate(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    run, _ = run_with_calls(project, 40, 40, problem="cut", down_since=limiter.now() - 130)
    Run.objects.filter(pk=run.pk).update(scored=1)
    page = " ".join(unescape(text(client_of(alice).get(address(run)))).split())
    assert "40 of the last 40 calls failed (cut off)." in page
    assert "Down for 2 min 10 s." in page
    assert "Waiting for the server" in page
    assert " left</span>" not in page
    assert "Try again" not in page


def test_who_may_retry_is_reported_that_it_uses_the_frozen_metric(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    run = a_judged_run(project, lambda _: failed())
    link = f'href="/p/physics/runs/new/?version={run.version_id}"'
    assert link in text(client_of(alice).get(address(run)))
    assert link not in text(client_of(alice).get(address(a_judged_run(project))))
