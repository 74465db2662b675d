"""The shares of each verdict stand beside means and win rates in a report's document and files."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from django.urls import reverse

from evalsite.accounts.models import Project, User
from evalsite.derived import Results
from judging.core.judges.scripted import Received, ScriptedJudge
from judging.records.models import Run
from judging.reports import files
from judging.reports.figures import for_page
from judging.reports.services import report_document
from judging.reports.stored import OUTCOMES
from judging.reports.text_report import plain_report
from judging.reports.verdict_shares import verdicts_of
from tests.conftest import ClientOf
from tests.judging.judged import JUDGE_URL, judge, said
from tests.judging.working import work
from tests.make import a_comparison, a_metric, a_run, a_version
from tests.working import FIGURES, do_jobs


def bins(*counts: int) -> list[dict[str, int]]:
    return [{"low": score, "high": score, "count": count} for score, count in enumerate(counts, start=1)]


def test_scores_from_one_to_five_are_verdicts() -> None:
    verdicts = verdicts_of({"distribution": bins(1, 0, 3, 0, 0)})
    assert (verdicts["A>>B"], verdicts["A=B"], verdicts["B>A"]) == (
        {"count": 1, "share": 0.25},
        {"count": 3, "share": 0.75},
        {"count": 0, "share": 0},
    )


@pytest.mark.parametrize("scores", [[], bins(0, 0, 0), [{"low": 2, "high": 3, "count": 2}]])
def test_nothing_scored_or_scores_between_verdicts_have_none(scores: list[Any]) -> None:
    assert verdicts_of({"distribution": scores}) == {}


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))


@pytest.mark.django_db
def test_comparisons_with_the_reference_have_verdicts_beside_the_mean(project: Project) -> None:
    metric = a_metric(JUDGE_URL, gives="comparison", max_score=5)
    run = judge(a_run(a_version(project, 4, ("alpha",)), metric), lambda place: said([3, 3, 3, 1][place]))
    document = report_document(run)
    assert document["candidates"]["alpha"]["quality"]["verdicts"]["A=B"] == {"count": 3, "share": 0.75}
    (line,) = rows_of(files.figures_csv(document))
    assert (line["mean"], line["share A=B"], line["share A>>B"], line["share B>A"]) == (
        "2.5",
        "0.75",
        "0.25",
        "0.0",
    )
    assert "A=B" in plain_report(document)


def one_tie(request: Received) -> str:
    return "[[A=B]]" if "question 1" in request.prompt else "[[A>B]]"


@pytest.fixture
def compared(project: Project, transactional_db: None) -> Run:
    with ScriptedJudge(reply=one_tie) as server:
        return work(a_run(a_version(project, 4, ("alpha", "beta")), a_comparison(server.url)))


def test_comparisons_of_candidates_have_the_shares_of_each_outcome(compared: Run) -> None:
    document = report_document(compared)
    (entry,) = document["side_by_side"]
    shares = {"win_share": 0, "tie_share": 0.25, "loss_share": 0, "unsettled_share": 0.75}
    assert entry["candidates"]["beta"].items() >= shares.items()
    assert entry["pairs"][0].items() >= shares.items()
    (line,) = rows_of(files.comparisons_csv(document))
    assert (line["unsettled"], line["unsettled_share"], line["tie_share"]) == ("3", "0.75", "0.25")


def test_a_report_s_sheet_has_the_shares(compared: Run) -> None:
    report_document(compared)
    sheet = files.report_sheet(compared)
    lines = [dict(zip(sheet.columns, row, strict=True)) for row in sheet.rows]
    assert [line["unsettled_share"] for line in lines if line["part"] == "side_by_side"] == [0.75, 0.75]


@pytest.mark.django_db
def test_the_items_of_a_pair_show_verdicts_of_comparisons_with_the_reference(
    project: Project, client_of: ClientOf, alice: User
) -> None:
    metric = a_metric(JUDGE_URL, gives="comparison", max_score=5)
    run = judge(a_run(a_version(project, 2), metric), lambda place: said([3, 1, 5, 3][place]))
    for_page(run)
    address = reverse("runs:report_pair", args=(project.slug, run.pk))
    items = client_of(alice).get(address, {"metric": metric.name, "a": "alpha", "b": "beta"}).context["items"]
    assert sorted((item["line"], item["a"], item["b"]) for item in items) == [
        (1, "A=B", "A>>B"),
        (2, "B>>A", "A=B"),
    ]


@pytest.mark.parametrize(("answers", "shown"), [(1, "Pass"), (2, "100.0 %")])
@pytest.mark.django_db
def test_a_pass_is_a_word_and_the_mean_of_several_answers_a_rate(
    project: Project, client_of: ClientOf, alice: User, answers: int, shown: str
) -> None:
    metric = a_metric(JUDGE_URL, gives="pass_fail")
    run = judge(a_run(a_version(project, 1, answers=answers), metric), lambda _place: said(True))
    for_page(run)
    address = reverse("runs:report_pair", args=(project.slug, run.pk))
    (item,) = (
        client_of(alice).get(address, {"metric": metric.name, "a": "alpha", "b": "beta"}).context["items"]
    )
    assert item["a"] == shown


@pytest.mark.django_db
def test_lists_of_runs_and_the_leaderboard_have_them_beside_the_mean(
    project: Project, client_of: ClientOf, alice: User
) -> None:
    metric = a_metric(JUDGE_URL, gives="comparison", max_score=5)
    run = judge(a_run(a_version(project, 4, ("alpha",)), metric), lambda place: said([3, 3, 3, 1][place]))
    for_page(run)
    for name in ("runs:list", "runs:leaderboard"):
        assert "A&gt;&gt;B 25 % · A=B 75 %" in client_of(alice).get(reverse(name, args=(project.slug,))).text


@pytest.mark.django_db
def test_a_result_of_an_earlier_release_without_them_is_computed_again(
    project: Project, client_of: ClientOf, alice: User
) -> None:
    metric = a_metric(JUDGE_URL, gives="comparison", max_score=5)
    run = judge(a_run(a_version(project, 4, ("alpha",)), metric), lambda place: said([3, 3, 3, 1][place]))
    for_page(run)
    (stored,) = json.loads(bytes(OUTCOMES.all().get(subject=run.pk).value))
    del stored["candidates"][0]["shares"]
    Results("outcomes", 1).put(run.pk, value=json.dumps([stored]).encode(), revision=run.revision)
    client, runs = client_of(alice), reverse("runs:list", args=(project.slug,))
    assert "A=B 75 %" not in client.get(runs).text
    do_jobs(*FIGURES)
    assert "A=B 75 %" in client.get(runs).text


@pytest.mark.django_db
def test_a_table_of_several_runs_has_them_too(project: Project, client_of: ClientOf, alice: User) -> None:
    metric, version = a_metric(JUDGE_URL, gives="comparison", max_score=5), a_version(project, 4, ("alpha",))
    runs = [judge(a_run(version, metric), lambda place: said([3, 3, 3, 1][place])) for _each in range(3)]
    for run in runs:
        for_page(run)
    address = reverse("runs:compare", args=(project.slug, runs[0].pk))
    html = client_of(alice).get(address, {"with": [run.pk for run in runs[1:]]}).text
    assert html.replace("\u00a0", " ").count("A&gt;&gt;B 25 % · A=B 75 %") == 3


@pytest.mark.django_db
def test_the_reference_is_called_so_beside_the_candidates(
    project: Project, client_of: ClientOf, alice: User
) -> None:
    metric = a_metric(JUDGE_URL, gives="comparison", max_score=5)
    run = judge(a_run(a_version(project, 4), metric), lambda place: said([3, 3, 3, 1, 5, 3, 3, 2][place]))
    for_page(run)
    html = client_of(alice).get(reverse("runs:report", args=(project.slug, run.pk))).text
    assert ">Reference</span></th>" in html
    assert ">@reference<" not in html
