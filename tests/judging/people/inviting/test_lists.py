"""A pasted list: who is new, a member or wrong is shown before anything is made; links are printed once."""

import re

import pytest

from evalsite.accounts.models import Invitation, Project, Role, User
from evalsite.mail.models import MailAddress
from evalsite.models import AuditEntry
from judging.people.inviting.lists import list_preview
from judging.people.models import Evaluation
from tests.conftest import ClientOf, member
from tests.judging.people.make import make_evaluation

LIST = "Rita\nDora Lind <dora@x.example>\nEmil\nalice\nDora <dora@x>\nemil"


@pytest.fixture
def evaluation(project: Project) -> Evaluation:
    return make_evaluation(project, rows=3, name="Answers of May")


def address(evaluation: Evaluation) -> str:
    return f"/p/physics/evaluations/{evaluation.run_id}/inviting/"


def seen(page: str) -> str:
    found = re.search(r'name="seen" value="(\w+)"', page)
    assert found
    return found[1]


def states(evaluation: Evaluation, text: str) -> list[tuple[int, str]]:
    return [(entry.line, entry.state) for entry in list_preview(evaluation, text).entries]


def test_the_preview_says_who_is_who_and_makes_nothing(
    client_of: ClientOf, evaluation: Evaluation, cast: dict[str, User]
) -> None:
    page = client_of(cast["adam"]).post(address(evaluation) + "list/", {"text": LIST, "days": 14})
    assert states(evaluation, LIST) == [
        (1, "member"),
        (2, "new"),
        (3, "new"),
        (4, "wrong"),
        (5, "wrong"),
        (6, "wrong"),
    ]
    for sentence in (
        "gets a one-time link",
        "is a member without the role rater".capitalize(),
        "This is not a mail address",
        "The same person as on line 3",
        "Create 2 links",
        "add 1 member",
    ):
        assert sentence in page.text
    assert not Invitation.objects.exists()
    assert not evaluation.raters.exists()


def make(client_of: ClientOf, user: User, evaluation: Evaluation, text: str = LIST) -> str:
    client, sent = client_of(user), {"text": text, "days": 14}
    page = client.post(address(evaluation) + "list/", sent)
    made = client.post(
        address(evaluation) + "list/", {**sent, "make": "1", "seen": seen(page.text)}, follow=True
    )
    assert made.status_code == 200
    return made.text


def test_members_are_added_and_others_get_a_link_on_a_sheet(
    client_of: ClientOf, evaluation: Evaluation, cast: dict[str, User]
) -> None:
    sheet = make(client_of, cast["adam"], evaluation)
    assert len(set(re.findall(r"/join/([\w-]{24})/", sheet))) == 2
    assert "Dora Lind &lt;dora@x.example&gt;" in sheet
    assert "Answers of May" in sheet
    assert "at most 3 items" in sheet
    assert list(evaluation.raters.values_list("user__username", flat=True)) == ["rita"]


def test_the_sheet_is_never_readable_again(
    client_of: ClientOf, evaluation: Evaluation, cast: dict[str, User]
) -> None:
    client = client_of(cast["adam"])
    secrets = re.findall(r"/join/([\w-]+)/", make(client_of, cast["adam"], evaluation))
    pages = client.get(address(evaluation)).text + client.get("/p/physics/people/").text
    stored = str(list(Invitation.objects.values())) + str(list(AuditEntry.objects.values()))
    assert secrets
    assert not any(secret in pages + stored for secret in secrets)
    assert client.get(address(evaluation) + "list/").status_code == 405


def test_a_sheet_is_kept_by_no_browser(
    client_of: ClientOf, evaluation: Evaluation, cast: dict[str, User]
) -> None:
    client, sent = client_of(cast["adam"]), {"text": "Dora", "days": 14}
    page = client.post(address(evaluation) + "list/", sent)
    sheet = client.post(address(evaluation) + "list/", {**sent, "make": "1", "seen": seen(page.text)})
    assert sheet.headers["Cache-Control"] == "private, no-store"


def test_a_second_click_replaces_the_links_of_the_first(
    client_of: ClientOf, evaluation: Evaluation, cast: dict[str, User]
) -> None:
    for _click in range(2):
        make(client_of, cast["adam"], evaluation)
    assert Invitation.objects.filter(revoked_at=None).count() == 2
    assert evaluation.raters.count() == 1
    assert states(evaluation, "Emil\nRita") == [(1, "again"), (2, "rater")]


def test_a_list_that_was_changed_is_shown_first(
    client_of: ClientOf, evaluation: Evaluation, cast: dict[str, User]
) -> None:
    client = client_of(cast["adam"])
    first = client.post(address(evaluation) + "list/", {"text": "Dora", "days": 14})
    sent = {"text": "Emil", "days": 14, "make": "1", "seen": seen(first.text)}
    page = client.post(address(evaluation) + "list/", sent)
    assert "The list was changed since you checked it" in page.text
    assert "Emil" in page.text
    assert not Invitation.objects.exists()


def test_an_organiser_adds_members_and_sees_who_makes_links(
    client_of: ClientOf, evaluation: Evaluation, cast: dict[str, User]
) -> None:
    client = client_of(cast["alice"])
    assert (
        "Only project administrators can create links and accounts (Adam)"
        in client.get(address(evaluation)).text
    )
    page = client.post(address(evaluation) + "list/", {"text": LIST, "days": 14})
    assert "2 people aren't members and get no link from you" in page.text.replace("&#x27;", "'")
    text = make(client_of, cast["alice"], evaluation)
    assert "1 rater added" in text
    assert not Invitation.objects.exists()
    assert (
        client.post(address(evaluation) + "link/", {"link-most_uses": 5, "link-days": 5}).status_code == 403
    )


def test_a_list_without_text_is_asked_for_again(
    client_of: ClientOf, evaluation: Evaluation, cast: dict[str, User]
) -> None:
    page = client_of(cast["adam"]).post(address(evaluation) + "list/", {"text": " ", "days": 14})
    assert page.status_code == 422
    page = client_of(cast["adam"]).post(address(evaluation) + "list/", {"text": "???", "days": 99})
    assert page.status_code == 422
    assert "???" in page.text


def test_too_long_a_list_makes_nothing(
    client_of: ClientOf, evaluation: Evaluation, cast: dict[str, User]
) -> None:
    text = "\n".join(f"Person {number}" for number in range(501))
    page = client_of(cast["adam"]).post(address(evaluation) + "list/", {"text": text, "days": 14})
    assert page.status_code == 422
    assert "more than 500 people" in page.text


def test_a_member_is_found_by_a_confirmed_address_by_user_name_and_by_a_full_name(
    project: Project, evaluation: Evaluation, cast: dict[str, User]
) -> None:
    MailAddress.objects.create(user=cast["rita"], address="Rita@x.example")
    User.objects.filter(pk=cast["rita"].pk).update(first_name="Rita Bloom")
    text = "R. B. <rita@x.example>\nrita bloom\nRITA"
    assert [entry.user for entry in list_preview(evaluation, text).entries] == [cast["rita"]] * 3


def test_a_full_name_that_two_have_names_nobody(project: Project, evaluation: Evaluation) -> None:
    for name in ("wei1", "wei2"):
        User.objects.filter(pk=member(name, project, Role.RATER).pk).update(first_name="Wang Wei")
    assert states(evaluation, "Wang Wei") == [(1, "new")]


def test_accounts_outside_the_project_are_not_looked_up(evaluation: Evaluation, charlie: User) -> None:
    MailAddress.objects.create(user=charlie, address="charlie@x.example")
    assert states(evaluation, "charlie\nC <charlie@x.example>") == [(1, "new"), (2, "new")]


def test_a_closed_evaluation_makes_nothing(
    client_of: ClientOf, evaluation: Evaluation, cast: dict[str, User]
) -> None:
    from judging.people.services import evaluation_close

    evaluation_close(evaluation=evaluation, by=cast["adam"])
    page = client_of(cast["adam"]).post(
        address(evaluation) + "list/", {"text": "Dora", "days": 14, "make": "1"}
    )
    assert page.status_code == 422
    assert not Invitation.objects.exists()
