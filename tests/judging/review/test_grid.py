"""The grid of items: rows and candidates, pages, filters, and the judgement panel."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from evalsite.accounts.models import Project, User
from judging.core.metric_definition import MetricDefinition
from judging.core.results import JudgementResult
from judging.core.values import scale_level
from judging.filters.judgement_filter import Filters
from judging.filters.orders import ListPosition
from judging.records.models import Override, Run
from judging.review.grid import ROWS, GridPage, grid_page
from tests.conftest import ClientOf
from tests.judging.judged import JUDGE_URL, a_judged_run, failed, judge, said
from tests.make import a_metric, a_run

pytestmark = pytest.mark.django_db


def every_seventh_fails(place: int) -> JudgementResult:
    return failed() if place % 7 == 3 else said(place % 10 + 1)


@pytest.fixture
def run(project: Project) -> Run:
    """Fifty rows with two candidates: three pages."""
    return a_judged_run(project, every_seventh_fails, rows=50)


def address(run: Run, name: str, *more: Any) -> str:
    return reverse(f"runs:{name}", args=("physics", run.pk, *more))


def every_page(run: Run, filters: Filters) -> list[GridPage]:
    found: list[GridPage] = []
    after: ListPosition | None = None
    while not found or found[-1].next:
        found.append(grid_page(run, filters, after))
        after = found[-1].next
    return found


def test_every_row_appears_once_in_the_order_of_the_data(run: Run) -> None:
    lines = [row.line for page in every_page(run, Filters()) for row in page.rows]
    assert lines == list(range(1, 51))


def test_a_page_has_a_cell_for_each_candidate(run: Run) -> None:
    page = grid_page(run, Filters())
    assert (page.candidates, len(page.rows)) == (["alpha", "beta"], ROWS)
    assert [cell[0].text for cell in page.rows[0].cells] == ["alpha says 1.1", "beta says 1.1"]
    assert [cell[0].pills[0].shown for cell in page.rows[0].cells] == ["1", "2"]


def test_a_filter_leaves_the_rows_that_it_means_with_the_other_cells_beside(run: Run) -> None:
    pages = every_page(run, Filters(state="error"))
    rows = [row for page in pages for row in page.rows]
    meant = [pill.meant for row in rows for cell in row.cells for answer in cell for pill in answer.pills]
    assert len(rows) == meant.count(True) == run.errors
    assert len(meant) == 2 * len(rows)


def test_rows_of_a_sorted_grid_come_by_their_first_judgement(run: Run) -> None:
    page = grid_page(run, Filters(sort="-score"))
    best = [max(float(cell[0].pills[0].shown or 0) for cell in row.cells) for row in page.rows]
    assert best == sorted(best, reverse=True)


def test_an_empty_run_has_no_rows(run: Run) -> None:
    assert grid_page(run, Filters(candidate="nobody")).rows == []


def test_a_page_takes_as_many_queries_as_any_other(
    run: Run, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    first = grid_page(run, Filters())
    with django_assert_num_queries(8):
        assert grid_page(run, Filters(), first.next).rows


@pytest.mark.parametrize(
    ("score", "level"), [(1, 1), (2.79, 1), (5.5, 3), (10, 5), (12, 5), (-3, 1)], ids=str
)
def test_a_score_has_one_of_five_colours(score: float, level: int) -> None:
    assert scale_level(score, 1, 10) == level


@pytest.fixture
def reader(alice: User, client_of: ClientOf) -> Client:
    return client_of(alice)


@pytest.fixture
def reviewer(bob: User, client_of: ClientOf) -> Client:
    return client_of(bob)


def test_the_filter_is_in_chips_that_can_be_removed(reader: Client, run: Run) -> None:
    response = reader.get(address(run, "items"), {"candidate": "beta", "least": "3"})
    assert [chip[:2] for chip in response.context["chips"]] == [
        ("Candidate", "beta"),
        ("Score at least", "3"),
    ]
    assert response.context["chips"][1][2] == "?candidate=beta"


def test_a_score_on_the_page_has_its_colour(reader: Client, run: Run) -> None:
    page = reader.get(address(run, "items"), {"candidate": "alpha"}).content.decode()
    assert page.count(' data-level="1"') > 5
    assert page.count(" data-other") == ROWS


def test_a_long_name_may_break_in_the_head(project: Project, reader: Client) -> None:
    long = a_judged_run(project, models=["llama2_chat_7b_Attention", "b"])
    assert "llama2_<wbr>chat_<wbr>7b_<wbr>Attention</th>" in reader.get(address(long, "items")).text


def test_an_answer_is_shown_whole_on_demand(reader: Client, run: Run) -> None:
    judgement = run.judgements.order_by("position")[0]
    response = reader.get(address(run, "answer", judgement.response_id))
    assert "alpha says 1.1" in response.content.decode()


def test_an_answer_of_another_run_is_not_shown(reader: Client, run: Run, project: Project) -> None:
    other = a_judged_run(project, rows=1).judgements.order_by("position")[0]
    assert reader.get(address(run, "answer", other.response_id)).status_code == 404


def override(client: Client, run: Run, value: str, **headers: str) -> HttpResponse:
    judgement = run.judgements.order_by("position")[0]
    form = {"value": value, "reason": "Read it again", "seen": "0"}
    return client.post(address(run, "override", judgement.pk), form, headers=headers)


def test_an_override_in_the_panel_answers_with_the_panel(reviewer: Client, run: Run) -> None:
    response = override(reviewer, run, "9", hx_request="true")
    assert response.templates[0].name == "review/_panel.html"
    assert response.context["in_force"] == "9"


def test_a_wrong_value_in_the_panel_keeps_what_was_typed(reviewer: Client, run: Run) -> None:
    response = override(reviewer, run, "99", hx_request="true")
    assert (response.status_code, Override.objects.count()) == (422, 0)
    assert "Read it again" in response.content.decode()


def test_a_pill_shows_what_was_changed_in_the_panel(reviewer: Client, run: Run) -> None:
    judgement = run.judgements.order_by("position")[0]
    override(reviewer, run, "9")
    reviewer.post(address(run, "mark", judgement.pk, "tag"), {"name": "odd"})
    pill = reviewer.get(address(run, "pill", judgement.pk)).content.decode()
    assert 'data-level="5"' in pill
    assert "<strong>9</strong>" in pill
    assert 'aria-label="odd"' in pill


def test_a_panel_without_the_right_to_review_offers_no_override(reader: Client, run: Run) -> None:
    judgement = run.judgements.order_by("position")[0]
    assert "New value" not in reader.get(address(run, "panel", judgement.pk)).content.decode()


def test_a_panel_names_what_other_runs_say_of_the_answer(reader: Client, run: Run) -> None:
    first = run.judgements.order_by("position")[0]
    for verdict in (said(7), failed()):
        judge(a_run(run.version, a_metric(JUDGE_URL)), lambda _place, verdict=verdict: verdict)
    page = reader.get(address(run, "panel", first.pk)).content.decode()
    assert "<strong>7</strong>" in page
    assert 'data-state="error"' in page


@pytest.mark.parametrize(
    ("value", "score", "declared", "level"),
    [("10", 10.0, True, 5), ("true", 1.0, False, 5), ("7", 7.0, False, None), ('"A"', None, True, None)],
)
def test_a_number_has_a_colour_only_on_a_scale(
    value: str, score: float | None, declared: bool, level: int | None
) -> None:
    assert MetricDefinition(name="m", scale_declared=declared).level(value, score) == level


def test_the_metrics_are_named_once_in_the_head_and_hidden_in_the_chips(reviewer: Client, run: Run) -> None:
    page = reviewer.get(address(run, "items")).content.decode()
    name = run.metrics.get().name
    head, _body, cells = page.partition("<tbody>")
    assert head.partition("<thead>")[2].count(name) == 1
    named = f'title="{name}">', f'<span class="visually-hidden">{name}</span>'
    assert cells.count(name) == sum(cells.count(part) for part in named)


def test_a_long_question_ends_in_an_ellipsis(project: Project) -> None:
    run = a_judged_run(project, rows=1)
    row = run.judgements.first().row
    row.raw = json.dumps({"messages": [{"role": "user", "content": "why " * 200}]})
    row.save()
    assert grid_page(run, Filters()).rows[0].question.endswith("why…")
