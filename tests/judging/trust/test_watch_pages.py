"""The pages of a watch, over HTTP, and what the API says of it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from evalsite.accounts.models import Project, User
from judging.metrics.models import Metric
from judging.records.models import Run
from judging.trust.models import Licence
from judging.trust.watch.models import Watch
from tests.api import Api
from tests.conftest import ClientOf
from tests.judging.trust.test_watch import (
    HOUR,
    SENTINELS,
    Days,
    a_later_run,
    again,
    alice,
    days,
    learn,
    licence,
    licence_pk,
    metric,
    project,
    rita,
    run,
    sit,
    watch,
)

pytestmark = pytest.mark.django_db
__all__ = ["alice", "days", "licence", "licence_pk", "metric", "project", "rita", "run", "watch"]  # fixtures


@pytest.fixture
def alices(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


def address(project: Project, *parts: object) -> str:
    return f"/p/{project.slug}/judges/" + "/".join(map(str, parts)) + "/"


def test_the_price_is_shown_before_a_watch_begins(alices: Client, project: Project, licence: Licence) -> None:
    page = alices.get(address(project, "licences", licence.pk, "watch"), {"sentinels": 30})
    assert "150 calls: 30 sentinels" in page.content.decode()
    assert not Watch.objects.exists()


def test_a_watch_is_begun_and_ended(alices: Client, project: Project, licence: Licence) -> None:
    begin = address(project, "licences", licence.pk, "watch")
    sent = {"sentinels": SENTINELS, "schedule": "0 3 * * *"}
    there = alices.post(begin, sent)
    watch = Watch.objects.get()
    assert there["Location"] == alices.get(begin)["Location"] == address(project, "watches", watch.pk)
    assert "0 of 5 sittings" in alices.get(there["Location"]).content.decode()
    alices.post(address(project, "watches", watch.pk, "end"))
    assert again(watch).state == "ended"
    assert alices.get(there["Location"]).status_code == 200
    assert there["Location"] in alices.get(address(project, "licences", licence.pk)).content.decode()


@pytest.mark.parametrize(
    "sent", [{"sentinels": 29}, {"sentinels": 30, "schedule": "* * * * *"}, {"sentinels": 90}, {}]
)
def test_what_cannot_be_watched_is_refused(
    alices: Client, project: Project, licence: Licence, sent: dict[str, Any]
) -> None:
    assert alices.post(address(project, "licences", licence.pk, "watch"), sent).status_code == 422
    assert not Watch.objects.exists()


def test_schedule_and_ceilings_are_changed(
    alices: Client, client_of: ClientOf, adam: User, project: Project, watch: Watch
) -> None:
    administrator = client_of(adam)
    alices.post(address(project, "watches", watch.pk, "schedule"), {"schedule": "15  */6 * * *"})
    assert alices.post(address(project, "watches", watch.pk, "ceilings"), {"calls": 700}).status_code == 403
    administrator.post(address(project, "watches", watch.pk, "ceilings"), {"calls": 500})
    assert (again(watch).schedule, again(watch).ceiling_calls) == ("15 */6 * * *", 500)
    too_low = administrator.post(address(project, "watches", watch.pk, "ceilings"), {"calls": 100})
    bad = alices.post(address(project, "watches", watch.pk, "schedule"), {"schedule": "x y"})
    assert (too_low.status_code, bad.status_code) == (422, 422)


def test_checks_and_alarm_are_shown(
    alices: Client, project: Project, watch: Watch, days: Days, metric: Metric, run: Run
) -> None:
    learn(watch, days)
    a_later_run(project, metric)
    sit(watch)
    days.wait(HOUR)
    a_later_run(project, metric)
    sit(watch, turned=6)
    page = alices.get(address(project, "watches", watch.pk)).content.decode()
    assert "The licence is suspended" in page
    assert "interval-inline" in page
    assert "in &gt; 99 % of cases" in page
    assert "has changed: its licence is suspended" in alices.get("/inbox/").content.decode()
    assert address(project, "watches", watch.pk) in alices.get(f"/p/{project.slug}/judges/").content.decode()


def test_the_api_shows_the_watch(
    alice: User, project: Project, watch: Watch, days: Days, metric: Metric
) -> None:
    learn(watch, days)
    a_later_run(project, metric)
    sit(watch)
    (judge,) = Api(alice).get(f"projects/{project.slug}/judges").json()["items"]
    shown = judge["watch"]
    assert (shown["state"], shown["checks"], shown["last"]["share"]["rate"]) == ("watching", 1, 0)
