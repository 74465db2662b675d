"""Local mode signs visitors in without a password, so it only accepts requests from this machine."""

from __future__ import annotations

import pytest
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.test import Client

from evalsite import env
from evalsite.management.commands.serve import who_gets_in
from tests.conftest import person

LINK = {"HTTP_SEC_FETCH_MODE": "navigate", "HTTP_SEC_FETCH_DEST": "document"}


@pytest.fixture(autouse=True)
def local(settings: LazySettings, db: None) -> None:
    settings.LOCAL_MODE = True
    person("admin", is_superuser=True)


@pytest.mark.parametrize(
    "header",
    ["Forwarded", "Via", "X-Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Anything"],
)
def test_a_request_through_a_proxy_is_refused_and_leaves_no_session(client: Client, header: str) -> None:
    answer = client.get("/", headers={header: "1.1 proxy"})
    assert answer.status_code == 403
    assert "REQUIRE_SIGN_IN=1" in answer.text
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert not Session.objects.exists()


@pytest.mark.parametrize("site", ["cross-site", "same-site", "Cross-Site", "what comes next"])
def test_what_another_sites_page_loads_is_refused_and_leaves_no_session(client: Client, site: str) -> None:
    image = {"HTTP_SEC_FETCH_MODE": "no-cors", "HTTP_SEC_FETCH_DEST": "image"}
    assert client.get("/", HTTP_SEC_FETCH_SITE=site, **image).status_code == 403
    assert not Session.objects.exists()


def test_a_form_that_another_site_sends_is_refused(client: Client) -> None:
    answer = client.post("/theme/", {"theme": "dark"}, HTTP_SEC_FETCH_SITE="cross-site", **LINK)
    assert answer.status_code == 403


def test_another_sites_frame_is_refused(client: Client) -> None:
    framed = LINK | {"HTTP_SEC_FETCH_DEST": "iframe"}
    assert client.get("/", HTTP_SEC_FETCH_SITE="cross-site", **framed).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "same-origin", "none"])
def test_a_link_is_followed_from_anywhere(client: Client, site: str) -> None:
    assert client.get("/", HTTP_SEC_FETCH_SITE=site, **LINK).context["user"].username == "admin"


def test_the_sites_own_pages_load_parts(client: Client) -> None:
    own = {
        "HTTP_SEC_FETCH_SITE": "same-origin",
        "HTTP_SEC_FETCH_MODE": "cors",
        "HTTP_SEC_FETCH_DEST": "empty",
    }
    assert client.get("/", **own).status_code == 200


def test_someone_who_is_let_in_already_is_refused_too(client: Client) -> None:
    client.get("/")
    assert client.get("/", headers={"X-Forwarded-For": "192.0.2.1"}).status_code == 403


def test_with_accounts_a_proxy_is_welcome(client: Client, settings: LazySettings) -> None:
    settings.LOCAL_MODE = False
    assert client.get("/sign-in/", headers={"X-Forwarded-For": "192.0.2.1"}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/static/favicon.svg"])
def test_no_other_site_may_load_a_page_or_a_file(client: Client, path: str, settings: LazySettings) -> None:
    settings.WHITENOISE_USE_FINDERS = True
    answer = client.get(path)
    answer.close()
    assert answer.status_code == 200
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_the_start_says_who_gets_in_and_how_to_ask_for_a_password(settings: LazySettings) -> None:
    assert "Anyone with an account on this machine" in who_gets_in()
    assert "REQUIRE_SIGN_IN=1" in who_gets_in()
    settings.LOCAL_MODE = False
    assert who_gets_in() == ""


def test_one_setting_asks_for_a_password_at_the_same_addresses() -> None:
    local, asking = env.read({}), env.read({"REQUIRE_SIGN_IN": "1"})
    assert (local.local_mode, asking.local_mode) == (True, False)
    assert local.hosts == asking.hosts == ["localhost", "127.0.0.1", "[::1]"]
