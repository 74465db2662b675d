"""One-time passwords, changing a password, and passwords reset by administrators."""

import io
import re

import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.test import Client

from evalsite.accounts.forms import NameAndDigitsValidator
from evalsite.accounts.members import NotYours, password_reset, roles_set, user_create
from evalsite.accounts.models import Project, User
from evalsite.accounts.tokens import token_create
from evalsite.audit import Action
from evalsite.models import AuditEntry
from evalsite.storage import data_dir
from tests.conftest import PASSWORD, ClientOf

NEW = "a new and better one"


@pytest.fixture
def dora(client: Client, project: Project) -> User:
    """A user with a one-time password, signed in with it."""
    user, clear = user_create(username="dora", name="", project=project, roles=["analyst"])
    client.post("/sign-in/", {"username": "dora", "password": clear})
    user.clear = clear  # type: ignore[attr-defined]
    return user


@pytest.mark.parametrize("path", ["/", "/p/physics/", "/p/physics/datasets/", "/account/", "/nothing/"])
def test_a_one_time_password_opens_nothing_but_the_way_to_another(
    client: Client, dora: User, path: str
) -> None:
    assert client.get(path).headers["Location"] == "/password/"


def test_nor_does_anything_change_by_it(client: Client, dora: User) -> None:
    client.post("/account/tokens/", {"token-name": "x", "token-days": "0"})
    assert not dora.tokens.exists()


def test_a_fragment_is_led_there_too(client: Client, dora: User) -> None:
    assert client.get("/p/physics/", headers={"HX-Request": "true"}).headers["HX-Redirect"] == "/password/"


def test_with_another_password_the_site_opens(client: Client, dora: User) -> None:
    assert "old_password" not in client.get("/password/").text  # it was entered when signing in
    client.post("/password/", {"new_password1": NEW, "new_password2": NEW})
    assert client.get("/p/physics/").status_code == 200


def test_the_same_password_is_not_another(client: Client, dora: User) -> None:
    clear = dora.clear  # type: ignore[attr-defined]
    page = client.post("/password/", {"new_password1": clear, "new_password2": clear})
    assert "Choose another" in page.text
    assert client.get("/p/physics/").status_code == 302


def test_changing_the_password_ends_other_sessions(client_of: ClientOf, alice: User) -> None:
    here, elsewhere = client_of(alice), client_of(alice)
    here.post("/password/", {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW})
    assert here.get("/account/").status_code == 200
    assert elsewhere.get("/account/").status_code == 302


def test_signing_in_gives_the_session_another_key(client: Client, alice: User) -> None:
    client.get("/sign-in/")
    client.cookies["evalsite_session"] = "a" * 32  # session fixation: a session key set by an attacker
    client.post("/sign-in/", {"username": "alice", "password": PASSWORD})
    assert client.cookies["evalsite_session"].value != "a" * 32
    assert client.get("/account/").status_code == 200


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:x"]
)
def test_signing_in_never_leads_to_another_site(client: Client, alice: User, target: str) -> None:
    given = {"username": "alice", "password": PASSWORD, "next": target}
    assert client.post("/sign-in/", given).headers["Location"] == "/"


@pytest.fixture
def nina(project: Project) -> User:
    """A user created by the project's administrator, in no other project."""
    user, _password = user_create(username="nina", name="", project=project, roles=["rater"])
    user.set_password(PASSWORD)
    user.must_change_password = False
    user.save()
    return user


def test_an_administrator_resets_the_password_of_an_account_that_the_project_created(
    client_of: ClientOf, adam: User, nina: User
) -> None:
    session, _token = client_of(nina), token_create(user=nina, name="x", days=None)
    page = client_of(adam).post(f"/p/physics/people/{nina.pk}/password/")
    shown = re.search(r'<code id="one-time">(.+?)</code>', page.text)
    nina.refresh_from_db()
    assert shown
    assert nina.check_password(shown[1])
    assert nina.must_change_password
    assert session.get("/account/").status_code == 302
    assert not nina.tokens.exists()


@pytest.fixture
def as_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """`manage.py set_password` reads NEW from standard input, and needs no folder."""
    monkeypatch.setattr(data_dir, "prepare", lambda: None)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{NEW}\n"))


def test_the_command_sets_a_password_as_an_administrator_does(
    as_typed: None, client_of: ClientOf, client: Client, dora: User
) -> None:
    session, _token = client_of(dora), token_create(user=dora, name="x", days=None)
    call_command("set_password", "dora")
    dora.refresh_from_db()
    assert dora.check_password(NEW)
    assert session.get("/password/").status_code == 302
    assert not dora.tokens.exists()
    assert AuditEntry.objects.latest("pk").action == Action.PASSWORD_SET.value


def test_the_password_given_to_the_command_need_not_be_changed(as_typed: None, dora: User) -> None:
    call_command("set_password", "dora")
    dora.refresh_from_db()
    assert not dora.must_change_password


def test_the_command_creates_an_administrator_of_the_site(as_typed: None, db: None) -> None:
    call_command("set_password", "otto")
    assert User.objects.get(username="otto", is_superuser=True).check_password(NEW)
    assert AuditEntry.objects.filter(action=Action.ACCOUNT_CREATED.value, name="otto").exists()


@pytest.mark.parametrize(("name", "status"), [("alice", 403), ("rita", 403), ("charlie", 404)])
def test_nobody_else_does(name: str, status: int, cast: dict[str, User], client_of: ClientOf) -> None:
    bob = cast["bob"]
    assert client_of(cast[name]).post(f"/p/physics/people/{bob.pk}/password/").status_code == status
    assert User.objects.get(pk=bob.pk).check_password(PASSWORD)


@pytest.mark.parametrize("name", ["charlie", "olga", "rita"])
def test_an_account_that_was_only_added_to_the_project_is_out_of_reach(
    name: str, cast: dict[str, User], client_of: ClientOf, olga: User, project: Project
) -> None:
    user, adam = (olga if name == "olga" else cast[name]), cast["adam"]
    roles_set(project=project, user=user, roles=["rater"])
    with pytest.raises(NotYours):
        password_reset(user=user, project=project, by=adam)
    page = client_of(adam).post(f"/p/physics/people/{user.pk}/password/", follow=True)
    assert "this project did not create the account" in page.text
    assert f"/people/{user.pk}/password/" not in page.text
    assert User.objects.get(pk=user.pk).check_password(PASSWORD)


@pytest.mark.parametrize("left_again", [False, True])
def test_an_account_that_another_project_has_used_is_out_of_reach(
    left_again: bool, adam: User, nina: User, charlie: User, project: Project
) -> None:
    elsewhere = Project.objects.get(slug="elsewhere")
    roles_set(project=elsewhere, user=nina, roles=["rater"])
    if left_again:
        roles_set(project=elsewhere, user=nina, roles=[])
    nina.refresh_from_db()
    with pytest.raises(NotYours):
        password_reset(user=nina, project=project, by=adam)


def test_the_administrator_of_the_site_resets_any_password(olga: User, rita: User, project: Project) -> None:
    clear = password_reset(user=rita, project=project, by=olga)
    assert User.objects.get(pk=rita.pk).check_password(clear)


def test_the_form_says_that_no_mail_is_sent(client: Client, db: None) -> None:
    assert "The site sends no email" in client.get("/sign-in/").text


def test_ones_name_and_language_are_changed(client_of: ClientOf, alice: User) -> None:
    client_of(alice).post("/account/", {"name": "Alice Liddell", "language": "zh-hans"})
    alice.refresh_from_db()
    assert (alice.get_full_name(), alice.language) == ("Alice Liddell", "zh-hans")


def problem_of(password: str) -> str:
    """The validation error of a password for Alice; '' if it is accepted."""
    try:
        NameAndDigitsValidator().validate(password, User(username="alice", first_name="Alice Liddell"))
    except ValidationError as error:
        return error.messages[0]
    return ""


@pytest.mark.parametrize(
    "password",
    ["alice12345", "Alice-2026!", "1234alice5678", "alicealice1", "liddell_00001", "alice.liddell.7"],
)
def test_a_password_is_not_ones_name_and_digits(password: str) -> None:
    assert "name with digits" in problem_of(password)


@pytest.mark.parametrize(
    "password", ["alice in wonderland", "correct horse battery", "malicetowards", "1234567890a"]
)
def test_a_password_may_have_ones_name_among_other_words(password: str) -> None:
    assert problem_of(password) == ""


def test_the_form_for_ones_own_password_says_so(client_of: ClientOf, alice: User) -> None:
    typed = {"old_password": PASSWORD, "new_password1": "alice00001", "new_password2": "alice00001"}
    page = client_of(alice).post("/password/", typed)
    assert "your username with digits or punctuation" in page.text


def test_name_and_password_stand_under_each_other(client: Client, db: None) -> None:
    assert 'class="fields"' not in client.get("/sign-in/").text
