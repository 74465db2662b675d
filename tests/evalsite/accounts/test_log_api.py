"""The audit log in the API."""

from __future__ import annotations

import csv
import json

from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from tests.api import Api, code_of

LOG = "projects/physics/log"


def test_the_log_has_the_same_entries_in_both_forms(adam: User, project: Project) -> None:
    record(Action.PROJECT_ARCHIVED, project=project, thing=project, by=adam, note="x")
    lines = list(map(json.loads, Api(adam).get(LOG).getvalue().splitlines()))
    rows = list(csv.DictReader(Api(adam).get(LOG, form="csv").getvalue().decode("utf-8-sig").splitlines()))
    assert "project.archived" in [line["action"] for line in lines]
    assert [line["action"] for line in lines] == [row["action"] for row in rows]


def test_the_site_log_is_for_superusers_with_a_token_for_all_projects(
    olga: User, adam: User, project: Project
) -> None:
    assert Api(olga).get("log").status_code == 200
    assert code_of(Api(olga, project=project).get("log")) == (403, "forbidden")
    assert code_of(Api(adam).get("log")) == (403, "forbidden")
