"""The pages and the API of webhooks: for those who manage the project, and without secrets."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from django.conf import LazySettings
from django.db import connection

from evalsite.accounts.models import Project, User
from evalsite.tasks import jobs
from evalsite.webhooks.events import JOB, emit_test
from evalsite.webhooks.models import Delivery, Webhook
from evalsite.webhooks.services import webhook_create
from tests.api import Api, code_of
from tests.conftest import ClientOf
from tests.evalsite.webhooks.receiver import Receiver

PAGE = "/p/physics/webhooks/"
FORM = {
    "url": "https://hooks.example/services/T0/secret-part?key=x",
    "events": ["run.finished"],
    "name": "CI",
}
SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]{44}")


def test_the_signing_secret_is_shown_once_and_the_address_never(adam: User, client_of: ClientOf) -> None:
    client = client_of(adam)
    created = client.post(PAGE, FORM).content.decode()
    assert len(set(SECRET.findall(created))) == 1
    webhook = Webhook.objects.get()
    for page in (created, *(client.get(p).content.decode() for p in (PAGE, f"{PAGE}{webhook.pk}/"))):
        assert "https://hooks.example" in page
        assert "secret-part" not in page
    assert not SECRET.search(client.get(f"{PAGE}{webhook.pk}/").content.decode())
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM webhooks_webhook")
        assert "secret-part" not in str(cursor.fetchall())


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://hooks.example/", "must begin with https://"),
        ("https://10.0.0.1/", "not public"),
        ("https://[::1]/", "not public"),
        ("https://me:pw@hooks.example/", "without user"),
        ("https://hooks.example\\@10.0.0.1/", "without user"),
        ("ftp://hooks.example/", "without user"),
        ("hooks.example", "without user"),
        ("", "required"),
    ],
)
def test_an_address_that_can_not_be_used_is_refused_and_kept_in_the_form(
    url: str, says: str, adam: User, client_of: ClientOf
) -> None:
    response = client_of(adam).post(PAGE, {**FORM, "url": url})
    assert response.status_code == 422
    assert says in response.content.decode()
    assert not Webhook.objects.exists()


def test_plain_http_where_the_site_allows_it(adam: User, client_of: ClientOf, settings: LazySettings) -> None:
    settings.CONFIG = replace(settings.CONFIG, webhooks_plain_http=True)
    assert client_of(adam).post(PAGE, {**FORM, "url": "http://hooks.example/"}).status_code == 200


def test_a_change_without_an_address_keeps_it(adam: User, client_of: ClientOf) -> None:
    client_of(adam).post(PAGE, FORM)
    webhook = Webhook.objects.get()
    client_of(adam).post(f"{PAGE}{webhook.pk}/", {"events": ["mention"], "preset": "slack", "url": ""})
    after = Webhook.objects.get()
    assert (after.events, after.preset, after.url_encrypted) == (["mention"], "slack", webhook.url_encrypted)


def test_deliveries_show_request_and_reply_escaped_and_are_sent_again(
    project: Project, adam: User, client_of: ClientOf, receiver: Receiver
) -> None:
    receiver.reply = lambda _request: (500, {}, b"<b>no</b>")
    webhook, _secret = webhook_create(project=project, url=receiver.url(), events=[])
    emit_test(webhook)
    jobs.run(JOB, webhook.pk)
    page = client_of(adam).get(f"{PAGE}{webhook.pk}/").content.decode()
    assert "&lt;b&gt;no&lt;/b&gt;" in page
    assert "HTTP 500" in page
    assert "next try" in page
    receiver.reply = lambda _request: (200, {}, b"")
    client_of(adam).post(f"{PAGE}{webhook.pk}/deliveries/{Delivery.objects.get().pk}/send-again/")
    jobs.run(JOB, webhook.pk)
    assert Delivery.objects.get().state == "delivered"


@pytest.mark.parametrize(("name", "status"), [("alice", 403), ("bob", 403), ("charlie", 404)])
def test_only_who_manages_the_project_sets_webhooks(
    name: str, status: int, cast: dict[str, User], client_of: ClientOf
) -> None:
    assert client_of(cast[name]).post(PAGE, FORM).status_code == status
    assert Api(cast[name]).post("projects/physics/webhooks", FORM).status_code == status
    assert not Webhook.objects.exists()


def test_the_api_adds_lists_and_deletes_and_repeats_no_secret(adam: User, project: Project) -> None:
    api = Api(adam)
    first, second = (api.post("projects/physics/webhooks", FORM, key="k").json() for _ in range(2))
    assert SECRET.fullmatch(first.pop("secret"))
    assert second.pop("secret") is None
    assert first == second
    assert first["address"] == "https://hooks.example"
    assert api.get("projects/physics/webhooks").json() == {"items": [first], "next": None}
    assert api.delete(f"projects/physics/webhooks/{first['id']}").status_code == 204
    assert api.get("projects/physics/webhooks").json()["items"] == []


def test_the_api_names_the_fields_that_are_wrong(adam: User, project: Project) -> None:
    body = {"url": "http://hooks.example/", "events": ["run.started"], "preset": "irc"}
    response = Api(adam).post("projects/physics/webhooks", body)
    assert code_of(response) == (422, "invalid")
    assert set(response.json()["error"]["fields"]) == {"url", "events", "preset"}
