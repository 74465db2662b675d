"""Measuring from the page of a card: started, followed, stopped, and shown beside the shipped record."""

from __future__ import annotations

import pytest
from django.test import Client

from datasets.models import Version
from evalsite.accounts.models import Project, User
from judging.endpoints.models import Endpoint
from judging.trust.models import Measurement
from tests.conftest import ClientOf
from tests.make import a_version

CARD = "/p/physics/metrics/gallery/faithful/"
MEASURE = "/p/physics/judges/gallery/faithful/measure/"
LIST = "/p/physics/judges/gallery/faithful/"


@pytest.fixture
def client(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


@pytest.fixture
def version(project: Project) -> Version:
    return a_version(project)


@pytest.fixture
def endpoint(project: Project) -> Endpoint:
    return Endpoint.objects.create(
        project=project, name="Judge", url="http://127.0.0.1:9/v1", model="judge-1", probe={"ok": True}
    )


def test_a_card_says_that_nothing_was_measured(client: Client, project: Project) -> None:
    page = client.get(CARD).text
    assert "Not measured yet" in page
    assert "Measure with my judge" in page
    assert "Measure with my judge" not in client.get(CARD.replace("faithful", "exact_match")).text


def test_a_measurement_is_started_followed_and_stopped(client: Client, endpoint: Endpoint) -> None:
    to = client.post(MEASURE, {"endpoint": endpoint.pk, "in": "zh", "measured_on": "", "most_calls": "7"})
    assert to["Location"] == f"{CARD}#measured"
    row = Measurement.objects.get()
    assert (row.language, row.model, row.most_calls, row.answers) == ("zh", "judge-1", 7, 6)
    assert f'hx-get="{LIST}" hx-trigger="every 2s"' in client.get(CARD).text
    client.post(f"/p/physics/judges/gallery/measurements/{row.pk}/stop/")
    ended = client.get(LIST).text
    assert "Stopped" in ended
    assert "hx-get" not in ended


def test_a_record_stands_beside_the_shipped_one(client: Client, endpoint: Endpoint) -> None:
    client.post(MEASURE, {"endpoint": endpoint.pk})
    record = {"judge": "judge-1", "date": "2026-11-27", "data": "Round one", "n": 50, "equal": 45}
    rates = {"agreement": 0.9, "agreement_low": 0.8, "agreement_high": 0.96}
    Measurement.objects.update(record=record | rates, data_name="Round one", finished_at="2026-11-27T00:00Z")
    page = client.get(CARD).text
    assert "Round one (n = 50)" in page
    assert "45 of 50" in page
    assert "90 %" in client.get("/p/physics/metrics/new/").text


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ({"most_calls": "-3"}, "whole number from 1"),
        ({"measured_on": "999"}, "can&#x27;t be used"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(
    typed: dict[str, str], why: str, client: Client, endpoint: Endpoint
) -> None:
    page = client.post(MEASURE, {"endpoint": endpoint.pk, **typed}, follow=True).text
    assert why in page
    assert not Measurement.objects.exists()


def test_without_an_endpoint_nothing_starts(client: Client, project: Project) -> None:
    assert "Choose a judge endpoint first." in client.post(MEASURE, follow=True).text


def test_another_project_s_measurement_is_not_found(
    client: Client, endpoint: Endpoint, client_of: ClientOf, charlie: User
) -> None:
    client.post(MEASURE, {"endpoint": endpoint.pk})
    row = Measurement.objects.get()
    gone = client_of(charlie).post(f"/p/elsewhere/judges/gallery/measurements/{row.pk}/stop/")
    assert gone.status_code == 404
    row.refresh_from_db()
    assert row.finished_at is None
