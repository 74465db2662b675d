"""The first page and a project's page."""

from __future__ import annotations

import pytest

from datasets.models import Dataset, Version, VersionState
from datasets.selectors import datasets_page
from evalsite.accounts.models import Membership, Project, Role, User
from tests.conftest import ClientOf
from tests.judging.judged import a_judged_run

pytestmark = pytest.mark.django_db


def test_data_sets_that_no_run_can_use_count_like_in_their_list(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    for name, valid_rows in (("usable", 1), ("broken", 0)):
        dataset = Dataset.objects.create(project=project, name=name)
        Version.objects.create(
            dataset=dataset, number=1, state=VersionState.READY, rows=1, valid_rows=valid_rows
        )
    Dataset.objects.create(project=project, name="without a version")
    counts = client_of(alice).get("/p/physics/").context["counts"]
    assert counts["dataset"] == len(datasets_page(project)[0]) == 2


def test_the_runs_of_all_projects_are_one_table(project: Project, alice: User, client_of: ClientOf) -> None:
    runs = [a_judged_run(project, rows=1)]
    other = Project.objects.create(slug="chemistry", name="Chemistry")
    Membership.objects.create(user=alice, project=other, role=Role.ANALYST)
    runs.append(a_judged_run(other, rows=1))
    page = client_of(alice).get("/").content.decode()
    table = page.partition("<table")[2].partition("</table>")[0]
    assert page.count("<table") == 1
    assert all(run.name in table and run.project.name in table for run in runs)
