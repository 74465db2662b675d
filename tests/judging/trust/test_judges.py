"""The list of judges, as a page and through the API, and the thresholds of licences."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone

from evalsite.accounts.models import Project, User
from judging.core.licensing import Sizes
from judging.core.metric_definition import MetricDefinition
from judging.metrics.models import Metric
from judging.metrics.services import metric_create
from judging.people.models import Evaluation
from judging.records.models import Run
from judging.reports.figures import Figures, RunFigures
from judging.reports.services import report_document
from judging.trust.models import Licence
from judging.trust.services import (
    licence_suspend,
    sealed_test_close,
    sealed_test_open,
    split_draw,
    thresholds_of,
)
from tests.api import Api
from tests.conftest import ClientOf
from tests.judging.judged import JUDGE_URL, judge, said
from tests.judging.people.make import about, rate_each
from tests.make import a_metric, a_run, a_version

ROWS = 24
DEFINITION = a_metric(JUDGE_URL, name="tone", gives="pass_fail", parse="bool")
THRESHOLDS = {"trends_rate": "0.7", "trends_kappa": "0.5", "gates_rate": "0.9", "gates_kappa": "0.8"}


@pytest.fixture
def definition() -> MetricDefinition:
    return DEFINITION


@pytest.fixture
def rows() -> int:
    return ROWS


@pytest.fixture
def licence(run: Run, metric: Metric, cast: dict[str, User]) -> Licence:
    """Rita agrees with the judge on every row."""
    evaluation: Evaluation = about(run, [cast["rita"]])
    rate_each(evaluation, cast["rita"], lambda item: item.row.line % 2 == 1)
    split = split_draw(version=run.version, metric=metric, sizes=Sizes(0, 0, ROWS), seed=5)
    test = sealed_test_close(test=split.test, run=run)
    return sealed_test_open(test=test, run_metric=run.metrics.get())


def listed(alice: User) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = Api(alice).get("projects/physics/judges").json()["items"]
    return items


def test_a_judge_is_listed_with_its_licence_and_its_runs(
    cast: dict[str, User], run: Run, licence: Licence
) -> None:
    (judge_out,) = listed(cast["alice"])
    assert (judge_out["metric"], judge_out["version"], judge_out["judges"]) == ("tone", 1, ["judge"])
    assert (judge_out["agreement"]["rate"], judge_out["licence"]["use"]) == (1.0, "trends")
    assert judge_out["runs"] == [{"id": run.pk, "name": run.name}]


def test_a_judge_without_a_licence_has_none(cast: dict[str, User], run: Run) -> None:
    (judge_out,) = listed(cast["alice"])
    assert (judge_out["licence"], judge_out["agreement"]) == (None, None)


def test_pages_of_judges_follow_each_other(cast: dict[str, User], project: Project) -> None:
    for name in ("a", "b", "c"):
        metric_create(project=project, definition=a_metric(JUDGE_URL, name=name), user=None)
    first = Api(cast["alice"]).get("projects/physics/judges?limit=2").json()
    second = Api(cast["alice"]).get(f"projects/physics/judges?limit=2&cursor={first['next']}").json()
    assert [judge_out["metric"] for judge_out in (*first["items"], *second["items"])] == ["a", "b", "c"]
    assert second["next"] is None


def test_the_page_shows_what_a_judge_may_be_used_for(
    cast: dict[str, User], client_of: ClientOf, licence: Licence
) -> None:
    page = client_of(cast["bob"]).get(reverse("trust:judges", args=["physics"])).content.decode()
    assert all(text in page for text in ("tone", "100 %", "trends", licence.dataset_name))


def test_without_judges_the_page_leads_to_looking_at_answers(
    cast: dict[str, User], client_of: ClientOf, project: Project
) -> None:
    page = client_of(cast["alice"]).get(reverse("trust:judges", args=["physics"])).content.decode()
    assert reverse("look:list", args=["physics"]) in page


def test_thresholds_are_changed_by_administrators(
    cast: dict[str, User], client_of: ClientOf, project: Project
) -> None:
    address = reverse("trust:thresholds", args=["physics"])
    assert client_of(cast["alice"]).post(address, THRESHOLDS).status_code == 403
    client_of(cast["adam"]).post(address, THRESHOLDS)
    assert thresholds_of(project).gates_rate == 0.9


def test_thresholds_that_make_no_sense_stay_in_the_form(
    cast: dict[str, User], client_of: ClientOf, project: Project
) -> None:
    address = reverse("trust:thresholds", args=["physics"])
    response = client_of(cast["adam"]).post(address, {**THRESHOLDS, "gates_rate": "0.6"})
    assert (response.status_code, thresholds_of(project).gates_rate) == (422, 0.8)
    assert "0.6" in response.content.decode()


def report_of(run: Run) -> dict[str, Any]:
    return report_document(Run.objects.get(pk=run.pk))


@pytest.mark.parametrize(("days", "lapsed"), [(-1, True), (1, False)])
def test_stored_figures_do_not_outlive_the_licence_that_they_rest_on(days: int, lapsed: bool) -> None:
    date = (timezone.now() + timedelta(days=days)).isoformat()
    figures = Figures({"licences": [{"state": "valid", "expires_at": date}]}, {}, 0, 0, {})
    assert RunFigures(figures, 1, timezone.now(), 0.0).lapsed == lapsed


def test_on_another_data_set_the_report_says_so(project: Project, run: Run, licence: Licence) -> None:
    other = judge(a_run(a_version(project, rows=3, models=["alpha"]), DEFINITION), lambda place: said(True))
    assert [report_of(each)["licences"][0]["here"] for each in (run, other)] == [True, False]


@pytest.mark.parametrize(
    ("requirement", "status"), [("licence", 0), ("licence tone trends here", 0), ("licence tone gates", 3)]
)
def test_the_report_command_requires_a_licence(
    run: Run, licence: Licence, requirement: str, status: int
) -> None:
    assert _status(run, requirement) == status


def test_a_suspended_licence_does_not_do(
    run: Run, licence: Licence, capsys: pytest.CaptureFixture[str]
) -> None:
    licence_suspend(licence=licence, reason="The server changed.")
    assert _status(run, "licence") == 3
    said_of = capsys.readouterr().out
    assert "The licence of the judge judge is suspended: The server changed." in said_of
    assert "of which people failed 50" in said_of


def _status(run: Run, requirement: str) -> int:
    try:
        call_command("report", run.name, "--require", requirement)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0
