"""Stored run outcomes for lists, home pages and a project's leaderboard."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalsite.accounts.models import Membership, Project, Role, User
from evalsite.derived import Results
from judging.core.values import Outcome
from judging.people.models import Evaluation
from judging.people.services import evaluation_close
from judging.records.models import Run
from judging.reports.figures import for_page
from judging.reports.outcomes import MetricOutcome, bar_ends, metric_outcomes, outcome_views, outcomes
from judging.reports.page.report_view import report_view
from judging.reports.stored import OUTCOMES
from judging.templatetags.results import series_of
from tests.conftest import ClientOf, member
from tests.judging.importing import imported, verdict
from tests.judging.people.make import make_evaluation
from tests.judging.reports.cast import a_judged_run, by_name
from tests.make import a_version
from tests.working import FIGURES, do_jobs

pytestmark = pytest.mark.django_db


def known(run: Run) -> Run:
    """Compute the run's figures, as its worker does when the run ends."""
    for_page(run)
    return run


@pytest.fixture
def run(project: Project) -> Run:
    return known(a_judged_run(a_version(project, rows=4), by_name(alpha=7, beta=4), "quality", "style"))


def figures(**means: float | None) -> dict[str, Any]:
    cells = {
        name: {"m": {"mean": mean, "ci_low": None, "ci_high": None, "items": 3, "kind": "number"}}
        for name, mean in means.items()
    }
    return {"candidates": cells, "pairs": []}


def test_the_best_candidate_comes_first() -> None:
    (metric,) = metric_outcomes(figures(a=1.0, b=2.0), {"m": ("1", 1, 10)})
    assert [one.name for one in metric.candidates] == ["b", "a"]


def test_the_share_of_resamplings_is_stored_with_the_result() -> None:
    ranking = {"metric": "m", "first": {"b": 0.93, "a": 0.07}, "ranks": {"b": {}, "a": {}}}
    (metric,) = metric_outcomes(figures(a=1.0, b=2.0) | {"ranking": [ranking]}, {"m": ("1", 1, 10)})
    assert metric.first == ("b", 0.93)


def test_lists_say_how_sure_the_order_is(project: Project) -> None:
    run = known(a_judged_run(a_version(project, rows=12), by_name(alpha=7, beta=4)))
    assert outcome_views([run])[run.pk].order == "alpha first in 100 of 100 resamplings"


def compared(**win_rates: float) -> dict[str, Any]:
    cells = {
        name: {"win_rate": rate, "ci_low": 0.1, "ci_high": 0.9, "comparisons": 4, "rank_low": 1}
        for name, rate in win_rates.items()
    }
    said = {"metric": "m", "by": "people", "candidates": cells}
    return figures(**dict.fromkeys(win_rates)) | {"side_by_side": [said]}


def test_comparisons_are_led_by_the_highest_win_rate() -> None:
    (metric,) = metric_outcomes(compared(a=0.25, b=0.75), {"m": ("1", None, None)})
    assert metric.leader
    assert (metric.leader.name, metric.values.text(metric.leader.mean)) == ("b", "75.0 %")


def test_win_rates_against_other_opponents_are_not_comparable() -> None:
    versions = [
        metric_outcomes(compared(**names), {"m": ("1", None, None)})[0].version
        for names in ({"a": 0.5, "b": 0.5}, {"a": 0.6, "b": 0.4}, {"a": 0.5, "c": 0.5})
    ]
    assert versions[0] == versions[1] != versions[2]


def test_a_list_of_runs_shows_the_win_rate_of_comparisons(
    client_of: ClientOf, alice: User, project: Project, tmp_path: Path
) -> None:
    about = {"other_model": "beta", "metric": "better"}
    lines = [
        verdict(line, value=value, **about) for line, value in enumerate(("A>B", "A>B", "A>B", "B>A"), 1)
    ]
    known(imported(a_version(project, rows=4), tmp_path, *lines))
    html = client_of(alice).get("/p/physics/runs/").content.decode()
    assert "<b>75.0 %</b>" in html
    assert "better (win rate)" in html


def test_a_candidate_keeps_its_colour_in_a_run_over_some_and_in_further_data_sets(project: Project) -> None:
    first, further = a_version(project), a_version(project, models=("gamma", "beta"))
    some = list(first.candidates.filter(name="beta"))
    runs = [a_judged_run(first, by_name(beta=4), candidates=some), a_judged_run(further, lambda _: 5)]
    beta = [report.series["beta"] for run in runs if (report := report_view(run))]
    assert [*beta, outcome_views(runs)[runs[0].pk].series, series_of(further)["beta"]] == [2, 2, 2, 2]


def test_a_metric_without_means_has_no_leader() -> None:
    (metric,) = metric_outcomes(figures(a=None), {"m": ("1", 1, 10)})
    assert metric.leader is None


def test_a_bar_without_a_scale_runs_over_the_means() -> None:
    (metric,) = metric_outcomes(figures(a=1.0, b=3.0), {"m": ("1", None, None)})
    assert bar_ends(metric) == (1.0, 3.0)


def test_a_small_runs_outcome_is_kept_when_its_figures_are_known(run: Run) -> None:
    view = outcome_views([run])[run.pk]
    assert (view.text, view.mean, view.metric) == ("alpha and beta can't be told apart", "7.00", "quality")


@pytest.fixture
def earlier(run: Run) -> None:
    """The run's result as an earlier release stored it."""
    stored = OUTCOMES.all().get(subject=run.pk)
    metrics = [metric | {"headline": None} for metric in json.loads(bytes(stored.value))]
    Results("outcomes", 1).put(run.pk, value=json.dumps(metrics).encode(), revision=stored.revision)


@pytest.mark.usefixtures("earlier")
def test_a_result_of_an_earlier_release_names_nobody_and_is_computed_again(
    client_of: ClientOf, alice: User
) -> None:
    client = client_of(alice)
    page = client.get("/p/physics/runs/").text
    assert "The result is being updated" in page
    assert "7.00" not in page
    do_jobs(*FIGURES)
    assert "alpha and beta can&#x27;t be told apart" in client.get("/p/physics/runs/").text


@pytest.mark.usefixtures("earlier")
def test_the_leaderboard_asks_for_results_of_an_earlier_release_again(
    client_of: ClientOf, alice: User, run: Run
) -> None:
    client_of(alice).get("/p/physics/runs/leaderboard/")
    do_jobs(*FIGURES)
    assert OUTCOMES.all().filter(subject=run.pk).exists()


def test_an_outcome_is_written_once_for_each_state_of_the_run(run: Run) -> None:
    with CaptureQueriesContext(connection) as asked:
        for_page(run)
    assert not any(
        "evalsite_derived" in one["sql"] and one["sql"].startswith(("INSERT", "UPDATE")) for one in asked
    )


def test_a_run_without_an_outcome_is_left_out(project: Project) -> None:
    run = a_judged_run(a_version(project), lambda _: None)
    OUTCOMES.all().delete()
    assert outcome_views([run]) == {}


def test_a_trend_needs_the_same_data_and_metric(project: Project) -> None:
    version = a_version(project, rows=4)
    first = known(a_judged_run(version, by_name(alpha=7, beta=4)))
    second = known(a_judged_run(version, by_name(alpha=8, beta=4)))
    other = known(a_judged_run(a_version(project, rows=4), by_name(alpha=9, beta=4)))
    views = outcome_views([first, second, other])
    assert [bool(views[one.pk].trend) for one in (first, second, other)] == [False, True, False]


@pytest.mark.parametrize("path", ["/", "/p/physics/", "/p/physics/runs/"])
def test_lists_of_runs_show_the_results(client_of: ClientOf, alice: User, run: Run, path: str) -> None:
    html = client_of(alice).get(path).content.decode()
    assert "alpha" in html
    assert "<b>7.00</b>" in html


@pytest.mark.parametrize("path", ["/", "/p/physics/", "/p/physics/runs/"])
def test_results_cost_lists_of_runs_one_query(
    client_of: ClientOf, alice: User, project: Project, path: str
) -> None:
    counts, client = [], client_of(alice)
    for _ in range(2):
        known(a_judged_run(a_version(project, rows=2), by_name(alpha=7, beta=4)))
        with CaptureQueriesContext(connection) as asked:
            client.get(path)
        counts.append(sum("evalsite_derived" in one["sql"] for one in asked))
        assert not any("judging_judgement" in one["sql"] and "value_in_force" in one["sql"] for one in asked)
    assert counts == [1, 1]


def test_a_projects_leaderboard_compares_the_newest_results(
    client_of: ClientOf, alice: User, project: Project
) -> None:
    version = a_version(project, rows=4)
    known(a_judged_run(version, by_name(alpha=7, beta=4)))
    known(a_judged_run(version, by_name(alpha=8, beta=4)))
    context = client_of(alice).get("/p/physics/runs/leaderboard/").context
    assert [(name, cell.mean) for name, [(_metric, cell)] in context["rows"]] == [
        ("alpha", "8.00"),
        ("beta", "4.00"),
    ]


def test_a_leaderboard_shows_one_version_of_the_data(
    client_of: ClientOf, alice: User, project: Project
) -> None:
    first, second = a_version(project, rows=4), a_version(project, rows=4, models=("gamma",))
    known(a_judged_run(first, by_name(alpha=7, beta=4)))
    known(a_judged_run(second, by_name(gamma=1)))
    client = client_of(alice)
    names = [
        [name for name, *_ in client.get(f"/p/physics/runs/leaderboard/{query}").context["rows"]]
        for query in ("", f"?version={first.pk}")
    ]
    assert names == [["gamma"], ["alpha", "beta"]]


def test_a_candidates_page_lists_its_results_newest_first(
    client_of: ClientOf, alice: User, project: Project
) -> None:
    version = a_version(project, rows=4)
    for score in (5, 6):
        known(a_judged_run(version, by_name(alpha=score, beta=1)))
    context = client_of(alice).get("/p/physics/runs/leaderboard/?candidate=alpha").context
    assert [entry.mean for entry in context["entries"]] == ["6.00", "5.00"]


@pytest.mark.parametrize("query", ["?version=999999", "?version=x", "?candidate=nobody"])
def test_what_a_leaderboard_does_not_know_is_not_found(
    client_of: ClientOf, alice: User, run: Run, query: str
) -> None:
    assert client_of(alice).get(f"/p/physics/runs/leaderboard/{query}").status_code == 404


def test_a_project_without_results_says_so(client_of: ClientOf, alice: User, project: Project) -> None:
    assert "No results yet" in client_of(alice).get("/p/physics/runs/leaderboard/").content.decode()


def test_only_readers_of_judgements_see_the_leaderboard(
    client_of: ClientOf, cast: dict[str, User], run: Run
) -> None:
    answers = {
        who: client_of(user).get("/p/physics/runs/leaderboard/").status_code for who, user in cast.items()
    }
    assert answers == {"alice": 200, "bob": 200, "adam": 200, "olga": 200, "rita": 403, "charlie": 404}


def test_results_of_other_projects_stay_there(client_of: ClientOf, rita: User, run: Run) -> None:
    assert "<b>7.00</b>" not in client_of(rita).get("/").content.decode()


def test_archived_runs_are_no_results(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(archived_at="2026-01-01T00:00:00Z")
    assert outcomes([run.project_id]) == {}


def test_metrics_read_back_are_what_was_kept(run: Run) -> None:
    metrics = outcomes([run.project_id])[run.pk].metrics
    assert all(isinstance(metric, MetricOutcome) for metric in metrics)
    assert [metric.metric for metric in metrics] == ["quality", "style"]


def test_a_reviewer_who_rates_a_runs_answers_sees_its_result_after_the_end(
    client_of: ClientOf, project: Project, alice: User
) -> None:
    both = member("rosa", project, Role.RATER)
    Membership.objects.create(user=both, project=project, role=Role.REVIEWER)
    judged = known(a_judged_run(a_version(project, rows=4), by_name(alpha=7, beta=4)))
    evaluation = make_evaluation(project, [both], rows=3)
    Evaluation.objects.filter(pk=evaluation.pk).update(about_run=judged)
    pages = ["/", "/p/physics/runs/", f"/p/physics/runs/{judged.pk}/", "/p/physics/runs/leaderboard/"]

    def shown() -> list[bool]:
        return ["7.00" in client_of(both).get(page).text for page in pages]

    assert shown() == [False] * 4
    evaluation_close(evaluation=evaluation, by=alice)
    assert shown() == [True] * 4


@pytest.mark.parametrize("path", ["/", "/p/physics/", "/p/physics/runs/"])
def test_lists_show_unparsed_replies_in_red(
    client_of: ClientOf, alice: User, project: Project, path: str
) -> None:
    a_judged_run(a_version(project, rows=1, models=("alpha",)), lambda _: Outcome.unparsed("nothing_offered"))
    assert re.search(r'class="(under )?bad-text">1', client_of(alice).get(path).text)
