import pytest
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse

from evalsite.accounts.models import Project, User
from tests.conftest import PASSWORD, ClientOf, person


def sign_in(client: Client, user: User, password: str = PASSWORD) -> str:
    answer = client.post("/sign-in/", {"username": user.username, "password": password})
    return answer.headers.get("Location", "")


def test_who_is_signed_out_is_sent_to_the_form(client: Client, project: Project) -> None:
    assert client.get("/p/physics/").headers["Location"] == "/sign-in/?next=/p/physics/"


def test_signing_in_leads_to_the_first_page(client: Client, alice: User) -> None:
    assert sign_in(client, alice) == "/"


def test_a_wrong_password_is_reported_without_saying_what_was_wrong(client: Client, alice: User) -> None:
    page = client.post("/sign-in/", {"username": "alice", "password": "wrong"})
    assert page.status_code == 200
    assert 'role="alert"' in page.text


def test_the_password_is_changed_and_the_browser_stays_signed_in(client: Client, alice: User) -> None:
    sign_in(client, alice)
    new = "a new and better one"
    client.post("/password/", {"old_password": PASSWORD, "new_password1": new, "new_password2": new})
    alice.refresh_from_db()
    assert alice.check_password(new)
    assert client.get("/").status_code == 200


def test_someone_without_a_password_sets_one_without_the_old(client_of: ClientOf, alice: User) -> None:
    alice.set_unusable_password()
    alice.save()
    assert "old_password" not in client_of(alice).get("/password/").text


class TestOnOnesOwnMachine:
    """Local mode: visitors from this machine are signed in as the local administrator without a form."""

    @pytest.fixture(autouse=True)
    def local(self, settings: LazySettings, db: None) -> None:
        settings.LOCAL_MODE = True
        person("admin", is_superuser=True)

    def test_the_visitor_is_let_in(self, client: Client) -> None:
        assert client.get("/").context["user"].username == "admin"

    def test_the_other_loopback_address_too(self, client: Client) -> None:
        assert client.get("/", REMOTE_ADDR="::1").status_code == 200

    @pytest.mark.parametrize("address", ["192.168.1.7", "10.0.0.1", "fe80::1", "", "unknown"])
    def test_another_machine_is_not(self, client: Client, address: str) -> None:
        assert client.get("/", REMOTE_ADDR=address).headers["Location"].startswith("/sign-in/")

    def test_a_foreign_host_name_is_refused(self, client: Client) -> None:
        assert client.get("/", HTTP_HOST="evil.example").status_code == 400

    def test_elsewhere_than_on_loopback_nobody_is_let_in(
        self, client: Client, settings: LazySettings
    ) -> None:
        settings.LOCAL_MODE = False
        assert client.get("/").headers["Location"].startswith("/sign-in/")

    def test_signing_out_leads_to_the_form_which_shows_the_way_back(self, client: Client) -> None:
        client.get("/")
        assert "Continue as administrator" in client.post("/sign-out/", follow=True).text

    @pytest.mark.parametrize("path", ["/language/", "/theme/"])
    def test_choosing_language_or_colours_signs_no_one_in(self, client: Client, path: str) -> None:
        client.post(path, {"language": "en", "theme": "dark"})
        assert "_auth_user_id" not in client.session

    def test_a_role_is_tried_on_and_taken_off(self, client: Client, project: Project) -> None:
        client.post(reverse("accounts:view_as"), {"role": "rater"})
        assert client.get("/p/physics/").context["may"] == {"see", "rate"}
        client.post(reverse("accounts:view_as"), {"role": ""})
        assert "manage" in client.get("/p/physics/").context["may"]

    def test_a_role_that_is_tried_on_makes_no_projects(self, client: Client, project: Project) -> None:
        client.post(reverse("accounts:view_as"), {"role": "analyst"})
        assert client.post(reverse("accounts:create_project"), {"name": "Mine"}).status_code == 403


def test_only_the_local_administrator_tries_on_roles(client_of: ClientOf, adam: User) -> None:
    assert client_of(adam).post(reverse("accounts:view_as"), {"role": "rater"}).status_code == 403


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:alert(1)", ""])
def test_a_form_never_leads_to_another_site(client: Client, db: None, target: str) -> None:
    assert client.post("/theme/", {"theme": "dark", "next": target}).headers["Location"] == "/"
