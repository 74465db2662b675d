"""Permissions to read runs and judgements; see "Who may do what" in the people spec."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from evalsite.accounts.models import Project, User
from judging.records.models import Run
from tests.conftest import ClientOf
from tests.judging.judged import a_judged_run, first_of

pytestmark = pytest.mark.django_db
PAGES = ("list", "detail", "judgements", "judgement", "export")


def address(run: Run, page: str) -> str:
    more = {"list": (), "judgement": (run.pk, first_of(run).pk), "export": (run.pk, "csv")}.get(
        page, (run.pk,)
    )
    return reverse(f"runs:{page}", args=("physics", *more))


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    ("who", "status"),
    [("alice", 200), ("bob", 200), ("adam", 200), ("olga", 200), ("rita", 403), ("charlie", 404)],
)
def test_analysts_and_reviewers_read_raters_and_strangers_do_not(
    project: Project, cast: dict[str, User], client_of: ClientOf, page: str, who: str, status: int
) -> None:
    assert client_of(cast[who]).get(address(a_judged_run(project), page)).status_code == status


@pytest.mark.parametrize("page", PAGES)
def test_nobody_reads_without_signing_in(project: Project, page: str) -> None:
    answer = Client().get(address(a_judged_run(project), page))
    assert answer.status_code == 302
    assert reverse("accounts:sign_in") in answer.headers["Location"]


@pytest.mark.parametrize("page", PAGES[1:])
def test_a_run_is_not_found_under_another_project(
    project: Project, charlie: User, client_of: ClientOf, page: str
) -> None:
    there = address(a_judged_run(project), page).replace("/physics/", "/elsewhere/")
    assert client_of(charlie).get(there).status_code == 404
