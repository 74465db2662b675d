"""Another judge on the same stored answers: its run, the figures, the margin, and who may begin it."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from datasets.models import Response
from evalsite.accounts.models import Project, User
from evalsite.models import AuditEntry
from judging.metrics.models import Metric
from judging.metrics.services import metric_create
from judging.records.models import Judgement, Run
from judging.trust.succession.models import Succession
from judging.trust.succession.services import margin_change, succession_begin, successions_finish
from judging.trust.succession.verdicts import matched
from tests.conftest import ClientOf
from tests.judging.judged import JUDGE_URL, a_judged_run, judge, said
from tests.judging.working import an_endpoint
from tests.make import a_metric
from tests.working import do_jobs

pytestmark = pytest.mark.django_db
BASE = "/p/physics/judges/successions/"
ROWS = 30
DEFINITION = a_metric(JUDGE_URL, name="tone", min_score=1, max_score=10)


@pytest.fixture
def metric(project: Project) -> Metric:
    return metric_create(project=project, definition=DEFINITION, user=None)


@pytest.fixture
def run(project: Project, metric: Metric) -> Run:
    """The old judge gives 1 to 10 in turn."""
    run = a_judged_run(
        project, lambda place: said(place % 10 + 1), rows=ROWS, metric=DEFINITION, models=["alpha", "beta"]
    )
    run.metrics.update(metric_version=metric.versions.get())
    return run


@pytest.fixture
def page(alice: User, client_of: ClientOf) -> Client:
    return client_of(alice)


def begin(run: Run, user: User) -> Succession:
    endpoint = an_endpoint(run.project, "http://127.0.0.1:9/v1")
    old = run.metrics.select_related("run__version", "run__project", "metric_version__metric").get()
    return succession_begin(old=old, endpoints={0: endpoint}, margin=0.025, user=user)


def judged(succession: Succession, shift: int = 0) -> Succession:
    """The new judge gives what the old one gave, moved by `shift`."""
    assert succession.run is not None
    judge(succession.run, lambda place: said(min(10, place % 10 + 1 + shift)))
    successions_finish()
    do_jobs("succession")
    return Succession.objects.get(pk=succession.pk)


def text_of(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def test_the_new_judge_gets_the_same_stored_answers(run: Run, alice: User) -> None:
    succession = judged(begin(run, alice))
    assert succession.run is not None
    answers = Judgement.objects.filter(run=succession.run).values_list("response", flat=True)
    assert sorted(answers) == sorted(run.judgements.values_list("response", flat=True))
    assert succession.run.kind == "judge_only"
    assert Response.objects.count() == 2 * ROWS
    assert AuditEntry.objects.filter(action="succession.begun", actor_name="alice").exists()


def test_equal_verdicts_may_stand_in_one_table(run: Run, alice: User, page: Client) -> None:
    succession = judged(begin(run, alice))
    margin_change(succession=succession, margin=0.2, user=alice)
    do_jobs("succession")
    shown = text_of(page, f"{BASE}{succession.pk}/")
    assert "Old and new verdicts may stand in one table" in shown
    assert "Answers whose verdict turned" not in shown


def test_few_answers_say_how_many_more_would_decide(run: Run, alice: User, page: Client) -> None:
    succession = judged(begin(run, alice))
    assert (succession.decision, succession.document["more"]) == ("undecided", succession.document["more"])
    assert succession.document["more"] > 0
    assert "more answers of each candidate would tell" in text_of(page, f"{BASE}{succession.pk}/")


def test_a_shift_is_told_by_candidate_with_the_answers_that_turned(
    run: Run, alice: User, page: Client
) -> None:
    succession = judged(begin(run, alice), shift=2)
    shown = text_of(page, f"{BASE}{succession.pk}/")
    assert succession.decision == "apart"
    assert "must not stand in one table" in shown
    assert "1 to 20 of" in shown
    turned = [pair for pair in matched(*_both(succession)) if pair[0].value != pair[1].value]
    counts = {name: each["turned"] for name, each in succession.document["candidates"].items()}
    assert sum(counts.values()) == len(turned)
    assert 'href="?candidate=alpha#turned"' in page.get(f"{BASE}{succession.pk}/").content.decode()
    of_alpha = page.get(f"{BASE}{succession.pk}/?candidate=alpha")
    assert of_alpha.context["pager"]["count"] == counts["alpha"]
    assert {item.candidates for item in of_alpha.context["items"]} == {"alpha"}


def _both(succession: Succession) -> tuple[object, ...]:
    assert succession.old is not None
    assert succession.run is not None
    return succession.old, succession.run.metrics.get()


def test_overrides_are_no_verdicts_of_the_judge(run: Run, alice: User) -> None:
    run.judgements.update(override_value="1", override_score=1.0)
    assert judged(begin(run, alice)).document["agreement"]["rate"] == 1


def test_the_history_of_the_metric_marks_the_change(
    run: Run, metric: Metric, alice: User, page: Client
) -> None:
    judged(begin(run, alice), shift=2)
    shown = text_of(page, f"/p/physics/metrics/{metric.pk}/versions/")
    assert "v1: scripted after scripted, must not stand in one table" in shown


def test_another_margin_decides_anew(run: Run, alice: User, page: Client) -> None:
    succession = judged(begin(run, alice))
    page.post(f"{BASE}{succession.pk}/margin/", {"margin": "20"})
    do_jobs("succession")
    succession.refresh_from_db()
    assert (succession.margin, succession.decision) == (0.2, "together")
    page.post(f"{BASE}{succession.pk}/margin/", {"margin": "many"})
    succession.refresh_from_db()
    assert succession.margin == 0.2


def test_calls_are_shown_before_it_begins(run: Run, alice: User, page: Client) -> None:
    endpoint = an_endpoint(run.project, "http://127.0.0.1:9/v1")
    address = f"{BASE}new/{run.pk}/0/"
    assert "object (" not in text_of(page, address)
    assert f"Judge calls {2 * ROWS}" in text_of(page, address)
    response = page.post(address, {"judge-0": endpoint.pk, "margin": "2.5"})
    succession = Succession.objects.get()
    assert response.headers["Location"] == f"{BASE}{succession.pk}/"
    again = page.post(address, {"judge-0": endpoint.pk, "margin": "2.5"})
    assert again.headers["Location"] == response.headers["Location"]
    assert Run.objects.count() == 2


def test_rows_whose_answers_failed_are_left_out(run: Run, alice: User, page: Client) -> None:
    first = run.judgements.order_by("position")[0]
    Response.objects.filter(pk=first.response_id).update(raw="")
    an_endpoint(run.project, "http://127.0.0.1:9/v1")
    assert "1 row is left out" in text_of(page, f"{BASE}new/{run.pk}/0/")


def test_a_run_that_goes_on_has_no_successor_yet(run: Run, page: Client) -> None:
    Run.objects.filter(pk=run.pk).update(state="running")
    assert "Only a finished run" in text_of(page, f"{BASE}new/{run.pk}/0/")


@pytest.mark.parametrize("who", ["bob", "rita"])
def test_only_those_who_start_runs_begin_one(
    who: str, cast: dict[str, User], client_of: ClientOf, run: Run
) -> None:
    assert client_of(cast[who]).get(f"{BASE}new/{run.pk}/0/").status_code == 403


def test_the_page_is_loaded_anew_when_the_figures_are_there(run: Run, alice: User, page: Client) -> None:
    succession = judged(begin(run, alice))
    polled = page.get(f"{BASE}{succession.pk}/?seen=finished", headers={"HX-Request": "true"})
    assert polled.headers["HX-Refresh"] == "true"
