"""A project that is deleted while one of its pages is being made: the page says so, whenever that happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

from evalsite.accounts.models import Project, User
from evalsite.tasks import jobs
from judging.deletion.services import JOB, delete_begin
from tests.conftest import ClientOf
from tests.judging.deletion.whole import an_evaluation_with_ratings
from tests.judging.judged import a_judged_run

pytestmark = pytest.mark.django_db


@contextmanager
def deleted_after(queries: int, project: Project) -> Iterator[Callable[[], bool]]:
    """Delete the project after so many queries. Yields a function that says whether there were so many."""
    numbers, deleting, level = count(1), False, len(connection.savepoint_ids)

    def execute(run: Callable[..., Any], *statement: Any) -> Any:
        nonlocal deleting
        result = run(*statement)
        # Not within a transaction of the page, which would undo it.
        if not deleting and next(numbers) >= queries and len(connection.savepoint_ids) == level:
            deleting = True
            deletion = delete_begin(kind="project", thing=project, with_runs=True, wait=True)
            jobs.run(JOB, deletion.pk)
        return result

    with connection.execute_wrapper(execute):
        yield lambda: deleting


def statuses(client: Client, address: str, project: Project) -> set[int]:
    """The page's statuses, with the project deleted after every few of its queries."""
    found = set()
    for queries in count(2, 9):
        with transaction.atomic(), deleted_after(queries, project) as was_deleted:
            found.add(client.get(address).status_code)
            transaction.set_rollback(True)
        if not was_deleted():
            return found
    raise AssertionError


PAGES = [
    "/p/physics/runs/{run}/",
    "/p/physics/runs/{run}/judgements/{judgement}/",
    "/p/physics/datasets/{dataset}/v1/",
    "/p/physics/evaluations/{people}/",
    "/p/physics/desk/{people}/",
]


@pytest.fixture
def ids(project: Project, adam: User) -> dict[str, int]:
    """Ids of the project's run, data set and evaluation."""
    run = a_judged_run(project)
    people = an_evaluation_with_ratings(run.version, adam, run).run
    return {
        "run": run.pk,
        "judgement": run.judgements.order_by("pk")[0].pk,
        "dataset": run.version.dataset_id,
        "people": people.pk,
    }


@pytest.mark.parametrize("path", PAGES)
def test_a_page(path: str, ids: dict[str, int], project: Project, adam: User, client_of: ClientOf) -> None:
    client, address = client_of(adam), path.format(**ids)
    assert client.get(address).status_code == 200
    assert statuses(client, address, project) <= {200, 302, 404}


def test_the_page_says_so(ids: dict[str, int], project: Project, adam: User, client_of: ClientOf) -> None:
    address = f"/p/physics/runs/{ids['run']}/"
    client, texts = client_of(adam), []
    for queries in (10, 20, 30):
        with transaction.atomic(), deleted_after(queries, project):
            texts.append(client.get(address).text)
            transaction.set_rollback(True)
    assert any("This was deleted meanwhile" in text for text in texts)
