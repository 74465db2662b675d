"""Filter of judgements by the difference between judge and human ratings."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.urls import reverse

from evalsite.accounts.models import Project, User
from judging.people.models import Evaluation
from judging.review import selectors
from judging.runs.filters import Filters, matching
from judging.runs.models import Run
from judging.runs.teamwork.marks import Change, change_one
from tests.conftest import ClientOf
from tests.judging.importing import imported, verdict
from tests.judging.judged import a_judged_run
from tests.judging.people.make import rate_all, sample_sent
from tests.judging.review.pages import address, pages, text
from tests.make import a_version

pytestmark = pytest.mark.django_db


def found(run: Run, least: str) -> list[float | None]:
    meant = matching(run, Filters(further={"differs": least}))
    return sorted(meant.values_list("score_in_force", flat=True))


@pytest.fixture
def rated(project: Project, alice: User, rita: User, client_of: ClientOf) -> Run:
    """Ten judgements with scores 1 to 10, whose answers a person rated 8."""
    run = a_judged_run(project, rows=5)
    client_of(alice).post(reverse("people:new", args=("physics",)), sample_sent(run, rita, sample_size=10))
    rate_all(Evaluation.objects.get(about_run=run), rita, 8)
    return run


def test_a_runs_judgements_are_compared_with_the_ratings_of_its_answers(rated: Run) -> None:
    assert found(rated, "5") == [1, 2, 3]
    assert found(rated, "0") == list(range(1, 11))


def test_what_is_excluded_from_figures_is_not_compared(rated: Run, bob: User) -> None:
    excluded = rated.judgements.get(score=2)
    change_one(judgement=excluded, change=Change("exclude", reason="broken"), by=bob)
    assert found(rated, "5") == [1, 3]


@pytest.mark.parametrize("sort", ["differs", "-differs"])
def test_the_list_is_sorted_by_how_far_the_judge_is_from_people(
    rated: Run, sort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selectors, "PER_PAGE", 3)
    scores = dict(rated.judgements.values_list("position", "score"))
    shown = [
        position for page in pages(rated, Filters(further={"differs": "1"}, sort=sort)) for position in page
    ]
    apart = [abs(scores[position] - 8) for position in shown]
    assert apart == sorted(apart, reverse=sort == "-differs")
    assert sorted(scores[position] for position in shown) == [1, 2, 3, 4, 5, 6, 7, 9, 10]


def test_a_judgement_in_that_order_has_its_neighbours(rated: Run) -> None:
    by_score = {one.score: one for one in rated.judgements.all()}
    filters = Filters(further={"differs": "0"}, sort="differs")
    assert selectors.neighbours(by_score[3], filters) == (by_score[4].pk, by_score[2].pk)


def test_the_column_of_the_difference_is_shown_where_the_list_is_sorted_by_it(
    rated: Run, bob: User, client_of: ClientOf
) -> None:
    context = client_of(bob).get(address(rated), {"sort": "-differs"}).context
    first = context["page"].lines[0].judgement
    assert (context["differs"][first.pk], "differs" in context["shown"]) == (7, True)


def test_an_imported_runs_judges_are_compared_with_its_raters(project: Project, tmp_path: Path) -> None:
    people = [verdict(line, value=3, rater=name) for line in (1, 2) for name in ("Ana", "Li")]
    run = imported(a_version(project), tmp_path, verdict(1, value=7), verdict(2, value=4), *people)
    assert found(run, "2") == [7]


def test_a_run_without_ratings_does_not_offer_it(project: Project, alice: User, client_of: ClientOf) -> None:
    run = a_judged_run(project)
    page = client_of(alice).get(address(run, "filter_menu"))
    assert 'name="differs"' not in text(page)
