"""Fire drills from their pages: the price before, the run of the workers, flags, planted answers, and who may begin."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client

from datasets.models import Dataset, Response, Row, Version
from evalsite.accounts.models import Project, User
from evalsite.models import AuditEntry
from judging.core.statistics.drill import DEFECTS
from judging.engine.planning import plan
from judging.metrics.models import MetricVersion
from judging.metrics.services import metric_create
from judging.records.models import Judgement, Run
from judging.trust.drill_pages.models import Drill
from judging.trust.drill_pages.services import drill_begin, drills_finish
from judging.trust.drill_pages.sources import DrillSource
from tests.api import Api
from tests.conftest import ClientOf
from tests.judging.judged import JUDGE_URL, judge, said
from tests.make import a_metric, a_version
from tests.working import do_jobs

pytestmark = pytest.mark.django_db(transaction=True)
BASE = "/p/physics/judges/drills/"
DEFINITION = a_metric(JUDGE_URL, name="tone")
ROWS = 24
CHINESE = {"messages": [{"role": "user", "content": "天文台是哪一年建成的？"}]}


@pytest.fixture
def metric(project: Project) -> MetricVersion:
    return metric_create(project=project, definition=DEFINITION, user=None).versions.get()


@pytest.fixture
def version(project: Project) -> Version:
    return a_version(project, rows=ROWS, models=["alpha", "beta"])


@pytest.fixture
def page(alice: User, client_of: ClientOf) -> Client:
    return client_of(alice)


def begin(metric: MetricVersion, version: Version, user: User, **more: int | str) -> Drill:
    return drill_begin(metric_version=metric, source=DrillSource(version), rows=ROWS, user=user, **more)


def judged(drill: Drill) -> Drill:
    """Prepare the drill and judge it: 5, but 3 for an empty answer."""
    do_jobs("drill")
    drill.refresh_from_db()
    assert drill.run is not None, drill.problem
    plan(drill.run.pk)
    defects = dict(Judgement.objects.filter(run=drill.run).values_list("position", "candidate__name"))
    judge(drill.run, lambda place: said(3 if defects.get(place) == "empty" else 5))
    drills_finish()
    do_jobs("drill")
    return Drill.objects.get(pk=drill.pk)


def text_of(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def test_calls_are_shown_before_it_begins(page: Client, metric: MetricVersion, version: Version) -> None:
    shown = text_of(page, f"{BASE}new/?metric={metric.pk}")
    assert f"Judge calls, at most {ROWS * (len(DEFECTS) + 2)}" in shown
    fewer = text_of(page, f"{BASE}new/?metric={metric.pk}&part=cost&source=version-{version.pk}&rows=10")
    assert "Judge calls, at most 120" in fewer


def test_a_drill_is_a_run_of_its_own_that_the_workers_judge(
    page: Client, metric: MetricVersion, version: Version
) -> None:
    sent = {"metric": metric.pk, "source": f"version-{version.pk}", "rows": ROWS, "seed": 3}
    response = page.post(f"{BASE}new/", sent)
    drill = judged(Drill.objects.get())
    assert response.headers["Location"] == f"{BASE}{drill.pk}/"
    assert drill.run is not None
    assert drill.run.only_worker == ""
    assert drill.document["defects"]["truncated"]["equal"] == ROWS
    assert drill.document["defects"]["empty"]["lower"] == ROWS, drill.document["defects"]["empty"]
    assert "truncated" in drill.flagged
    entry = AuditEntry.objects.get(action="drill.begun")
    assert (entry.actor_name, entry.detail["rows"]) == ("alice", ROWS)


def test_defects_are_no_models_in_lists(metric: MetricVersion, version: Version, alice: User) -> None:
    drill = judged(begin(metric, version, alice))
    assert drill.run is not None
    assert drill.run.archived_at is not None
    assert Dataset.objects.get(pk=drill.run.version.dataset_id).archived_at is not None


def test_the_page_tells_each_flag_with_its_sentence(
    page: Client, metric: MetricVersion, version: Version, alice: User
) -> None:
    drill = judged(begin(metric, version, alice))
    shown = text_of(page, f"{BASE}{drill.pk}/")
    assert "Last third missing The verdict falls in only 0 of 24 answers, and rises in 0." in shown
    assert "same verdict in 100 % of 24 answers" in shown


def test_every_planted_answer_stands_beside_the_untouched_one(
    page: Client, metric: MetricVersion, version: Version, alice: User
) -> None:
    drill = judged(begin(metric, version, alice))
    content = page.get(f"{BASE}{drill.pk}/truncated/").content.decode()
    assert content.count("<h3>Untouched") == 10
    assert "1 to 10 of 24" in content
    assert "<del>" in content
    assert "No items." in page.get(f"{BASE}{drill.pk}/truncated/?moved=lower").content.decode()
    assert page.get(f"{BASE}{drill.pk}/shredded/").status_code == 404


def test_the_same_drill_is_begun_once(metric: MetricVersion, version: Version, alice: User) -> None:
    assert begin(metric, version, alice) == begin(metric, version, alice)
    assert begin(metric, version, alice, seed=1) != begin(metric, version, alice)


def test_a_killed_worker_leaves_one_run(metric: MetricVersion, version: Version, alice: User) -> None:
    begin(metric, version, alice)
    do_jobs("drill")
    do_jobs("drill")
    assert Run.objects.count() == 1


def test_a_drill_that_cannot_be_prepared_says_why(
    page: Client, metric: MetricVersion, version: Version, alice: User
) -> None:
    drill = begin(metric, version, alice)
    Version.objects.filter(pk=version.pk).delete()
    do_jobs("drill")
    assert "This version was deleted." in text_of(page, f"{BASE}{drill.pk}/")


def test_a_drill_keeps_its_document_when_its_run_changes(
    metric: MetricVersion, version: Version, alice: User
) -> None:
    drill = judged(begin(metric, version, alice))
    assert drill.run is not None
    Run.objects.filter(pk=drill.run.pk).update(revision=drill.run.revision + 1)
    drills_finish()
    do_jobs("drill")
    again = Drill.objects.get(pk=drill.pk)
    assert (again.revision, again.finished_at) == (drill.run.revision + 1, drill.finished_at)


@pytest.mark.parametrize("who", ["bob", "rita"])
def test_only_those_who_start_runs_begin_drills(
    who: str, cast: dict[str, User], client_of: ClientOf, metric: MetricVersion, version: Version
) -> None:
    sent = {"metric": metric.pk, "source": f"version-{version.pk}", "rows": 5, "seed": 0}
    assert client_of(cast[who]).post(f"{BASE}new/", sent).status_code == 403
    assert not Drill.objects.exists()


def test_a_model_without_answers_is_refused_with_the_names(
    page: Client, metric: MetricVersion, version: Version
) -> None:
    sent = {"metric": metric.pk, "source": f"version-{version.pk}", "rows": 5, "seed": 0, "model": "gamma"}
    response = page.post(f"{BASE}new/", sent)
    assert response.status_code == 422
    assert "There are: alpha, beta" in response.content.decode()


def test_a_metric_without_a_judge_is_not_offered(page: Client, project: Project, version: Version) -> None:
    assert "Nothing to drill yet" in text_of(page, f"{BASE}new/")


def test_judges_tell_their_newest_drill(
    page: Client, metric: MetricVersion, version: Version, alice: User
) -> None:
    drill = judged(begin(metric, version, alice))
    (judge_out,) = Api(alice).get("projects/physics/judges").json()["items"]
    assert judge_out["drill"]["document"]["flagged"] == drill.flagged
    assert f"/judges/drills/{drill.pk}/" in page.get("/p/physics/judges/").content.decode()


def test_answers_in_all_languages_are_shown_until_one_is_chosen(
    page: Client, metric: MetricVersion, version: Version, alice: User
) -> None:
    Row.objects.filter(version=version, line__gt=ROWS // 2).update(raw=json.dumps(CHINESE))
    answers = Response.objects.filter(row__version=version, row__line__gt=ROWS // 2)
    answers.update(raw=json.dumps({"content": "它建成于一八五〇年，由天文学家共同筹建。多数日子可以参观。"}))
    drill = judged(begin(metric, version, alice))
    content = page.get(f"{BASE}{drill.pk}/empty/").content.decode()
    assert re.findall(r'<a href="\?([^"]*)" aria-current="true">(\w+)</a>', content) == [("", "All")] * 2
    chosen = page.get(f"{BASE}{drill.pk}/empty/?language=zh").content.decode()
    assert 'aria-current="true">Chinese</a>' in chosen
