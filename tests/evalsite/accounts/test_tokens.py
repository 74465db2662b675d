"""API tokens: programs have their user's permissions and no others."""

import re
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from evalsite.accounts.models import ApiToken, Membership, User
from evalsite.accounts.tokens import token_create
from evalsite.models import AuditEntry
from tests.conftest import ClientOf

DATASETS = "/api/v1/projects/physics/datasets"


def bearer(user: User, days: int | None = None) -> dict[str, str]:
    return {"Authorization": f"Bearer {token_create(user=user, name='nightly', days=days)[1]}"}


def test_a_token_opens_what_its_user_may_see(client: Client, alice: User) -> None:
    assert client.get(DATASETS, headers=bearer(alice)).status_code == 200


@pytest.mark.parametrize(("name", "status"), [("rita", 403), ("charlie", 404)])
def test_and_nothing_else(client: Client, name: str, status: int, cast: dict[str, User]) -> None:
    assert client.get(DATASETS, headers=bearer(cast[name])).status_code == status


def test_the_token_is_shown_once_and_kept_as_a_hash(client_of: ClientOf, alice: User) -> None:
    client = client_of(alice)
    page = client.post("/account/tokens/", {"token-name": "nightly", "token-days": "30"})
    shown = re.search(r'id="token">(evs_[\w-]+)<', page.text)
    assert shown
    assert page.headers["Cache-Control"] == "private, no-store"
    assert shown[1] not in client.get("/account/").text
    assert shown[1] not in str(ApiToken.objects.values().get()) + str(list(AuditEntry.objects.values()))


def test_a_token_whose_user_left_the_project_stops_at_once(client: Client, alice: User) -> None:
    header = bearer(alice)
    Membership.objects.filter(user=alice).delete()
    assert client.get(DATASETS, headers=header).status_code == 404


def test_a_token_of_a_closed_account_stops_at_once(client: Client, alice: User) -> None:
    header = bearer(alice)
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert client.get(DATASETS, headers=header).status_code == 401


def test_a_revoked_token_stops_at_once(client: Client, client_of: ClientOf, alice: User) -> None:
    header = bearer(alice)
    client_of(alice).post(f"/account/tokens/{ApiToken.objects.get().pk}/revoke/")
    assert client.get(DATASETS, headers=header).status_code == 401


def test_a_token_ends_with_its_time(client: Client, alice: User) -> None:
    header = bearer(alice, days=1)
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert client.get(DATASETS, headers=header).status_code == 401


@pytest.mark.parametrize(
    "given", ["Bearer", "Bearer x", "Bearer evs_", "bearer \u00e9", "Bearer " + "a" * 5000]
)
def test_a_wrong_token_is_refused_even_beside_a_good_session(
    client_of: ClientOf, alice: User, given: str
) -> None:
    for path in (DATASETS, "/p/physics/"):
        answer = client_of(alice).get(path, headers={"Authorization": given})
        assert answer.status_code == 401
        assert "Bearer" in answer.headers["WWW-Authenticate"]


@pytest.mark.parametrize(
    "path", ["/", "/account/", "/p/physics/", "/p/physics/datasets/", "/p/physics/log/export.csv", "/join/x/"]
)
def test_a_token_opens_no_page(client: Client, olga: User, path: str) -> None:
    answer = client.get(path, headers=bearer(olga))
    assert (answer.status_code, "/api/" in answer.text) == (401, True)


def test_a_token_opens_no_page_in_local_mode_either(
    client: Client, olga: User, settings: LazySettings
) -> None:
    settings.LOCAL_MODE = True
    assert client.get("/p/physics/", headers=bearer(olga)).status_code == 401


def test_a_token_in_the_address_is_no_token(client: Client, alice: User) -> None:
    secret = bearer(alice)["Authorization"].removeprefix("Bearer ")
    assert client.get(f"/p/physics/?token={secret}&access_token={secret}").status_code == 302


def test_a_request_with_a_token_needs_no_token_of_a_form(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    assert client.post(DATASETS, {}, headers=bearer(alice)).status_code == 422


def test_a_request_with_a_cookie_does(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert client.post("/p/physics/datasets/upload/", {}).status_code == 403


def test_a_token_takes_no_rights_from_a_session_that_is_sent_along(
    client_of: ClientOf, adam: User, rita: User
) -> None:
    assert client_of(adam).get(DATASETS, headers=bearer(rita)).status_code == 403


def test_the_browser_that_sends_both_stays_signed_in(client_of: ClientOf, alice: User) -> None:
    client = client_of(alice)
    client.get(DATASETS, headers=bearer(alice))
    assert client.get("/account/").status_code == 200


def test_its_use_is_noted(client: Client, alice: User) -> None:
    client.get(DATASETS, headers=bearer(alice))
    assert ApiToken.objects.get().last_used_at is not None


def test_what_is_changed_with_a_token_says_so_in_the_log(client: Client, adam: User) -> None:
    endpoint = {"url": "http://127.0.0.1:9/v1", "model": "m"}
    client.post("/api/v1/projects/physics/endpoints", endpoint, "application/json", headers=bearer(adam))
    entry = AuditEntry.objects.get(action="endpoint.created")
    assert (entry.actor_name, entry.via) == ("adam", "nightly")


def test_nobody_revokes_the_token_of_someone_else(client_of: ClientOf, alice: User, adam: User) -> None:
    bearer(alice)
    assert client_of(adam).post(f"/account/tokens/{ApiToken.objects.get().pk}/revoke/").status_code == 404
