"""Passwords are reset by mail with a link that works once, and the page says nothing about accounts."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.core.mail import EmailMessage
from django.test import Client
from django.utils import timezone

from evalsite.accounts.models import User
from evalsite.accounts.tokens import token_create
from evalsite.mail.models import PasswordReset
from tests.conftest import PASSWORD, ClientOf
from tests.evalsite.mail.conftest import Sent, confirmed

pytestmark = pytest.mark.usefixtures("mail_site")
PAGE = "/password/reset/"
NEW = {"new_password1": "an unheard-of phrase", "new_password2": "an unheard-of phrase"}


def request_link(address: str, **headers: str) -> str:
    response = Client().post(PAGE, {"email": address}, headers=headers)
    assert response.status_code == 200
    return re.sub(r'csrf\w*" (?:value|content)="\w+"', "", response.content.decode())


def path_in(message: EmailMessage) -> str:
    match = re.search(r"https://evals\.example(/\S+)", str(message.body))
    assert match
    return match[1]


def test_the_answer_is_the_same_for_unknown_addresses(alice: User, sent: Sent) -> None:
    confirmed(alice)
    known, unknown = request_link("Alice@mail.example"), request_link("nobody@mail.example")
    plain = re.compile(r"[\w+/=-]{32,}")
    assert plain.sub("", known) == plain.sub("", unknown)
    (message,) = sent()
    assert message.to == ["alice@mail.example"]


def test_a_forged_host_is_in_no_link(alice: User, sent: Sent) -> None:
    confirmed(alice)
    request_link("alice@mail.example", **{"Host": "evil.example", "X-Forwarded-Host": "evil.example"})
    (message,) = sent()
    assert "evil.example" not in str(message.body)
    assert path_in(message).startswith("/password/reset/")


def test_a_link_sets_a_password_once_and_ends_sessions_and_tokens(
    alice: User, client_of: ClientOf, sent: Sent
) -> None:
    confirmed(alice)
    browser = client_of(alice)
    _token, token = token_create(user=alice, name="x", days=None)
    request_link("alice@mail.example")
    request_link("alice@mail.example")
    path, other = map(path_in, sent())
    assert PasswordReset.objects.filter(token_hash__in=[path.split("/")[-2]]).count() == 0
    assert Client().get(path).status_code == 200
    assert Client().post(path, {**NEW, "new_password2": "other"}).status_code == 422
    assert Client().post(path, NEW).status_code == 302
    for used in (path, other):
        assert Client().post(used, NEW).status_code == 404
    alice.refresh_from_db()
    assert alice.check_password(NEW["new_password1"])
    assert browser.get("/account/").status_code == 302
    headers = {"Authorization": f"Bearer {token}"}
    assert Client().get("/api/v1/projects", headers=headers).status_code == 401


def test_a_link_expires_after_30_minutes(alice: User, sent: Sent) -> None:
    confirmed(alice)
    request_link("alice@mail.example")
    (message,) = sent()
    stored = PasswordReset.objects.get(user=alice)
    assert timedelta(minutes=29) < stored.expires_at - timezone.now() <= timedelta(minutes=30)
    PasswordReset.objects.update(expires_at=timezone.now())
    assert Client().post(path_in(message), NEW).status_code == 404
    alice.refresh_from_db()
    assert alice.check_password(PASSWORD)


def test_only_confirmed_addresses_of_active_users_who_want_it_get_a_link(
    alice: User, bob: User, rita: User, sent: Sent
) -> None:
    confirmed(alice, resets=False)
    row = confirmed(bob)
    row.pending, row.address = row.address, ""
    row.save()
    confirmed(rita)
    User.objects.filter(pk=rita.pk).update(is_active=False)
    for name in ("alice", "bob", "rita"):
        request_link(f"{name}@mail.example")
    assert sent() == []
    assert not PasswordReset.objects.exists()


def test_requests_are_limited_for_known_and_unknown_addresses_alike(alice: User, sent: Sent) -> None:
    confirmed(alice)
    for address in ("alice@mail.example", "nobody@mail.example"):
        for _ in range(5):
            request_link(address)
        assert Client().post(PAGE, {"email": address.upper()}).status_code == 429
    assert len(sent()) == 5
    client = Client()
    assert client.post("/sign-in/", {"username": "alice", "password": PASSWORD}).status_code == 302


@pytest.mark.parametrize("missing", ["site_url", "email_url"])
def test_without_mail_or_an_address_of_the_site_there_is_no_reset(
    missing: str, settings: LazySettings, db: None
) -> None:
    settings.CONFIG = replace(settings.CONFIG, **{missing: ""})
    assert Client().get(PAGE).status_code == 404
    assert PAGE not in Client().get("/sign-in/").content.decode()
