"""Saved views: named filters, private or shared. A filter that does not fit the run is reported."""

from __future__ import annotations

import pytest
from django.http import HttpResponse
from django.test import Client

from evalsite.accounts.models import Project, User
from judging.records.models import Run
from judging.records.row_fields import TURNS
from judging.review.models import SavedView
from tests.conftest import ClientOf
from tests.judging.judged import a_judged_run
from tests.judging.review.pages import address, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(project: Project) -> Run:
    return a_judged_run(project)


def save(client: Client, run: Run, query: str, name: str, **more: str) -> HttpResponse:
    form = {"name": name, "page": "list", **more}
    return client.post(address(run, "save_view") + query, form, follow=True)


def shown(client: Client, run: Run) -> list[tuple[str, str]]:
    """Name of each view in the menu, and why it does not fit the run."""
    return [(one.name, misfit) for one, misfit in client.get(address(run)).context["saved_views"]]


def test_a_saved_view_opens_its_filter_on_grid_and_list(run: Run, bob: User, client_of: ClientOf) -> None:
    page = text(save(client_of(bob), run, "?state=error&sort=-score", "Errors first"))
    assert "View “Errors first” saved." in page
    assert 'href="?state=error&amp;sort=-score"' in page
    assert 'href="?state=error&amp;sort=-score"' in text(client_of(bob).get(address(run, "items")))


def test_a_view_is_its_owners_alone_until_it_is_shared(
    run: Run, alice: User, bob: User, client_of: ClientOf
) -> None:
    save(client_of(bob), run, "?state=error", "Errors")
    assert shown(client_of(alice), run) == []
    view = SavedView.objects.get()
    client_of(bob).post(
        address(run, "change_view", view.pk), {"name": "Failed", "shared": "on", "page": "grid"}
    )
    assert shown(client_of(alice), run) == [("Failed", "")]


def test_only_its_owner_changes_or_deletes_a_view(
    run: Run, alice: User, bob: User, client_of: ClientOf
) -> None:
    save(client_of(bob), run, "?state=error", "Errors", shared="on")
    view = SavedView.objects.get()
    for name in ("change_view", "delete_view"):
        answer = client_of(alice).post(address(run, name, view.pk), {"name": "Mine", "page": "list"})
        assert answer.status_code == 403
    client_of(bob).post(address(run, "delete_view", view.pk), {"page": "list"})
    assert not SavedView.objects.exists()


def test_a_name_is_not_taken_twice(run: Run, bob: User, client_of: ClientOf) -> None:
    save(client_of(bob), run, "?state=error", "Mine")
    assert "already have a view “Mine”" in text(save(client_of(bob), run, "?state=scored", "Mine"))
    assert SavedView.objects.get().query == "state=error"
    save(client_of(bob), run, "?state=scored", "Other")
    other = SavedView.objects.get(name="Other")
    answer = client_of(bob).post(
        address(run, "change_view", other.pk), {"name": "Mine", "page": "list"}, follow=True
    )
    assert "already have a view “Mine”" in text(answer)
    other.refresh_from_db()
    assert other.name == "Other"


def test_a_view_by_a_field_of_every_row_fits_every_run(run: Run, bob: User, client_of: ClientOf) -> None:
    save(client_of(bob), run, f"?field={TURNS}&field_from=1", "Turns")
    assert shown(client_of(bob), run) == [("Turns", "")]


def test_a_view_that_does_not_fit_the_run_says_why(
    run: Run, project: Project, bob: User, client_of: ClientOf
) -> None:
    save(client_of(bob), run, "?candidate=beta", "Beta")
    SavedView.objects.create(project=project, owner=bob, name="Old", query="gone=1")
    other = a_judged_run(project, models=("gamma",))
    assert shown(client_of(bob), run)[0] == ("Beta", "")
    (_, beta), (_, old) = shown(client_of(bob), other)
    assert beta.startswith("The filter “candidate” can't be “beta”")
    assert old.startswith("There is no filter “gone”")


def test_a_view_with_a_former_order_still_opens(
    run: Run, project: Project, bob: User, client_of: ClientOf
) -> None:
    SavedView.objects.create(project=project, owner=bob, name="Old", query="state=scored&sort=-candidate")
    assert shown(client_of(bob), run) == [("Old", "")]


def test_a_nameless_view_is_not_saved(run: Run, bob: User, client_of: ClientOf) -> None:
    assert "Enter a name" in text(save(client_of(bob), run, "?state=error", ""))
