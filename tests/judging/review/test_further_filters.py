"""One registration is enough for an additional filter in the list, the grid, their menu and downloads."""

from __future__ import annotations

import pytest
from django import forms
from django.apps import apps
from django.db.models import Q

from evalsite.accounts.models import Project, User
from judging.filters.conditions import matching
from judging.filters.judgement_filter import FURTHER, Filters, FurtherFilter
from judging.records.models import Judgement, Run
from tests.conftest import ClientOf
from tests.judging.judged import a_judged_run, said
from tests.judging.review.pages import address, pages, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(project: Project) -> Run:
    return a_judged_run(project, lambda place: said(place % 10 + 1), rows=30)


def half(run: Run, value: str) -> Q:
    positions = range(0 if value == "even" else 1, 60, 2)
    return Q(pk__in=Judgement.objects.filter(run=run, position__in=positions).values("pk"))


HALF = FurtherFilter(
    name="half",
    label="Half",
    field=lambda run: forms.ChoiceField(choices=[("", "any"), ("even", "Even"), ("odd", "Odd")]),
    condition=half,
)


@pytest.fixture(autouse=True)
def even(monkeypatch: pytest.MonkeyPatch) -> None:
    """List a filter for even or odd positions."""
    filters = apps.get_app_config("judging").hooks[FURTHER.name]
    monkeypatch.setitem(filters, "half", f"{__name__}.HALF")


@pytest.mark.parametrize("sort", ["position", "-score"])
def test_the_list_shows_what_it_means(run: Run, sort: str) -> None:
    found = pages(run, Filters(further={"half": "odd"}, candidate="beta", sort=sort))
    assert sorted(position for page in found for position in page) == list(range(1, 60, 2))


def test_it_is_in_the_address_and_can_be_removed(run: Run, bob: User, client_of: ClientOf) -> None:
    context = client_of(bob).get(address(run), {"half": "even", "candidate": "alpha"}).context
    assert context["query"] == "?candidate=alpha&half=even"
    assert context["chips"][1] == ("Half", "Even", "?candidate=alpha")
    assert context["count"] == 30


def test_the_menu_offers_it(run: Run, bob: User, client_of: ClientOf) -> None:
    assert '<option value="odd">Odd (30)</option>' in text(client_of(bob).get(address(run, "filter_menu")))


def test_a_value_that_it_does_not_know_is_refused(run: Run, bob: User, client_of: ClientOf) -> None:
    answer = client_of(bob).get(address(run), {"half": "third"})
    assert answer.status_code == 400
    assert "The filter “half” can&#x27;t be “third”" in text(answer)


def test_whatever_reads_filters_knows_it(run: Run) -> None:
    assert matching(run, Filters(further={"half": "even"})).count() == 30
