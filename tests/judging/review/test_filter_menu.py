"""The filter menu shows how many judgements each choice would match."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalsite.accounts.models import Project, User
from judging.records.models import Run
from tests.conftest import ClientOf
from tests.judging.judged import a_judged_run, failed, said
from tests.judging.review.pages import address, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(project: Project) -> Run:
    """Thirty rows: sixty judgements, of which every fifth failed and every third is flagged."""

    def outcome(place: int) -> object:
        flags = ("truncated",) if place % 3 == 0 else ()
        return failed() if place % 5 == 0 else said(place % 10 + 1, flags=flags)

    return a_judged_run(project, outcome, rows=30)  # type: ignore[arg-type]


LARGE = pytest.mark.urls("tests.judging.review.large_run_urls")
"""Pages count at most 9 judgements."""


def labels(run: Run, client_of: ClientOf, user: User, name: str, **asked: str) -> list[str]:
    form = client_of(user).get(address(run, "filter_menu"), asked).context["form"]
    return [str(label) for value, label in form.fields[name].choices if value]


def test_each_choice_tells_how_many_there_would_be(run: Run, bob: User, client_of: ClientOf) -> None:
    assert labels(run, client_of, bob, "candidate") == ["alpha (30)", "beta (30)"]
    assert labels(run, client_of, bob, "candidate", state="error") == ["alpha (6)", "beta (6)"]
    assert labels(run, client_of, bob, "candidate", flag="truncated", candidate="beta") == [
        "alpha (8)",
        "beta (8)",
    ]
    assert labels(run, client_of, bob, "reason") == ["rate_limited (12)"]


@LARGE
def test_many_are_counted_as_at_least(run: Run, bob: User, client_of: ClientOf) -> None:
    assert labels(run, client_of, bob, "candidate") == ["alpha (9+)", "beta (9+)"]
    assert labels(run, client_of, bob, "candidate", state="error") == ["alpha (6)", "beta (6)"]


def test_texts_are_read_to_count_in_a_small_run(run: Run, bob: User, client_of: ClientOf) -> None:
    assert labels(run, client_of, bob, "candidate", reply="because") == ["alpha (24)", "beta (24)"]


@LARGE
def test_texts_are_not_read_to_count_in_a_large_run(run: Run, bob: User, client_of: ClientOf) -> None:
    assert labels(run, client_of, bob, "candidate", reply="because") == ["alpha", "beta"]


def test_the_button_tells_how_many_all_filters_mean(run: Run, bob: User, client_of: ClientOf) -> None:
    asked = {"candidate": "beta", "state": "error", "least": ""}
    page = text(client_of(bob).get(address(run, "filter_menu"), asked))
    assert "Show 6 judgements" in page


def test_what_cannot_be_is_said_in_the_menu(run: Run, bob: User, client_of: ClientOf) -> None:
    answer = client_of(bob).get(address(run, "filter_menu"), {"least": "much"})
    assert answer.status_code == 200
    assert "The filter “least” can&#x27;t be “much”" in text(answer)


def test_empty_fields_of_the_menu_are_left_out_of_the_address(
    run: Run, bob: User, client_of: ClientOf
) -> None:
    answer = client_of(bob).get(address(run, "items"), {"candidate": "", "flag": "truncated", "q": ""})
    assert (answer.status_code, answer.headers["Location"]) == (
        302,
        address(run, "items") + "?flag=truncated",
    )


def test_the_menu_takes_as_many_queries_for_few_as_for_many(
    run: Run, project: Project, bob: User, client_of: ClientOf
) -> None:
    taken = []
    for one in (run, a_judged_run(project, lambda _: failed(), rows=2)):
        with CaptureQueriesContext(connection) as queries:
            client_of(bob).get(address(one, "filter_menu"))
        taken.append(len(queries))
    assert taken[0] == taken[1]
