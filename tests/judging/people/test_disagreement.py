"""Filter of judgements by the difference between judge and human ratings."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.urls import reverse

from evalsite.accounts.models import Project, User
from judging.filters.conditions import matching
from judging.filters.judgement_filter import Filters
from judging.people.models import Evaluation
from judging.records.models import Run
from judging.teamwork.marks import Change, change_one
from tests.conftest import ClientOf
from tests.judging.importing import imported, verdict
from tests.judging.judged import a_judged_run
from tests.judging.people.make import rate_all, sample_sent
from tests.judging.review.pages import address, text
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


def test_the_column_of_the_difference_can_be_shown(rated: Run, bob: User, client_of: ClientOf) -> None:
    client_of(bob).post(address(rated, "choose_columns"), {"columns": ["differs"]})
    context = client_of(bob).get(address(rated)).context
    first = context["page"].lines[0].judgement
    assert context["differs"][first.pk] == abs(first.score - 8)


def test_an_imported_runs_judges_are_compared_with_its_raters(project: Project, tmp_path: Path) -> None:
    people = [verdict(line, value=3, rater=name) for line in (1, 2) for name in ("Ana", "Li")]
    run = imported(a_version(project), tmp_path, verdict(1, value=7), verdict(2, value=4), *people)
    assert found(run, "2") == [7]


def test_a_run_without_ratings_does_not_offer_it(project: Project, alice: User, client_of: ClientOf) -> None:
    run = a_judged_run(project)
    page = client_of(alice).get(address(run, "filter_menu"))
    assert 'name="differs"' not in text(page)
