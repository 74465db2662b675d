"""Comparisons with the reference show their verdicts, not the numbers that stand for them."""

from __future__ import annotations

import pytest
from django.urls import reverse

from evalsite.accounts.models import Project, User
from judging.core.metric_definition import MetricDefinition
from judging.filters.judgement_filter import Filters
from judging.records.models import Run
from judging.review.grid import grid_page
from judging.review.selectors import lines_of
from tests.conftest import ClientOf
from tests.judging.judged import JUDGE_URL, judge, said
from tests.judging.review.pages import judgement_address, text
from tests.make import a_metric, a_run, a_version


@pytest.fixture
def run(project: Project) -> Run:
    metric = a_metric(JUDGE_URL, parse="comparison", max_score=5)
    return judge(
        a_run(a_version(project, rows=3, models=("alpha",)), metric), lambda place: said(place % 3 + 2)
    )


@pytest.mark.parametrize(
    ("metric", "verdicts"),
    [
        (a_metric(JUDGE_URL, parse="comparison"), ["A>>B", "A=B", "B>>A", "", "", ""]),
        (a_metric(JUDGE_URL, parse="comparison", postprocess="x"), [""] * 6),
        (a_metric(JUDGE_URL), [""] * 6),
        (MetricDefinition(name="m", gives="comparison"), ["A>>B", "A=B", "B>>A", "", "", ""]),
        (MetricDefinition(name="m", gives="comparison", compares="all"), [""] * 6),
    ],
)
def test_a_number_stands_for_a_verdict_only_in_a_comparison_with_the_reference(
    metric: MetricDefinition, verdicts: list[str]
) -> None:
    assert [metric.verdict_of(value) for value in (1, 3.0, 5, 2.5, True, None)] == verdicts


@pytest.mark.django_db
def test_the_grid_and_the_list_show_verdicts(run: Run) -> None:
    pills = [cell[0].pills[0].shown for row in grid_page(run, Filters()).rows for cell in row.cells]
    assert pills == ["A>B", "A=B", "B>A"]
    ids = list(run.judgements.order_by("position").values_list("pk", flat=True))
    assert [line.value for line in lines_of(run, ids)] == pills


@pytest.mark.django_db
def test_the_page_of_a_judgement_shows_its_verdict(run: Run, bob: User, client_of: ClientOf) -> None:
    judgement = run.judgements.order_by("position")[1]
    assert '<span class="score">A=B</span>' in text(client_of(bob).get(judgement_address(judgement)))


@pytest.mark.django_db
def test_a_page_shows_the_verdict_of_another_metric_on_the_same_answer(
    run: Run, bob: User, client_of: ClientOf
) -> None:
    scored = judge(a_run(run.version, a_metric(JUDGE_URL, name="scored")), lambda place: said(4))
    judgement = scored.judgements.order_by("position")[1]
    assert "<strong>A=B</strong>" in text(client_of(bob).get(judgement_address(judgement)))


@pytest.mark.django_db
def test_the_report_has_the_shares_of_the_verdicts(run: Run, alice: User, client_of: ClientOf) -> None:
    page = client_of(alice).get(reverse("runs:report", args=("physics", run.pk)))
    (metric,) = page.context["report"].metrics
    shares = [cell for row in metric.board.rows for _column, cell in row]
    assert "A>B\u00a033\u00a0%\u00a0· A=B\u00a033\u00a0%\u00a0· B>A\u00a033\u00a0%" in shares
    assert [row[0] for row in metric.distribution.rows if " (" in row[0]][1:4] == [
        "A>B (2)",
        "A=B (3)",
        "B>A (4)",
    ]
