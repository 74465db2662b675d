"""A project's page: its counts are those of the lists."""

from __future__ import annotations

import pytest

from datasets.models import Dataset, Version, VersionState
from datasets.selectors import datasets_page
from evalsite.accounts.models import Project, User
from tests.conftest import ClientOf

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
