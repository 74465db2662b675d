"""Drafts of long forms: saved while typing, restored without validation, deleted once the form is saved."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evalsite.accounts import drafts, services
from evalsite.accounts.models import Draft, Project, User
from judging.endpoints.models import Endpoint
from judging.metrics.models import Metric
from tests.conftest import ClientOf
from tests.judging.endpoints.make import FORM as ENDPOINT
from tests.judging.metrics.conftest import endpoint, live, metric, server, version
from tests.judging.people.make import answered, sent
from tests.make import a_version

__all__ = ["endpoint", "live", "metric", "server", "version"]  # fixtures

pytestmark = pytest.mark.django_db


def keep(client: Client, form: str, key: str, /, **typed: Any) -> Any:
    return client.post(f"/p/physics/drafts/{form}/{key}/", typed)


def test_a_new_endpoint_comes_back_as_it_was_typed(adam: User, client_of: ClientOf) -> None:
    client = client_of(adam)
    assert keep(client, "endpoint", "new", name="Half a na", url="http://127.0.0.1").status_code == 204
    page = client.get("/p/physics/endpoints/new/").text
    assert 'value="Half a na"' in page
    assert "Your unsaved changes were restored" in page
    assert "This field is required" not in page


def test_secrets_are_in_no_draft(adam: User, client_of: ClientOf) -> None:
    secrets = dict.fromkeys(("key", "headers", "proxy"), "sesame")
    keep(client_of(adam), "endpoint", "new", name="Judge", url="http://me:sesame@host/v1", **secrets)
    assert "sesame" not in Draft.objects.get().data
    assert "Judge" in Draft.objects.get().data


def test_a_stored_endpoint_shows_what_was_changed(
    adam: User, endpoint: Endpoint, client_of: ClientOf
) -> None:
    client = client_of(adam)
    keep(client, "endpoint", str(endpoint.pk), **ENDPOINT | {"name": "Another name"})
    assert 'value="Another name"' in client.get(f"/p/physics/endpoints/{endpoint.pk}/edit/").text


def test_what_is_saved_has_no_draft(adam: User, client_of: ClientOf) -> None:
    client = client_of(adam)
    keep(client, "endpoint", "new", **ENDPOINT)
    client.post("/p/physics/endpoints/new/", ENDPOINT)
    assert Endpoint.objects.filter(name="Judge").exists()
    assert not Draft.objects.exists()


def test_what_could_not_be_saved_keeps_its_draft(adam: User, client_of: ClientOf) -> None:
    client = client_of(adam)
    keep(client, "endpoint", "new", **ENDPOINT)
    assert client.post("/p/physics/endpoints/new/", ENDPOINT | {"url": ""}).status_code == 422
    assert Draft.objects.count() == 1


def test_a_metric_comes_back_with_the_judge_model_that_was_added(
    alice: User, metric: Metric, client_of: ClientOf
) -> None:
    client = client_of(alice)
    typed = {"judges": "1", "judge_order": ["0", "1"], "judge-1-template": "Twice {{ data.question }}"}
    keep(client, "metric", str(metric.pk), name="Renamed", began="1", **typed)
    page = client.get(f"/p/physics/metrics/{metric.pk}/").text
    assert 'value="Renamed"' in page
    assert "Twice {{ data.question }}" in page
    assert "This field is required" not in page


def test_each_start_of_a_new_metric_has_a_draft_of_its_own(
    alice: User, project: Project, client_of: ClientOf
) -> None:
    client = client_of(alice)
    keep(client, "metric", "new-single_turn_score.en", name="Mine", start="single_turn_score.en")
    assert 'value="Mine"' not in client.get("/p/physics/metrics/new/?start=").text
    assert 'href="?start=single_turn_score.en"' in client.get("/p/physics/metrics/new/").text
    assert 'value="Mine"' in client.get("/p/physics/metrics/new/?start=single_turn_score.en").text


def test_a_rule_program_comes_back_unfinished(alice: User, project: Project, client_of: ClientOf) -> None:
    client = client_of(alice)
    keep(client, "rules", "new", name="", rules="# DSL\n@all:")
    page = client.get("/p/physics/metrics/rules/new/").text
    assert "# DSL\n@all:</textarea>" in page
    assert "This field is required" not in page


def test_a_saved_metric_has_no_draft(alice: User, metric: Metric, client_of: ClientOf) -> None:
    client, where = client_of(alice), f"/p/physics/metrics/{metric.pk}/"
    keep(client, "metric", str(metric.pk), name="Renamed")
    assert client.post(where, {"name": "", "save": "1"}).status_code == 422
    assert Draft.objects.count() == 1
    page = client.get("/p/physics/metrics/rules/new/")
    program = {"name": "Rules", "rules": page.context["form"]["rules"].value(), "sandbox": "batch"}
    keep(client, "rules", "new", **program)
    assert client.post("/p/physics/metrics/rules/new/", program | {"save": "1"}).status_code == 302
    assert list(Draft.objects.values_list("form", flat=True)) == ["metric"]


def test_a_new_run_opens_on_the_data_set_of_its_draft(
    alice: User, metric: Metric, project: Project, client_of: ClientOf
) -> None:
    client, earlier = client_of(alice), a_version(project)
    a_version(project)
    keep(client, "run", f"version-{earlier.pk}", version=earlier.pk, name="Half", budget_calls="12")
    page = client.get("/p/physics/runs/new/")
    assert page.context["version"] == earlier
    assert 'value="Half"' in page.text
    assert "This field is required" not in page.text


def test_a_link_to_a_metric_opens_a_new_run_with_it_whatever_the_draft_says(
    alice: User, metric: Metric, project: Project, client_of: ClientOf
) -> None:
    client, data, mine = client_of(alice), a_version(project), metric.versions.get().pk
    keep(client, "run", f"version-{data.pk}", version=data.pk, name="Half", metrics="0")
    link = f"/p/physics/runs/new/?version={data.pk}&metric={mine}"
    assert 'value="Half"' not in client.get(link).text
    keep(client, "run", f"version-{data.pk}", version=data.pk, name="Half", metrics=mine)
    assert 'value="Half"' in client.get(link).text


def test_a_new_evaluation_comes_back_with_its_criteria(
    alice: User, rita: User, project: Project, client_of: ClientOf
) -> None:
    client, rated = client_of(alice), answered(a_version(project))
    typed = sent(rated, [rita], **{"criteria-0-name": "Manners", "criteria-0-scale": "five", "name": "Soon"})
    keep(client, "evaluation", f"version-{rated.pk}", **typed)
    page = client.get("/p/physics/evaluations/new/").text
    assert 'value="Manners"' in page
    assert 'value="Soon"' in page
    client.post("/p/physics/evaluations/new/", sent(rated, [rita]))
    assert not Draft.objects.exists()


def test_a_discarded_draft_leads_back_to_the_form(adam: User, client_of: ClientOf) -> None:
    client, where = client_of(adam), "/p/physics/endpoints/new/"
    keep(client, "endpoint", "new", name="Half")
    answer = client.post("/p/physics/drafts/endpoint/new/?discard=1", {"next": where})
    assert answer["Location"] == where
    assert "Half" not in client.get(where).text


def test_a_draft_is_its_authors_alone(adam: User, olga: User, client_of: ClientOf) -> None:
    keep(client_of(adam), "endpoint", "new", name="Private")
    assert "Private" not in client_of(olga).get("/p/physics/endpoints/new/").text


@pytest.mark.parametrize(
    ("name", "form", "status"),
    [("alice", "endpoint", 403), ("rita", "metric", 403), ("charlie", "run", 404), ("alice", "other", 404)],
)
def test_a_draft_needs_the_right_to_its_form(
    name: str, form: str, status: int, cast: dict[str, User], client_of: ClientOf
) -> None:
    assert keep(client_of(cast[name]), form, "new", name="x").status_code == status
    assert not Draft.objects.exists()


def test_only_the_newest_drafts_are_kept(adam: User, client_of: ClientOf) -> None:
    client = client_of(adam)
    for number in range(drafts.MOST + 2):
        keep(client, "endpoint", str(number), name="x")
    assert Draft.objects.count() == drafts.MOST
    assert not Draft.objects.filter(key="0").exists()


def test_drafts_that_nobody_came_back_to_expire(adam: User, client_of: ClientOf) -> None:
    keep(client_of(adam), "endpoint", "new", name="old")
    Draft.objects.update(saved_at=timezone.now() - services.DRAFTS_KEPT_FOR - timedelta(days=1))
    keep(client_of(adam), "endpoint", "2", name="new")
    services.delete_expired()
    assert Draft.objects.get().key == "2"
