"""Search returns only objects the user may open."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from datasets.models import Dataset
from evalsite.accounts.models import Project, User
from judging.endpoints.models import Endpoint
from judging.metrics.models import Metric
from judging.metrics.services import metric_create
from judging.records.models import Run
from tests.conftest import ClientOf
from tests.judging.people.make import make_evaluation
from tests.make import a_metric, a_project, a_run, a_version

pytestmark = pytest.mark.django_db

HERE = {"project": "physics"}
EVERYTHING = {"Data sets", "Metrics", "Endpoints", "Runs", "Human evaluation", "Models"}


@pytest.fixture
def needles(project: Project, rita: User) -> None:
    """One object of each kind with “needle” in its name."""
    version = a_version(project)
    Dataset.objects.filter(pk=version.dataset_id).update(name="needle set")
    version.candidates.filter(name="alpha").update(name="needle model")
    a_run(version, a_metric("http://127.0.0.1:9/v1"), name="needle run")
    named = a_metric("http://127.0.0.1:9/v1", name="needle metric")
    metric_create(project=project, definition=named, user=None)
    Endpoint.objects.create(project=project, name="needle endpoint", url="http://127.0.0.1:9/v1", model="m")
    Run.objects.filter(pk=make_evaluation(project, [rita]).run_id).update(name="needle evaluation")


def kinds(client_of: ClientOf, user: User, wanted: str) -> set[str]:
    """Labels of the result groups of a search, without pages and actions."""
    found = client_of(user).get("/search/", {"q": wanted, **HERE}).context["groups"]
    return {str(group.label) for group in found} - {"Pages and actions"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("alice", EVERYTHING),
        ("adam", EVERYTHING),
        ("olga", EVERYTHING),
        ("bob", EVERYTHING - {"Metrics", "Endpoints"}),
        ("rita", {"Rating"}),
        ("charlie", set()),
    ],
)
@pytest.mark.usefixtures("needles")
def test_users_find_what_they_may_open(
    name: str, expected: set[str], cast: dict[str, User], client_of: ClientOf
) -> None:
    assert kinds(client_of, cast[name], "needle") == expected


@pytest.mark.parametrize("name", ["alice", "adam", "olga", "bob", "rita"])
@pytest.mark.usefixtures("needles")
def test_every_hit_can_be_opened(name: str, cast: dict[str, User], client_of: ClientOf) -> None:
    client = client_of(cast[name])
    groups = client.get("/search/", {"q": "e", **HERE}).context["groups"]
    addresses = [hit.url for group in groups for hit in group.hits]
    assert len(addresses) > 2
    assert [url for url in addresses if client.get(url).status_code not in (200, 302)] == []


def test_chinese_names_are_found(project: Project, alice: User, client_of: ClientOf) -> None:
    Metric.objects.create(project=project, name="事实准确性")
    assert "事实准确性" in client_of(alice).get("/search/", {"q": "准确"}).text


def test_every_word_must_be_in_the_name(project: Project, alice: User, client_of: ClientOf) -> None:
    for name in ("strict quality", "quality", "strictness"):
        Metric.objects.create(project=project, name=name)
    (group,) = client_of(alice).get("/search/", {"q": "QUALITY strict"}).context["groups"]
    assert [hit.name for hit in group.hits] == ["strict quality"]


def test_names_that_start_with_the_words_come_first(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    for name in ("quality", "strict quality"):
        Metric.objects.create(project=project, name=name)
    (group,) = client_of(alice).get("/search/", {"q": "quality"}).context["groups"]
    assert [hit.name for hit in group.hits] == ["quality", "strict quality"]


def test_projects_are_found_by_their_members_only(alice: User, olga: User, client_of: ClientOf) -> None:
    a_project("Hidden physics")
    assert "Hidden physics" not in client_of(alice).get("/search/", {"q": "physics"}).text
    assert "Hidden physics" in client_of(olga).get("/search/", {"q": "physics"}).text


@pytest.mark.parametrize(("name", "there"), [("alice", True), ("bob", False), ("rita", False)])
def test_actions_are_offered_to_those_who_may_do_them(
    name: str, there: bool, cast: dict[str, User], client_of: ClientOf
) -> None:
    page = client_of(cast[name]).get("/search/", HERE).text
    assert ('href="/p/physics/runs/new/"' in page) == there


def test_a_project_without_access_offers_no_actions(
    charlie: User, project: Project, client_of: ClientOf
) -> None:
    assert "/p/physics/" not in client_of(charlie).get("/search/", HERE).text


def test_nothing_found_says_what_is_searched(alice: User, client_of: ClientOf) -> None:
    assert "Nothing found" in client_of(alice).get("/search/", {"q": "zzz"}).text


def test_a_model_is_found_once_in_the_newest_version_that_has_it(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    a_version(project, models=["heron"])
    newest = a_version(project, models=["heron"])
    (group,) = client_of(alice).get("/search/", {"q": "heron"}).context["groups"]
    (hit,) = group.hits
    assert hit.url.startswith(f"/p/physics/datasets/{newest.dataset_id}/v1/rows/?model=")


def test_members_are_found_by_who_manages_them(
    project: Project, adam: User, alice: User, rita: User, client_of: ClientOf
) -> None:
    assert "Members" in kinds(client_of, adam, rita.username)
    assert "Members" not in kinds(client_of, alice, rita.username)


def test_queries_do_not_grow_with_what_is_found(project: Project, alice: User, client_of: ClientOf) -> None:
    client, counts = client_of(alice), []
    for size in (1, 30):
        Metric.objects.bulk_create(Metric(project=project, name=f"quality {size}.{n}") for n in range(size))
        with CaptureQueriesContext(connection) as queries:
            client.get("/search/", {"q": "quality", **HERE})
        counts.append(len(queries))
    assert counts[0] == counts[1]
