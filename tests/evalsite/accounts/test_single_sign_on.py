"""Single sign-on with a real provider over HTTP: which tokens are accepted and which are refused."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpResponse
from django.test import Client
from joserfc.jwk import OctKey, RSAKey

from evalsite import env
from evalsite.accounts.invitations import invitation_create
from evalsite.accounts.models import Membership, Project, User
from tests.conftest import ClientOf
from tests.evalsite.provider import CLIENT, SECRET, Provider

ALL = {"OIDC_ISSUER": "https://id.example", "OIDC_CLIENT_ID": "x", "OIDC_CLIENT_SECRET": "hush"}


@pytest.fixture
def provider(settings: LazySettings, db: None) -> Iterator[Provider]:
    provider = Provider()
    settings.LOCAL_MODE = False
    settings.CONFIG = replace(
        settings.CONFIG,
        oidc_issuer=provider.issuer,
        oidc_client_id=CLIENT,
        oidc_client_secret=SECRET,
        oidc_name="Our school",
    )
    yield provider
    provider.close()


def go(client: Client, provider: Provider, target: str = "", **brought: str) -> HttpResponse:
    """Sign in through the provider as a browser would; `brought` overrides the callback's parameters."""
    address = client.get("/sign-in/sso/", {"next": target}).headers["Location"]
    return client.get("/sign-in/sso/back/", {**provider.visit(address), **brought})


def signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_it_is_off_by_default(client: Client, db: None) -> None:
    assert "sso" not in client.get("/sign-in/").text
    assert client.get("/sign-in/sso/").status_code == 404
    assert client.get("/sign-in/sso/back/?code=x&state=y").status_code == 404


def test_the_form_offers_it_by_its_name(client: Client, provider: Provider) -> None:
    assert "Sign in with Our school" in client.get("/sign-in/").text


def test_who_comes_for_the_first_time_gets_an_account_without_a_project(
    client: Client, provider: Provider
) -> None:
    assert go(client, provider).headers["Location"] == "/"
    user = User.objects.get(username="dora")
    assert not Membership.objects.filter(user=user).exists()
    assert not user.has_usable_password()
    assert "You are not in any project yet" in client.get("/").text


def test_nul_in_a_name_is_replaced(client: Client, provider: Provider) -> None:
    provider.claims |= {"name": "Do\0ra", "email": "dora\0@example.org"}
    go(client, provider)
    assert User.objects.get(username="dora").first_name == "Do\ufffdra"


def test_no_cookie_of_the_provider_is_kept(client: Client, provider: Provider) -> None:
    provider.headers["Set-Cookie"] = "who=first; Path=/"
    go(client, provider)
    assert signed_in(client)
    assert provider.cookies == []


def test_a_compressed_answer_that_was_not_asked_for_is_refused(client: Client, provider: Provider) -> None:
    address = client.get("/sign-in/sso/").headers["Location"]
    provider.headers["Content-Encoding"] = "gzip"
    client.get("/sign-in/sso/back/", provider.visit(address))
    assert not signed_in(client)


def test_who_comes_again_is_the_same_whatever_the_name_is_now(client: Client, provider: Provider) -> None:
    go(client, provider)
    provider.claims["preferred_username"] = "dorothea"
    go(Client(), provider)
    assert User.objects.count() == 1


def test_an_account_that_exists_is_not_taken_over_by_its_name(
    client: Client, provider: Provider, adam: User
) -> None:
    provider.claims |= {"preferred_username": "adam", "email": "adam@example.org"}
    go(client, provider)
    assert client.get("/account/").context["user"].username == "adam-2"


def test_an_invitation_leads_through_the_sign_in(
    client: Client, provider: Provider, adam: User, project: Project
) -> None:
    _made, secret = invitation_create(project=project, roles=["rater"], note="x", days=1, by=adam)
    assert go(client, provider, f"/join/{secret}/").headers["Location"] == f"/join/{secret}/"
    client.post(f"/join/{secret}/")
    assert client.get("/p/physics/").status_code == 200


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:x"])
def test_it_never_leads_to_another_site(client: Client, provider: Provider, target: str) -> None:
    assert go(client, provider, target).headers["Location"] == "/"


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "somebody-else"},
        {"aud": [CLIENT, "somebody-else"]},
        {"iss": "https://evil.example"},
        {"exp": -3600},  # seconds from now
        {"iat": 3600},
        {"sub": None},
        {"sub": ""},
        {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
    ],
    ids=str,
)
def test_a_token_that_is_not_for_this_sign_in_is_refused(
    client: Client, provider: Provider, claims: dict[str, Any]
) -> None:
    since = int(time.time())
    times = {name: since + claims[name] for name in claims.keys() & {"exp", "iat"}}
    provider.claims |= claims | times
    assert go(client, provider).status_code == 403
    assert not signed_in(client)
    assert not User.objects.exists()


def test_a_token_signed_by_another_key_is_refused(client: Client, provider: Provider) -> None:
    provider.sign_with = RSAKey.generate_key(2048, {"kid": "one"}, private=True)
    assert go(client, provider).status_code == 403
    assert not signed_in(client)


def test_a_token_signed_by_the_shared_secret_is_refused(client: Client, provider: Provider) -> None:
    provider.sign_with, provider.algorithm = OctKey.import_key(SECRET * 3), "HS256"  # type: ignore[assignment]
    assert go(client, provider).status_code == 403


@pytest.mark.parametrize("brought", [{"state": "another"}, {"state": ""}, {"code": "made up"}], ids=str)
def test_a_wrong_state_or_code_is_refused(
    client: Client, provider: Provider, brought: dict[str, str]
) -> None:
    assert go(client, provider, **brought).status_code == 403
    assert not signed_in(client)


def test_an_answer_that_this_browser_did_not_ask_for_is_refused(client: Client, provider: Provider) -> None:
    address = Client().get("/sign-in/sso/").headers["Location"]
    assert client.get("/sign-in/sso/back/", provider.visit(address)).status_code == 403


def test_an_answer_serves_once(client: Client, provider: Provider) -> None:
    brought = provider.visit(client.get("/sign-in/sso/").headers["Location"])
    client.get("/sign-in/sso/back/", brought)
    assert client.get("/sign-in/sso/back/", brought).status_code == 403


def test_a_closed_account_stays_closed(client: Client, provider: Provider) -> None:
    go(client, provider)
    User.objects.update(is_active=False)
    other = Client()
    assert go(other, provider).status_code == 403
    assert not signed_in(other)


def test_a_provider_that_says_no_or_is_away_is_reported(client: Client, provider: Provider) -> None:
    client.get("/sign-in/sso/")
    assert client.get("/sign-in/sso/back/", {"error": "access_denied"}).status_code == 403
    provider.issuer = "http://127.0.0.1:9"  # a different issuer from now on
    assert "Sign-in failed" in client.get("/sign-in/sso/").text


def test_the_session_gets_another_key(client: Client, provider: Provider) -> None:
    address = client.get("/sign-in/sso/").headers["Location"]
    before = client.cookies["evalsite_session"].value
    client.get("/sign-in/sso/back/", provider.visit(address))
    assert client.cookies["evalsite_session"].value != before


@pytest.mark.parametrize("missing", ALL)
def test_half_a_configuration_is_refused_at_start(missing: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"{missing} missing"):
        env.read({name: value for name, value in ALL.items() if name != missing})


def test_a_provider_is_spoken_to_over_https_only() -> None:
    with pytest.raises(ImproperlyConfigured, match="https://"):
        env.read({**ALL, "OIDC_ISSUER": "http://id.example"})


def test_the_secret_is_not_shown() -> None:
    assert "hush" not in repr(env.read(ALL))


def test_a_signed_in_account_page_knows_nothing_of_the_secret(
    client_of: ClientOf, provider: Provider, alice: User
) -> None:
    assert SECRET not in client_of(alice).get("/account/").text
