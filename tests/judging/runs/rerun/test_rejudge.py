"""Re-judging one judgement or a filter creates new attempts; nothing is overwritten."""

from __future__ import annotations

import pytest
from django.urls import reverse
from msgspec import structs

from evalsite.accounts.models import Project, User
from evalsite.models import AuditEntry
from judging.core.judges.scripted import ScriptedJudge
from judging.core.metric_definition import MetricDefinition
from judging.filters.judgement_filter import Filters
from judging.metrics.models import Metric, MetricVersion
from judging.metrics.services import metric_edit
from judging.records.models import Judgement, JudgeReply, Run, RunState
from judging.runs.rerun.rejudge import other_versions, run_rejudge
from judging.runs.rerun.selection import Selection
from judging.runs.services import ChosenMetric, run_create, run_resume
from tests.conftest import ClientOf
from tests.judging.working import work
from tests.make import a_metric, a_version

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(project: Project, metric: Metric, alice: User) -> Run:
    """Three judgements each of alpha (score 4) and beta (score 6)."""
    version, first = a_version(project), MetricVersion.objects.get(metric=metric)
    chosen = ChosenMetric(a_metric(judge_url(first)), first)
    candidates = list(version.candidates.all())
    made = run_create(
        project=project, name="run", version=version, candidates=candidates, metrics=[chosen], user=alice
    )
    return work(made)


def judge_url(version: MetricVersion) -> str:
    return MetricDefinition.from_json(version.definition).judges[0].url


def stricter(metric: Metric, url: str, user: User) -> MetricVersion:
    changed = a_metric(url, template="STRICT {{ response.content }}")
    metric_edit(metric=metric, definition=changed, user=user, based_on=1)
    return MetricVersion.objects.filter(metric=metric).order_by("-number")[0]


def scores(run: Run) -> dict[tuple[str, int, bool], set[float | None]]:
    found: dict[tuple[str, int, bool], set[float | None]] = {}
    for name, attempt, current, score in run.judgements.values_list(
        "candidate__name", "attempt", "current", "score"
    ):
        found.setdefault((name, attempt, current), set()).add(score)
    return found


def test_what_the_filter_means_is_asked_again_and_nothing_else(run: Run, judge: ScriptedJudge) -> None:
    assert run_rejudge(run=run, selection=Selection(Filters(candidate="alpha")), user=None) == 3
    run = work(run)
    assert len(judge.requests) == 9
    assert scores(run) == {("alpha", 1, False): {4.0}, ("alpha", 2, True): {4.0}, ("beta", 1, True): {6.0}}
    assert (run.scored, run.state, JudgeReply.objects.count()) == (6, "finished", 9)


def test_a_changed_metric_judges_some_by_its_own_prompt(
    run: Run, metric: Metric, judge: ScriptedJudge, alice: User
) -> None:
    version = stricter(metric, judge.url, alice)
    run_rejudge(run=run, selection=Selection(Filters(least=5)), user=alice, version=version)
    assert scores(work(run)) == {
        ("alpha", 1, True): {4.0},
        ("beta", 1, False): {6.0},
        ("beta", 2, True): {9.0},
    }
    assert "STRICT" in run.judgements.get(attempt=2, row__line=1).definition


def test_a_retry_of_it_keeps_to_the_changed_metric(
    run: Run, metric: Metric, judge: ScriptedJudge, alice: User
) -> None:
    version = stricter(metric, judge.url, alice)
    for changed in (version, None):
        run_rejudge(run=run, selection=Selection(Filters(candidate="beta")), user=alice, version=changed)
        work(run)
    assert scores(run)[("beta", 3, True)] == {9.0}


def test_one_item_alone_can_be_judged_again(run: Run) -> None:
    one = run.judgements.order_by("position")[0]
    assert run_rejudge(run=run, selection=Selection(Filters(), one.pk), user=None) == 1
    assert work(run).judgements.filter(attempt=2).count() == 1


def test_an_older_attempt_is_not_judged_again(run: Run) -> None:
    one = run.judgements.order_by("position")[0]
    run_rejudge(run=run, selection=Selection(Filters(), one.pk), user=None)
    work(run)
    assert run_rejudge(run=run, selection=Selection(Filters(), one.pk), user=None) == 0


def test_a_text_search_names_what_is_judged_again(run: Run) -> None:
    assert run_rejudge(run=run, selection=Selection(Filters(q="alpha says 1")), user=None) > 0
    assert set(work(run).judgements.filter(attempt=2).values_list("candidate__name")) == {("alpha",)}


def test_a_version_on_another_scale_is_not_offered(
    run: Run, metric: Metric, judge: ScriptedJudge, alice: User
) -> None:
    metric_edit(
        metric=metric, definition=structs.replace(a_metric(judge.url), max_score=100), user=alice, based_on=1
    )
    assert [one.number for one in other_versions(run.metrics.get())] == [1]


def test_the_page_says_what_it_takes_and_begins(run: Run, alice: User, client_of: ClientOf) -> None:
    client, address = client_of(alice), reverse("runs:judge_again", args=(run.project.slug, run.pk))
    assert "Re-judge 3 items" in client.get(address + "?candidate=beta").content.decode()
    assert client.post(address + "?candidate=beta").status_code == 302
    assert run.judgements.filter(attempt=2).count() == 3
    assert AuditEntry.objects.filter(action="run.judged_again").count() == 1


def test_of_one_item_the_reader_comes_back_to_it_and_sees_the_new_attempt_arrive(
    run: Run, alice: User, client_of: ClientOf
) -> None:
    client, one = client_of(alice), run.judgements.get(position=4)
    place = reverse("runs:judgement", args=(run.project.slug, run.pk, one.pk)) + "?candidate=beta"
    sent = client.post(
        reverse("runs:judge_again", args=(run.project.slug, run.pk)) + f"?candidate=beta&only={one.pk}"
    )
    assert sent["Location"] == place
    assert "Newest attempt:" in client.get(place).text
    asks = {"HX-Request": "true"}
    assert client.get(place, headers=asks).status_code == 204
    work(run)
    assert client.get(place, headers=asks)["HX-Refresh"] == "true"


def test_a_version_is_previewed_before_anything_is_asked(
    run: Run, metric: Metric, judge: ScriptedJudge, alice: User, client_of: ClientOf
) -> None:
    stricter(metric, judge.url, alice)
    client, address = client_of(alice), reverse("runs:judge_again", args=(run.project.slug, run.pk))
    page = client.get(address, {"candidate": "beta", "version": "2"})
    assert "STRICT" in page.text
    assert (page.context["calls"], page.context["mean"], page.context["count"]) == (3, 6, 3)
    assert run.judgements.count() == 6
    client.post(address + "?candidate=beta", {"version": "2"})
    assert scores(work(run))[("beta", 2, True)] == {9.0}


def test_a_version_of_another_metric_is_refused(run: Run, alice: User, client_of: ClientOf) -> None:
    address = reverse("runs:judge_again", args=(run.project.slug, run.pk))
    assert "can&#x27;t be used here" in client_of(alice).post(address, {"version": "9"}).text
    assert run.judgements.count() == 6


def test_reviewers_and_raters_may_not(run: Run, bob: User, client_of: ClientOf) -> None:
    address = reverse("runs:judge_again", args=(run.project.slug, run.pk))
    assert client_of(bob).post(address).status_code == 403
    assert not run.judgements.filter(attempt=2).exists()


def put(run: Run, state: RunState, left: int = 0) -> Run:
    """Put the run into `state` with its last `left` judgements not run; return it."""
    last = run.judgements.order_by("-position")[:left]
    for one in last:
        Judgement.objects.filter(pk=one.pk).update(
            state="not_run", reason="not_run", value=None, score=None, finished_at=None
        )
        JudgeReply.objects.filter(judgement=one).delete()
    if left:
        run.chunks.update(done=False)
    scored = run.judgements.filter(state="scored", current=True).count()
    Run.objects.filter(pk=run.pk).update(state=state, scored=scored)
    return Run.objects.get(pk=run.pk)


def test_a_paused_run_stays_so_and_asks_again_when_it_is_resumed(run: Run, judge: ScriptedJudge) -> None:
    run = put(run, RunState.PAUSED, left=1)
    assert run_rejudge(run=run, selection=Selection(Filters(candidate="alpha")), user=None) == 3
    run = Run.objects.get(pk=run.pk)
    assert (run.state, run.scored, run.not_run) == (RunState.PAUSED, 2, 4)
    run_resume(run)
    run = work(run)
    assert (run.state, run.scored, len(judge.requests)) == (RunState.FINISHED, 6, 10)


def test_what_was_not_run_yet_is_not_asked_twice(run: Run, judge: ScriptedJudge) -> None:
    run = put(run, RunState.PAUSED, left=2)
    assert run_rejudge(run=run, selection=Selection(Filters()), user=None) == 4
    run_resume(Run.objects.get(pk=run.pk))
    assert work(run).scored == 6
    assert len(judge.requests) == 12


@pytest.mark.parametrize("state", [RunState.CANCELLED, RunState.FAILED])
def test_a_run_that_ended_early_is_resumed_with_the_rest(
    state: RunState, run: Run, judge: ScriptedJudge
) -> None:
    run = put(run, state, left=1)
    assert run_rejudge(run=run, selection=Selection(Filters(candidate="alpha")), user=None) == 3
    assert (work(run).scored, len(judge.requests)) == (6, 10)


@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.PLANNING])
def test_a_run_that_is_under_way_is_left_alone(state: RunState, run: Run) -> None:
    assert run_rejudge(run=put(run, state), selection=Selection(Filters()), user=None) == 0


def test_the_page_says_what_becomes_of_a_run_that_was_stopped(
    run: Run, alice: User, client_of: ClientOf
) -> None:
    client, address = client_of(alice), reverse("runs:judge_again", args=(run.project.slug, run.pk))
    put(run, RunState.PAUSED, left=1)
    assert "These items are re-judged when you resume" in client.get(address).text
    assert "Re-judge 5 items" in client.get(address).text
    put(run, RunState.CANCELLED)
    assert "1 item was not judged when the run ended." in client.get(address).text
    put(run, RunState.RUNNING)
    assert "Pause it or wait until it ends" in client.get(address).text
