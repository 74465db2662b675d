"""Mail goes only to addresses that their owners confirmed, and each kind can be switched off."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from smtplib import SMTPServerDisconnected

import pytest
from django.core.mail import EmailMessage
from django.utils import timezone

from evalsite.accounts.models import User
from evalsite.mail.digests import send_due
from evalsite.mail.models import Kind, MailAddress, OutgoingMail
from evalsite.mail.outgoing import mail_user
from evalsite.models import Job
from evalsite.tasks import jobs
from tests.conftest import ClientOf
from tests.evalsite.mail.conftest import Sent, confirmed

pytestmark = pytest.mark.usefixtures("mail_site")
FORM = {"mail-email": "alice@mail.example", "mail-time_zone": "Asia/Shanghai", "mail-mentions": "on"}


def hello() -> tuple[str, str]:
    return "Hello\nBcc: x@y.example", "Text"


def link_in(message: EmailMessage) -> str:
    match = re.search(r"https://evals\.example(/\S+)", str(message.body))
    assert match
    return match[1]


def test_an_address_counts_once_its_owner_opened_the_link(
    alice: User, bob: User, client_of: ClientOf, sent: Sent
) -> None:
    client = client_of(alice)
    client.post("/account/mail/", FORM, headers={"Host": "evil.example"})
    (message,) = sent()
    assert message.to == ["alice@mail.example"]
    assert "evil.example" not in str(message.body)
    assert not mail_user(Kind.MENTIONS, alice, hello)
    path = link_in(message)
    assert client_of(bob).post(path).status_code == 404
    client.get(path)
    assert not mail_user(Kind.MENTIONS, alice, hello)
    client.post(path)
    assert mail_user(Kind.MENTIONS, alice, hello)
    assert not mail_user(Kind.RUNS, alice, hello)  # it is switched off
    (message,) = sent()
    assert (message.to, message.subject) == (["alice@mail.example"], "Hello Bcc: x@y.example")
    assert client.post(path).status_code == 404


def test_a_new_address_replaces_the_confirmed_one_only_when_it_is_confirmed(
    alice: User, client_of: ClientOf, sent: Sent
) -> None:
    confirmed(alice, "old@mail.example")
    client_of(alice).post("/account/mail/", FORM)
    (to_new,) = sent()
    mail_user(Kind.MENTIONS, alice, hello)
    assert [message.to for message in sent()] == [["old@mail.example"]]
    client_of(alice).post(link_in(to_new))
    mail_user(Kind.MENTIONS, alice, hello)
    assert [message.to for message in sent()] == [["alice@mail.example"]]


def test_what_is_switched_off_or_removed_meanwhile_is_not_sent(alice: User, sent: Sent) -> None:
    row = confirmed(alice)
    mail_user(Kind.MENTIONS, alice, hello)
    MailAddress.objects.filter(pk=row.pk).update(mentions=False)
    mail_user(Kind.RUNS, alice, hello)
    MailAddress.objects.filter(pk=row.pk).update(address="")
    assert sent() == []
    assert not OutgoingMail.objects.exists()


def test_a_text_is_stored_encrypted_and_deleted_once_sent(alice: User, sent: Sent) -> None:
    confirmed(alice)
    mail_user(Kind.MENTIONS, alice, lambda: ("x", "a-secret-link"))
    assert "a-secret-link" not in OutgoingMail.objects.get().text_encrypted
    assert len(sent()) == 1
    assert not OutgoingMail.objects.exists()


def test_a_server_that_is_away_is_asked_again(
    alice: User, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_message: EmailMessage) -> None:
        raise SMTPServerDisconnected

    confirmed(alice)
    mail_user(Kind.MENTIONS, alice, hello)
    with monkeypatch.context() as patch:
        patch.setattr(EmailMessage, "send", fail)
        jobs.run("send_mail", OutgoingMail.objects.get().pk)
    not_before = Job.objects.get(kind="send_mail").not_before
    assert not_before
    assert timedelta(0) < not_before - timezone.now() <= timedelta(seconds=5)
    assert len(sent()) == 1


@pytest.mark.parametrize("zone", ["Mars/Base", "/etc/passwd", "../x"])
def test_an_unknown_zone_is_refused_and_kept_in_the_form(zone: str, alice: User, client_of: ClientOf) -> None:
    response = client_of(alice).post("/account/mail/", {**FORM, "mail-time_zone": zone})
    assert response.status_code == 422
    assert zone in response.content.decode()
    assert not MailAddress.objects.exists()


def test_waiting_ratings_are_one_mail_a_day_in_the_readers_morning(
    rita: User, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalsite.mail.digests.waiting_ratings", [lambda _user: ["Study: 3 items"]])
    confirmed(rita, time_zone="Asia/Shanghai")
    counts = []
    for hour in (22, 23, 24, 25, 47, 48, 49):  # 8 o'clock in Shanghai is 0 o'clock in UTC
        send_due(datetime(2026, 11, 26, tzinfo=UTC) + timedelta(hours=hour))
        counts.append(len(sent()))
    assert counts == [0, 0, 1, 0, 0, 1, 0]


def test_a_zone_that_the_machine_does_not_know_any_more_stops_nobody(
    rita: User, alice: User, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalsite.mail.digests.waiting_ratings", [lambda _user: ["Study: 3 items"]])
    confirmed(rita, time_zone="Mars/Base")
    confirmed(alice)
    send_due(datetime(2026, 11, 26, 9, tzinfo=UTC))
    assert len(sent()) == 2
