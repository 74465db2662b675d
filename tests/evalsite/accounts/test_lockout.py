"""Password guessing is throttled and reported, also for unknown usernames."""

from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone

from evalsite.accounts import services
from evalsite.accounts.login_throttle import ADDRESS, LIMITS, NAME, client_address
from evalsite.accounts.models import User
from evalsite.models import AuditEntry
from tests.conftest import PASSWORD


@pytest.fixture(autouse=True)
def _counted(settings: LazySettings) -> None:
    settings.AXES_ENABLED = True
    settings.LOCAL_MODE = False


def guess(client: Client, name: str, times: int = 1, address: str = "10.0.0.1") -> HttpResponse:
    for _ in range(times):
        answer = client.post("/sign-in/", {"username": name, "password": "wrong"}, REMOTE_ADDR=address)
    return answer


def sign_in(client: Client, name: str, address: str = "10.0.0.1") -> HttpResponse:
    return client.post("/sign-in/", {"username": name, "password": PASSWORD}, REMOTE_ADDR=address)


def test_after_five_wrong_passwords_the_right_one_is_refused_too(client: Client, alice: User) -> None:
    guess(client, "alice", 5)
    page = sign_in(client, "alice")
    assert page.status_code == 429
    assert 590 <= int(page.headers["Retry-After"]) <= 600
    assert "in 10 minutes" in page.text


def test_a_name_that_nobody_has_is_treated_the_same(client: Client, alice: User) -> None:
    statuses = [[guess(client, name).status_code for _ in range(6)] for name in ("alice", "nobody")]
    assert statuses[0] == statuses[1]
    assert statuses[0][-1] == 429


def test_other_names_and_other_places_are_not_concerned(client: Client, alice: User, bob: User) -> None:
    guess(client, "alice", 6)
    assert sign_in(client, "bob").status_code == 302
    assert sign_in(Client(), "alice", address="10.0.0.2").status_code == 302


def test_an_address_that_tries_many_names_is_closed_for_all_of_them(client: Client, alice: User) -> None:
    for number in range(LIMITS[ADDRESS]):
        guess(client, f"name{number}")
    page = sign_in(client, "alice")
    assert page.status_code == 429
    assert "failed attempts from your network" in page.text
    assert sign_in(Client(), "alice", address="10.0.0.2").status_code == 302


def test_a_name_tried_from_many_addresses_is_closed_everywhere(
    client: Client, alice: User, bob: User
) -> None:
    for number in range(LIMITS[NAME]):
        guess(client, "alice", address=f"10.0.1.{number}")
    page = sign_in(client, "alice", address="10.0.2.1")
    assert page.status_code == 429
    assert "failed attempts for this username. " in page.text
    assert sign_in(client, "bob", address="10.0.1.1").status_code == 302


def test_an_office_of_people_who_mistype_is_not_closed(client: Client, alice: User) -> None:
    for number in range(12):
        guess(client, f"colleague{number}", 4)
    assert sign_in(client, "alice").status_code == 302


def test_ones_own_right_password_forgives_no_guesses_at_others(client: Client, alice: User) -> None:
    for number in range(LIMITS[ADDRESS] - 1):
        guess(client, f"name{number}")
    sign_in(client, "alice")
    assert guess(Client(), "bob").status_code == 429


def test_a_closed_address_opens_when_the_first_guesses_are_ten_minutes_old(
    client: Client, alice: User
) -> None:
    for number in range(LIMITS[ADDRESS]):
        guess(client, f"name{number}")
    AccessAttempt.objects.filter(username="name0").update(attempt_time=timezone.now() - timedelta(minutes=9))
    assert int(sign_in(client, "alice").headers["Retry-After"]) <= 60
    AccessAttempt.objects.filter(username="name0").update(attempt_time=timezone.now() - timedelta(minutes=11))
    assert sign_in(client, "alice").status_code == 302


def test_a_closed_address_is_written_down_once_whatever_names_are_tried(client: Client, db: None) -> None:
    for number in range(LIMITS[ADDRESS] + 5):
        guess(client, f"name{number}")
    entry = AuditEntry.objects.get(action="sign_in.locked")
    assert (entry.name, entry.detail) == ("", {"ip": "10.0.0.1"})


def test_a_network_of_ipv6_counts_as_one_address(client: Client, alice: User) -> None:
    for number in range(5):
        guess(client, "alice", address=f"2001:db8::{number}")
    assert sign_in(client, "alice", address="2001:db8::ffff").status_code == 429


def test_more_guesses_do_not_lengthen_the_wait(client: Client, alice: User) -> None:
    guess(client, "alice", 5)
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=9))
    guess(client, "alice", 3)
    assert int(sign_in(client, "alice").headers["Retry-After"]) <= 60


def test_after_the_wait_one_gets_in(client: Client, alice: User) -> None:
    guess(client, "alice", 5)
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=11))
    assert sign_in(client, "alice").status_code == 302


def test_the_right_password_forgives_the_wrong_ones(client: Client, alice: User) -> None:
    guess(client, "alice", 4)
    sign_in(client, "alice")
    client.post("/sign-out/")
    assert guess(client, "alice", 4).status_code == 200


def test_it_is_written_down_once_and_without_the_password(client: Client, alice: User) -> None:
    guess(client, "alice", 9)
    entry = AuditEntry.objects.get(action="sign_in.locked")
    assert (entry.name, entry.detail) == ("alice", {"ip": "10.0.0.1"})
    assert "wrong" not in str(list(AccessAttempt.objects.values()))


def test_on_ones_own_machine_nothing_is_counted(client: Client, alice: User, settings: LazySettings) -> None:
    settings.AXES_ENABLED = False
    assert guess(client, "alice", 8).status_code == 200


def test_behind_a_proxy_only_what_it_saw_is_believed(settings: LazySettings) -> None:
    request = RequestFactory().get(
        "/", headers={"X-Forwarded-For": "1.1.1.1, 2.2.2.2"}, REMOTE_ADDR="10.0.0.9"
    )
    assert client_address(request) == "10.0.0.9"
    settings.CONFIG = type("Config", (), {"https": True})
    assert client_address(request) == "2.2.2.2"


def test_ended_sessions_and_old_guesses_are_taken_away(client: Client, alice: User) -> None:
    guess(client, "alice")
    sign_in(client, "alice")
    guess(Client(), "bob")
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(hours=1))
    Session.objects.update(expire_date=timezone.now() - timedelta(days=1))
    services.delete_expired()
    assert not AccessAttempt.objects.exists()
    assert not Session.objects.exists()


def test_a_foreign_host_name_leaves_no_traceback(
    client: Client, db: None, caplog: pytest.LogCaptureFixture
) -> None:
    assert client.get("/", HTTP_HOST="evil.example").status_code == 400
    assert [(record.name, record.exc_info) for record in caplog.records] == [
        ("django.security.DisallowedHost", None)
    ]
