import pytest
from django.test import Client

from evalsite.accounts.models import User
from tests.conftest import ClientOf


@pytest.mark.parametrize(
    ("wanted", "language"), [("zh-CN,zh;q=0.9", "zh-hans"), ("en-GB", "en"), ("fr", "en")]
)
def test_before_a_choice_the_browser_decides(client: Client, db: None, wanted: str, language: str) -> None:
    page = client.get("/sign-in/", HTTP_ACCEPT_LANGUAGE=wanted)
    assert f'<html lang="{language}">' in page.text


def test_a_choice_goes_before_the_browser(client_of: ClientOf, alice: User) -> None:
    client = client_of(alice)
    client.post("/language/", {"language": "zh-hans"})
    assert '<html lang="zh-hans">' in client.get("/", HTTP_ACCEPT_LANGUAGE="en").text


def test_the_choice_belongs_to_the_user_not_to_the_browser(client_of: ClientOf, alice: User) -> None:
    client_of(alice).post("/language/", {"language": "zh-hans"})
    alice.refresh_from_db()
    assert '<html lang="zh-hans">' in client_of(alice).get("/", HTTP_ACCEPT_LANGUAGE="en").text


def test_an_unknown_language_changes_nothing(client_of: ClientOf, alice: User) -> None:
    client_of(alice).post("/language/", {"language": "tlh"})
    alice.refresh_from_db()
    assert alice.language == ""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_chosen_colours_are_there_from_the_first_byte(client: Client, db: None, theme: str) -> None:
    client.post("/theme/", {"theme": theme})
    assert f'data-theme="{theme}"' in client.get("/sign-in/").text


@pytest.mark.parametrize("theme", ["", "pink", '"><script>'])
def test_without_a_known_choice_the_system_decides(client: Client, db: None, theme: str) -> None:
    client.cookies["evalsite_theme"] = theme
    assert "data-theme=" not in client.get("/sign-in/").text
