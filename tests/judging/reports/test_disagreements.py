"""Answers on which a judge and people disagree, in the report and on the page that lists them."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from evalsite.accounts.models import Project, User
from judging.core.people.criteria import Criterion
from judging.people.adjudication import adjudicate
from judging.people.assignments import claim
from judging.people.models import Evaluation
from judging.records.models import Run
from judging.reports.figures import FEW
from tests.conftest import ClientOf
from tests.judging.judged import JUDGE_URL, a_judged_run, said
from tests.judging.people.make import about, give, rate_each
from tests.make import a_metric

pytestmark = pytest.mark.django_db
ROWS = 6


@pytest.fixture
def run(project: Project) -> Run:
    """Six rows, one candidate; the judge scores 1, 2, … 6 with reasons."""
    return a_judged_run(
        project,
        lambda place: said(place + 1, content=f"Reason {place + 1}. Score: [[{place + 1}]]"),
        rows=ROWS,
        models=["alpha"],
    )


@pytest.fixture
def rated(run: Run, rita: User) -> Evaluation:
    """An evaluation in which Rita rates every answer 4."""
    evaluation = about(run, [rita])
    rate_each(evaluation, rita, lambda item: 4)
    return evaluation


def report(client_of: ClientOf, user: User, run: Run, more: str = "") -> Any:
    return client_of(user).get(reverse("runs:report", args=(run.project.slug, run.pk)) + more)


def listed(client_of: ClientOf, user: User, run: Run, **asked: str) -> Any:
    (metric,) = run.metrics.values_list("name", flat=True)
    address = reverse("runs:report_agreement", args=(run.project.slug, run.pk))
    return client_of(user).get(address, {"metric": metric, "judge": judge_of(client_of, user, run), **asked})


def judge_of(client_of: ClientOf, user: User, run: Run) -> str:
    (judge,) = view(client_of, user, run)
    return str(judge.judge)


def view(client_of: ClientOf, user: User, run: Run) -> Any:
    return report(client_of, user, run).context["report"].metrics[0].agreement.judges


def lines(response: Any) -> list[int]:
    return [one.line for one in response.context["items"]]


def test_a_report_shows_the_strongest_disagreements(
    client_of: ClientOf, alice: User, run: Run, rated: Evaluation
) -> None:
    (judge,) = view(client_of, alice, run)
    shown = judge.human_ratings.strongest
    assert [(one.line, one.judge.text, one.people.text) for one in shown] == [
        (1, "1", "4"), (2, "2", "4"), (6, "6", "4"), (3, "3", "4"), (5, "5", "4"),
    ]  # fmt: skip


def test_each_leads_to_its_judgement(client_of: ClientOf, alice: User, run: Run, rated: Evaluation) -> None:
    first = run.judgements.get(row__line=1)
    address = reverse("runs:judgement", args=(run.project.slug, run.pk, first.pk))
    assert f'href="{address}"' in report(client_of, alice, run).content.decode()


def test_the_list_has_all_answers_the_largest_difference_first(
    client_of: ClientOf, alice: User, run: Run, rated: Evaluation
) -> None:
    assert lines(listed(client_of, alice, run)) == [1, 2, 6, 3, 5, 4]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"judge_value": "6"}, [6]),
        ({"judge_value": "~6", "people_value": "4"}, [6]),
        ({"people_value": "5"}, []),
        ({"judge_value": "x"}, []),
    ],
)
def test_it_is_filtered_by_both_values(
    client_of: ClientOf, alice: User, run: Run, rated: Evaluation, asked: dict[str, str], found: list[int]
) -> None:
    assert lines(listed(client_of, alice, run, **asked)) == found


def test_a_menu_of_verdicts_has_their_names(
    client_of: ClientOf, alice: User, project: Project, rita: User
) -> None:
    metric = a_metric(JUDGE_URL, gives="pass_fail")
    run = a_judged_run(project, lambda place: said(place > 0), rows=2, models=["alpha"], metric=metric)
    rate_each(
        about(run, [rita], criteria=[Criterion(name=metric.name, scale="pass_fail")]), rita, lambda item: True
    )
    assert listed(client_of, alice, run).context["judge_values"] == [("false", "Fail"), ("true", "Pass")]


def test_it_has_the_reasons_of_the_judge_and_of_people(
    client_of: ClientOf, alice: User, run: Run, rita: User, bob: User
) -> None:
    evaluation = about(run, [rita])
    for held in claim(evaluation=evaluation, user=rita, count=ROWS):
        give(held, 4, comment=f"Comment {held.item.row.line}")
    adjudicate(item=evaluation.items.get(row__line=6), values={0: 9}, reason="It is right.", by=bob)
    first, second, *_rest = listed(client_of, alice, run).context["items"]
    assert (first.line, first.reply) == (1, "Reason 1. Score: [[1]]")
    assert [(one.by, one.text) for one in first.comments] == [("R1", "Comment 1")]
    assert (second.line, second.people.text) == (6, "9")
    assert [one.text for one in second.comments] == ["Comment 6", "It is right."]


def test_a_comment_on_another_criterion_is_left_out(
    client_of: ClientOf, alice: User, run: Run, rated: Evaluation, rita: User
) -> None:
    other = about(run, [rita], criteria=[Criterion(name="other")])
    for held in claim(evaluation=other, user=rita, count=ROWS):
        give(held, 4, comment="Of something else")
    assert all(not one.comments for one in listed(client_of, alice, run).context["items"])


def test_cells_of_the_confusion_table_and_points_lead_to_the_list(
    client_of: ClientOf, alice: User, run: Run, rated: Evaluation
) -> None:
    (judge,) = view(client_of, alice, run)
    cells = [cell.address for _label, row in judge.confusion.rows for cell in row if cell.address]
    assert len(cells) == ROWS
    for address in cells:
        assert client_of(alice).get(address).context["count"] == 1
        assert address.replace("&", "&amp;") in judge.human_ratings.chart


def test_the_scatter_chart_is_a_file(client_of: ClientOf, alice: User, run: Run, rated: Evaluation) -> None:
    files = [
        client_of(alice).get(reverse("runs:report_file", args=(run.project.slug, run.pk, name)))
        for name in (
            "scatter-1-1.svg",
            "scatter-1-2.svg",
            "scatter-0-1.svg",
            "scatter-2-1.svg",
            f"scatter-{'1' * 5000}-1.svg",
        )
    ]
    assert [one.status_code for one in files] == [200, 404, 404, 404, 404]
    assert b"<circle" in files[0].content
    assert b"<a " not in files[0].content


def test_a_metric_or_judge_without_people_is_not_found(
    client_of: ClientOf, alice: User, run: Run, rated: Evaluation
) -> None:
    assert listed(client_of, alice, run, judge="nobody").status_code == 404
    assert listed(client_of, alice, run, metric="nothing").status_code == 404


def test_who_rates_the_answers_does_not_see_them(
    client_of: ClientOf, alice: User, run: Run, rated: Evaluation, rita: User
) -> None:
    Run.objects.filter(pk=run.pk).update(state="running")
    judge = judge_of(client_of, alice, run)
    (metric,) = run.metrics.values_list("name", flat=True)
    address = reverse("runs:report_agreement", args=(run.project.slug, run.pk))
    answer = client_of(rita).get(address, {"metric": metric, "judge": judge})
    assert answer.status_code in (302, 403)


def test_a_shared_report_has_the_chart_and_no_answers(
    client_of: ClientOf, alice: User, run: Run, rated: Evaluation
) -> None:
    file = client_of(alice).get(reverse("runs:report_file", args=(run.project.slug, run.pk, "report.html")))
    html = file.content.decode()
    assert "scatter-point" in html
    assert "Strongest disagreements" not in html
    assert "report/agreement" not in html


def test_a_large_run_waits_for_a_worker(
    client_of: ClientOf, alice: User, run: Run, rated: Evaluation
) -> None:
    judge = judge_of(client_of, alice, run)
    Run.objects.filter(pk=run.pk).update(total=FEW + 1)
    (metric,) = run.metrics.values_list("name", flat=True)
    address = reverse("runs:report_agreement", args=(run.project.slug, run.pk))
    answer = client_of(alice).get(address, {"metric": metric, "judge": judge})
    assert answer.headers["Location"] == reverse("runs:report", args=(run.project.slug, run.pk))


def test_more_answers_take_no_more_queries(
    client_of: ClientOf, alice: User, run: Run, rated: Evaluation, django_assert_max_num_queries: Any
) -> None:
    listed(client_of, alice, run)  # computes the figures
    judge = judge_of(client_of, alice, run)
    (metric,) = run.metrics.values_list("name", flat=True)
    address = reverse("runs:report_agreement", args=(run.project.slug, run.pk))
    client = client_of(alice)
    with django_assert_max_num_queries(30) as all_of_them:
        assert client.get(address, {"metric": metric, "judge": judge}).status_code == 200
    with django_assert_max_num_queries(len(all_of_them)):
        part = client.get(address, {"metric": metric, "judge": judge, "judge_value": "1"})
    assert part.status_code == 200


def test_a_report_shows_both_reasons_of_the_strongest(
    client_of: ClientOf, alice: User, run: Run, rita: User
) -> None:
    for held in claim(evaluation=about(run, [rita]), user=rita, count=ROWS):
        give(held, 4, comment=f"Comment {held.item.row.line}")
    html = report(client_of, alice, run).content.decode()
    assert "Reason 1. Score: [[1]]" in html
    assert "Comment 1" in html
