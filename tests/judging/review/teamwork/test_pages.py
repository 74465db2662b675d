"""Pages for reviewing as a team: permissions, contents, mentions, the inbox, and concurrent reviewers."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evalsite.accounts.models import Membership, Project, Role, User
from judging.filters.judgement_filter import ANYTHING, Filters
from judging.records.models import Judgement
from judging.teamwork.batches import change_many
from judging.teamwork.comments import comment_add, mentioned_in
from judging.teamwork.marks import Change, Kind, change_one, current_marks
from judging.teamwork.models import Comment, Mark, Notice, ReviewAction
from tests.conftest import ClientOf
from tests.judging.judged import a_judged_run, first_of, said
from tests.judging.review.pages import address as of_run
from tests.judging.review.pages import judgement_address as address
from tests.judging.review.pages import text

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture
def one(project: Project) -> Judgement:
    return first_of(a_judged_run(project, lambda place: said(place % 10 + 1)))


def write(client: Client, judgement: Judgement, words: str) -> Comment:
    client.post(address(judgement, "comment"), {"text": words})
    return Comment.objects.latest("pk")


@pytest.mark.parametrize(
    ("who", "status"), [("bob", 302), ("adam", 302), ("alice", 403), ("rita", 403), ("charlie", 404)]
)
def test_reviewers_write_analysts_read_raters_and_strangers_see_nothing(
    one: Judgement, cast: dict[str, User], client_of: ClientOf, who: str, status: int
) -> None:
    client = client_of(cast[who])
    posts = {
        address(one, "comment"): {"text": "hm"},
        address(one, "mark", "tag"): {"name": "odd"},
        of_run(one.run, "act", "flag"): {},
    }
    assert {client.post(there, sent).status_code for there, sent in posts.items()} == {status}
    assert Comment.objects.exists() == ReviewAction.objects.exists() == (status == 302)


def test_analysts_see_what_reviewers_wrote_and_no_forms(
    one: Judgement, alice: User, bob: User, client_of: ClientOf
) -> None:
    comment_add(judgement=one, text="**odd** <script>", by=bob)
    change_one(judgement=one, change=Change(Kind.TAG, "unclear"), by=bob)
    page = text(client_of(alice).get(address(one)))
    assert "<strong>odd</strong> &lt;script&gt;" in page
    assert "unclear" in page
    assert address(one, "comment") not in page


def test_a_mention_tells_members_who_may_read_and_nobody_else(
    one: Judgement, cast: dict[str, User], client_of: ClientOf
) -> None:
    write(client_of(cast["bob"]), one, "@alice, @rita and @charlie: see @bob. mail@adam")
    assert [notice.user.username for notice in Notice.objects.all()] == ["alice"]
    home = text(client_of(cast["alice"]).get(reverse("home")))
    assert "bob mentioned you in" in home
    assert 'Inbox <span class="badge" data-tone="accent">1</span>' in home


def test_a_name_may_end_a_sentence(bob: User) -> None:
    assert mentioned_in("Ask @Bob.", [bob]) == [bob]


def test_a_notice_leads_to_the_answer_and_is_read_then(
    one: Judgement, alice: User, bob: User, client_of: ClientOf
) -> None:
    comment = write(client_of(bob), one, "@alice?")
    (notice,) = Notice.objects.all()
    there = of_run(one.run, "at", one.run_metric_id, one.response_id)
    client = client_of(alice)
    answer = client.post(reverse("inbox_read"), {"only": notice.pk, "next": there}, follow=True)
    assert answer.redirect_chain[-1][0] == address(one)
    assert comment.text in text(answer)
    assert not Notice.objects.filter(read_at=None).exists()


def test_reading_elsewhere_leads_nowhere_else(alice: User, client_of: ClientOf) -> None:
    answer = client_of(alice).post(reverse("inbox_read"), {"next": "https://evil.example/"})
    assert answer["Location"] == reverse("inbox")


def test_nobody_marks_the_notices_of_others_as_read(
    one: Judgement, alice: User, adam: User, bob: User, client_of: ClientOf
) -> None:
    write(client_of(bob), one, "@alice")
    client_of(adam).post(reverse("inbox_read"), {"only": Notice.objects.get().pk})
    assert Notice.objects.filter(read_at=None).count() == 1


def test_who_has_left_the_project_is_shown_nothing_of_it(
    one: Judgement, alice: User, bob: User, client_of: ClientOf
) -> None:
    write(client_of(bob), one, "@alice secret")
    Membership.objects.filter(user=alice).delete()
    assert "secret" not in text(client_of(alice).get(reverse("inbox")))
    assert "Inbox <span" not in text(client_of(alice).get(reverse("home")))


def test_own_comments_are_edited_and_deleted_others_are_not(
    one: Judgement, adam: User, bob: User, client_of: ClientOf
) -> None:
    comment = write(client_of(bob), one, "first")
    change = address(one, "comment_change", comment.pk)
    assert client_of(adam).post(change, {"text": "mine", "version": 1}).status_code == 403
    client_of(bob).post(change, {"text": "second @adam", "version": 1})
    comment.refresh_from_db()
    assert (comment.text, comment.version, Notice.objects.get().user) == ("second @adam", 2, adam)
    client_of(bob).post(change, {"delete": "1"})
    assert not Comment.objects.exists()
    assert not Notice.objects.exists()


def test_an_edit_of_an_older_text_is_reported_and_keeps_what_was_typed(
    one: Judgement, bob: User, client_of: ClientOf
) -> None:
    client = client_of(bob)
    comment = write(client, one, "first")
    change = address(one, "comment_change", comment.pk)
    client.post(change, {"text": "second", "version": 1})
    answer = client.post(change, {"text": "third", "version": 1})
    assert answer.status_code == 409
    assert "You changed this comment elsewhere" in text(answer)
    assert ">third</textarea>" in text(answer)
    assert 'name="version" value="2"' in text(answer)


def test_an_empty_comment_comes_back_with_what_is_wrong(
    one: Judgement, bob: User, client_of: ClientOf
) -> None:
    answer = client_of(bob).post(address(one, "comment"), {"text": " "}, headers=HTMX)
    assert answer.status_code == 422
    assert "This field is required." in text(answer)


def test_two_who_assign_or_exclude_at_once_are_warned(
    one: Judgement, adam: User, bob: User, client_of: ClientOf
) -> None:
    sent = {"user": "bob", "seen": "0"}
    client_of(bob).post(address(one, "mark", "assign"), sent)
    answer = client_of(adam).post(address(one, "mark", "assign"), sent | {"user": "adam"})
    assert answer.status_code == 409
    assert "Someone else changed this in the meantime." in text(answer)
    assert [mark.user for mark in current_marks(one)] == [bob]
    for client in (client_of(bob), client_of(adam)):
        answer = client.post(address(one, "mark", "exclude"), {"reason": "odd", "seen": "0"}, headers=HTMX)
    assert answer.status_code == 422
    assert ">odd</textarea>" not in text(answer)  # the answer is excluded by now, which is shown instead
    assert "Excluded from figures" in text(answer)


def test_comments_of_two_at_once_both_stay(
    one: Judgement, adam: User, bob: User, client_of: ClientOf
) -> None:
    for user in (adam, bob):
        write(client_of(user), one, f"by {user.username}")
    assert Comment.objects.count() == 2


def test_with_htmx_only_the_section_comes_back(one: Judgement, bob: User, client_of: ClientOf) -> None:
    answer = client_of(bob).post(address(one, "mark", "tag"), {"name": " odd  one "}, headers=HTMX)
    assert text(answer).strip().startswith('<section class="teamwork" id="teamwork"')
    assert [mark.name for mark in current_marks(one)] == ["odd one"]


def test_the_panel_beside_the_grid_has_the_section_too(
    one: Judgement, bob: User, client_of: ClientOf
) -> None:
    assert 'id="teamwork"' in text(client_of(bob).get(address(one, "panel")))


def test_nothing_is_assigned_to_who_may_not_review(
    one: Judgement, alice: User, bob: User, client_of: ClientOf
) -> None:
    answer = client_of(bob).post(address(one, "mark", "assign"), {"user": "alice", "seen": "0"})
    assert answer.status_code == 422
    assert not Mark.objects.exists()


# —— review queue


def test_the_queue_leads_from_one_to_the_next_and_ends(
    one: Judgement, bob: User, adam: User, client_of: ClientOf
) -> None:
    run = one.run
    change_many(run=run, filters=Filters(candidate="alpha"), change=Change(Kind.ASSIGN, user=bob), by=adam)
    client = client_of(bob)
    assert "3" in text(client.get(reverse("runs:mine", args=("physics",))))
    answer = client.get(of_run(run, "first_judgement") + "?assigned=bob", follow=True)
    seen = []
    while "Done, next" in text(answer):
        shown = answer.context["judgement"]
        seen.append(shown.row.line)
        (mark,) = current_marks(shown)
        there = address(shown, "mark", "finish") + "?assigned=bob"
        answer = client.post(there, {"seen": mark.pk, "next": "1"}, follow=True)
    assert seen == [1, 2, 3]
    assert "Nothing assigned to you" in text(answer)


# —— bulk actions on a filter


def test_the_menu_says_how_many_and_offers_what_the_visitor_may(
    one: Judgement, alice: User, bob: User, client_of: ClientOf
) -> None:
    for_bob = text(client_of(bob).get(of_run(one.run, "items") + "?candidate=alpha"))
    for_alice = text(client_of(alice).get(of_run(one.run, "judgements")))
    tag, again = of_run(one.run, "act", "tag"), of_run(one.run, "judge_again")
    assert "3 judgements match" in for_bob
    assert f'href="{tag}?candidate=alpha"' in for_bob
    assert again not in for_bob
    assert tag not in for_alice
    assert again in for_alice


def test_an_action_shows_before_and_after_and_can_be_undone_from_its_notice(
    one: Judgement, bob: User, client_of: ClientOf
) -> None:
    change_one(judgement=one, change=Change(Kind.TAG, "odd"), by=bob)
    client = client_of(bob)
    there = of_run(one.run, "act", "tag") + "?candidate=alpha"
    page = text(client.get(there))
    assert "3 judgements match the filter." in page
    assert '<span class="badge">odd</span> 1' in page
    done = client.post(there, {"name": "odd"}, follow=True)
    action = ReviewAction.objects.latest("pk")
    undo = of_run(one.run, "undo_action", action.pk)
    assert "2 judgements changed." in text(done)
    assert f'action="{undo}"' in text(done)
    listed = text(client.post(undo, follow=True))
    assert "Undone." in listed
    assert "undone by bob" in listed
    assert Mark.objects.current().count() == 1


def test_analysts_see_the_list_of_actions_without_undo(
    one: Judgement, alice: User, bob: User, client_of: ClientOf
) -> None:
    change = Change(Kind.EXCLUDE, reason="bad data")
    action = change_many(run=one.run, filters=ANYTHING, change=change, by=bob)
    client = client_of(alice)
    page = text(client.get(of_run(one.run, "actions")))
    assert "bad data" in page
    assert "Undo" not in page
    assert client.post(of_run(one.run, "undo_action", action.pk)).status_code == 403


def test_excluding_without_a_reason_does_nothing(one: Judgement, bob: User, client_of: ClientOf) -> None:
    answer = client_of(bob).post(of_run(one.run, "act", "exclude"), {"reason": ""})
    assert answer.status_code == 422
    assert not Mark.objects.exists()


def test_lists_show_what_is_marked(one: Judgement, bob: User, client_of: ClientOf) -> None:
    for change in (Change(Kind.TAG, "odd"), Change(Kind.TAG), Change(Kind.EXCLUDE, reason="x")):
        change_one(judgement=one, change=change, by=bob)
    listed = text(client_of(bob).get(of_run(one.run, "judgements") + "?line=1&candidate=alpha"))
    for badge in ("odd</span>", "⚑ flagged</span>", "excluded</span>"):
        assert badge in listed
    assert '<span aria-label="odd">#</span>' in text(client_of(bob).get(of_run(one.run, "items")))


def test_the_queries_of_the_page_and_the_inbox_do_not_grow(
    one: Judgement, project: Project, adam: User, bob: User, client_of: ClientOf
) -> None:
    def queries(there: str) -> int:
        with CaptureQueriesContext(connection) as asked:
            assert client.get(there).status_code == 200
        return len(asked)

    def work(count: int) -> None:
        for number in range(count):
            comment_add(judgement=one, text=f"@bob {number}", by=adam)
            change_one(judgement=one, change=Change(Kind.TAG, f"tag {number}"), by=adam)

    client = client_of(bob)
    places = [
        address(one),
        address(one, "panel"),
        reverse("inbox"),
        reverse("home"),
        of_run(one.run, "actions"),
    ]
    work(2)
    for there in places:
        queries(there)
    few = [queries(there) for there in places]
    work(8)
    Membership.objects.create(user=User.objects.create_user("zoe"), project=project, role=Role.REVIEWER)
    assert [queries(there) for there in places] == few


@pytest.mark.parametrize("view", ["items", "judgements"])
def test_an_action_on_a_filter_leads_back_to_the_grid_or_the_list_that_it_began_on(
    one: Judgement, bob: User, client_of: ClientOf, view: str
) -> None:
    client, place = client_of(bob), reverse(f"runs:{view}", args=("physics", one.run_id)) + "?candidate=beta"
    client.get(place)
    assert client.post(of_run(one.run, "act", "flag") + "?candidate=beta")["Location"] == place
    second = one.run.judgements.filter(candidate__name="beta").order_by("position")[1]
    back = client.get(address(second) + "?candidate=beta").context["items_url"]
    assert back.startswith(f"{place}&after=")
