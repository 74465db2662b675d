"""Evidence files from a run's page: who may write one, who signs it, and the project's rules."""

from __future__ import annotations

import json
import zipfile
from io import BytesIO
from typing import Any

import pytest
from django.test import Client

from evalsite.accounts.models import Project, User
from evalsite.models import AuditEntry
from judging.evidence.models import EvidenceRules
from judging.people.models import Evaluation
from judging.records.models import Run
from tests.conftest import ClientOf
from tests.judging import judged
from tests.judging.people.make import about

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(project: Project) -> Run:
    return judged.a_judged_run(project, lambda place: judged.said(10 if place % 2 else 4))


@pytest.fixture
def page(alice: User, client_of: ClientOf) -> Client:
    return client_of(alice)


def address(run: Run, rest: str = "") -> str:
    return f"/p/physics/runs/{run.pk}/evidence/{rest}"


def settings_in(response: Any) -> dict[str, Any]:
    content = b"".join(response.streaming_content)
    with zipfile.ZipFile(BytesIO(content)) as archive:
        document: dict[str, Any] = json.loads(archive.read("settings.json"))
        return document


def test_the_file_is_downloaded_and_recorded(page: Client, run: Run) -> None:
    assert "Not signed" in page.get(address(run)).content.decode()
    response = page.post(address(run))
    assert response.headers["Content-Disposition"].startswith("attachment")
    assert "-evidence.zip" in response.headers["Content-Disposition"]
    inside = settings_in(response)
    assert (inside["run"], inside["hashes_only"], "hosts" in inside) == (run.name, False, False)
    entry = AuditEntry.objects.get(action="evidence.written")
    assert (entry.actor_name, entry.detail["hashes_only"]) == ("alice", False)


def test_the_rules_of_the_project_hold_for_every_file(
    page: Client, run: Run, cast: dict[str, User], client_of: ClientOf
) -> None:
    client_of(cast["adam"]).post(address(run, "rules/"), {"hashes_only": "on", "host_names": "on"})
    inside = settings_in(page.post(address(run)))
    assert inside["hashes_only"] is True
    assert [host["host"] for host in inside["hosts"]] == ["127.0.0.1"]
    assert AuditEntry.objects.filter(action="evidence.rules", actor_name="adam").exists()


def test_only_administrators_change_the_rules(page: Client, run: Run) -> None:
    assert page.post(address(run, "rules/"), {"host_names": "on"}).status_code == 403
    assert not EvidenceRules.objects.exists()


@pytest.mark.parametrize("who", ["bob", "rita"])
def test_only_those_who_start_runs_write_evidence(
    who: str, cast: dict[str, User], client_of: ClientOf, run: Run
) -> None:
    assert client_of(cast[who]).post(address(run)).status_code == 403


def test_none_is_written_while_people_rate(page: Client, run: Run, rita: User) -> None:
    evaluation: Evaluation = about(run, [rita])
    response = page.post(address(run))
    assert response.status_code == 422
    assert f"{evaluation.run.name}” is still open" in response.content.decode()
