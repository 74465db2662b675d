"""The history of an answer's score, and the diffs a reviewer can open."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evalsite.accounts.models import Membership, Project, Role, User
from judging.filters.judgement_filter import ANYTHING
from judging.people import assignments
from judging.people.disagreement import differences
from judging.people.models import Adjudication, Evaluation
from judging.people.selectors import items_about
from judging.people.services import evaluation_close
from judging.records.models import Judgement, Run
from judging.records.overrides import override_add, override_withdraw
from judging.review.history import Entry, timeline
from judging.review.models import ListColumns
from judging.runs.rerun.rejudge import run_rejudge
from judging.runs.rerun.selection import Selection
from judging.teamwork.comments import comment_add
from tests.conftest import ClientOf, member
from tests.judging.judged import JUDGE_URL, a_judged_run, first_of, judge, said
from tests.judging.people.make import about, give, make_evaluation, rate_all
from tests.judging.review.pages import judgement_address as address
from tests.judging.review.pages import text
from tests.make import a_metric, a_run

pytestmark = pytest.mark.django_db
PIXEL = "data:image/png;base64,iVBORw0KGgo="


def current(run: Run) -> Judgement:
    found = run.judgements.select_related("row", "candidate", "run__project", "run_metric")
    return found.filter(current=True).order_by("position")[0]


def entries(judgement: Judgement) -> list[Entry]:
    return timeline(judgement, items_about(judgement.response_id).seen)


def test_attempts_and_overrides_are_in_the_order_in_which_they_happened(project: Project, bob: User) -> None:
    run = a_judged_run(project, lambda _: said(5))
    override_add(judgement=current(run), value=7, reason="It is right.", by=bob)
    override_withdraw(judgement=current(run), reason="I misread it.", by=bob)
    run_rejudge(run=run, selection=Selection(ANYTHING), user=None)
    judge(Run.objects.get(pk=run.pk), lambda _: said(3))
    found = entries(current(run))
    assert [(one.what, one.value, one.who) for one in found] == [
        ("Judged · attempt 1", "5", ""),
        ("Score overridden", "7", "bob"),
        ("Override withdrawn", "", "bob"),
        ("Judged · attempt 2", "3", ""),
    ]
    assert [one.words for one in found[1:3]] == ["It is right.", "I misread it."]


def test_what_waits_comes_last(project: Project, bob: User) -> None:
    run = a_judged_run(project, lambda _: said(5))
    override_add(judgement=current(run), value=7, reason="so", by=bob)
    run_rejudge(run=run, selection=Selection(ANYTHING), user=None)
    assert [one.at is None for one in entries(current(run))] == [False, False, True]


def test_ratings_and_their_changes_are_in_the_history_of_the_answer(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=1)
    give(assignments.claim(evaluation=evaluation, user=rita)[0], "B>>A")
    rated = evaluation.run.judgements.select_related("run__project").get(state="scored")
    (entry,) = entries(rated)
    assert (entry.what, entry.who) == ("Rated", "R1")
    assert "better" in entry.value


def test_comments_are_in_the_history(project: Project, bob: User) -> None:
    run = a_judged_run(project, lambda _: said(5))
    comment_add(judgement=current(run), text="Is it?", by=bob)
    assert [(one.what, one.who, one.words) for one in entries(current(run))][1:] == [
        ("Comment", "bob", "Is it?")
    ]


@pytest.fixture
def rated(project: Project) -> tuple[Judgement, Evaluation, User]:
    """A judgement whose answer was rated by Rosa, rater and reviewer, in an evaluation that is still open."""
    rosa = member("rosa", project, Role.RATER)
    Membership.objects.create(user=rosa, project=project, role=Role.REVIEWER)
    run = a_judged_run(project, lambda _: said(4), rows=2)
    evaluation = about(run, [rosa])
    rate_all(evaluation, rosa, 2)
    return current(run), evaluation, rosa


@pytest.mark.parametrize("tab", ["rendered", "history"])
def test_a_rater_sees_no_ratings_of_an_open_evaluation(
    rated: tuple[Judgement, Evaluation, User], alice: User, client_of: ClientOf, tab: str
) -> None:
    one, evaluation, rosa = rated
    hidden = text(client_of(rosa).get(address(one), {"tab": tab}))
    assert "Ratings are hidden while you rate" in hidden
    assert not re.search(r"\bR1\b", hidden)  # a CSRF token may contain the letters
    assert re.search(r"\bR1\b", text(client_of(alice).get(address(one), {"tab": tab})))
    evaluation_close(evaluation=evaluation, by=alice)
    assert re.search(r"\bR1\b", text(client_of(rosa).get(address(one), {"tab": tab})))


def test_a_rater_sees_no_verdict_of_an_open_evaluation(
    rated: tuple[Judgement, Evaluation, User], client_of: ClientOf
) -> None:
    _one, evaluation, rosa = rated
    browser, verdict = client_of(rosa), first_of(evaluation.run)
    for name in ("judgement", "panel"):
        assert "Hidden while you rate" in text(browser.get(address(verdict, name)))
    assert browser.post(address(verdict, "override"), {"value": 5, "reason": "so"}).status_code == 403
    item = reverse("people:item", args=("physics", evaluation.run_id, 1))
    assert "Hidden while you rate" in text(browser.get(item))


def test_a_rater_sees_no_list_of_the_verdicts_of_an_open_evaluation(
    rated: tuple[Judgement, Evaluation, User], client_of: ClientOf
) -> None:
    _one, evaluation, rosa = rated
    browser, run = client_of(rosa), evaluation.run_id
    for name in ("judgements", "items"):
        assert "Hidden while you rate" in text(browser.get(reverse(f"runs:{name}", args=("physics", run))))
    assert browser.get(reverse("runs:export", args=("physics", run, "jsonl"))).status_code == 403


def test_a_rater_sees_no_report_with_the_ratings_of_an_open_evaluation(
    rated: tuple[Judgement, Evaluation, User], client_of: ClientOf
) -> None:
    one, _evaluation, rosa = rated
    assert "Hidden while you rate" in text(client_of(rosa).get(f"/p/physics/runs/{one.run_id}/report/"))


@pytest.mark.parametrize("name", ["judgements", "items", "filter_menu"])
@pytest.mark.parametrize("query", [{"differs": "1"}, {"differs": "1", "sort": "-score"}])
def test_a_rater_cannot_look_for_where_others_and_the_judge_disagree(
    rated: tuple[Judgement, Evaluation, User],
    alice: User,
    client_of: ClientOf,
    name: str,
    query: dict[str, str],
) -> None:
    one, evaluation, rosa = rated
    browser, place = client_of(rosa), reverse(f"runs:{name}", args=("physics", one.run_id))
    refused = browser.get(place, query)
    assert refused.status_code == 400 or refused.context["problem"]
    assert 'name="differs"' not in text(
        browser.get(reverse("runs:filter_menu", args=("physics", one.run_id)))
    )
    evaluation_close(evaluation=evaluation, by=alice)
    allowed = browser.get(place, query)
    assert allowed.status_code == 200
    assert not allowed.context.get("problem")


def test_what_people_and_the_judge_are_apart_is_read_once_until_something_changes(
    rated: tuple[Judgement, Evaluation, User], bob: User, django_assert_num_queries: Any
) -> None:
    one = rated[0]
    run = Run.objects.get(pk=one.run_id)
    before = differences(run)
    with django_assert_num_queries(0):
        assert differences(run, least=min(before.values())) == before
    override_add(judgement=one, value=1, reason="so", by=bob)
    assert differences(Run.objects.get(pk=run.pk))[one.pk] != before[one.pk]


def test_a_rater_downloads_nothing_chosen_by_what_others_rated(
    rated: tuple[Judgement, Evaluation, User], alice: User, client_of: ClientOf
) -> None:
    one, _evaluation, rosa = rated
    place = reverse("runs:export", args=("physics", one.run_id, "csv"))
    assert client_of(rosa).get(place).status_code == 200
    assert client_of(rosa).get(place, {"differs": "1"}).status_code == 400
    assert client_of(alice).get(place, {"differs": "1"}).status_code == 200


def test_a_rater_sees_no_column_of_what_others_rated(
    rated: tuple[Judgement, Evaluation, User], alice: User, client_of: ClientOf
) -> None:
    one, _evaluation, rosa = rated
    place = reverse("runs:judgements", args=("physics", one.run_id))
    for user in (rosa, alice):
        ListColumns.objects.create(user=user, names=["candidate", "differs"])
    assert "differs" not in client_of(rosa).get(place).context["shown"]
    assert "differs" in client_of(alice).get(place).context["shown"]


@pytest.mark.parametrize("place", ["differences/", "differences/1/"])
def test_a_rater_decides_on_no_difference_of_an_open_evaluation(
    rated: tuple[Judgement, Evaluation, User], bob: User, client_of: ClientOf, place: str
) -> None:
    _one, evaluation, rosa = rated
    address = reverse("people:detail", args=("physics", evaluation.run_id)) + place
    assert "Hidden while you rate" in text(client_of(rosa).get(address))
    assert "Hidden while you rate" not in text(client_of(bob).get(address))
    client_of(rosa).post(address, {"value_0": "1", "reason": "so"})
    assert not Adjudication.objects.exists()


def test_a_rater_downloads_no_ratings_of_an_open_evaluation(
    rated: tuple[Judgement, Evaluation, User], bob: User, client_of: ClientOf
) -> None:
    _one, evaluation, rosa = rated
    address = reverse("people:export", args=("physics", evaluation.run_id, "csv"))
    assert client_of(rosa).get(address).status_code == 403
    assert client_of(bob).get(address).status_code == 200


def test_the_history_reads_no_more_for_more_attempts(
    project: Project, bob: User, client_of: ClientOf
) -> None:
    run, counts = a_judged_run(project, lambda _: said(5)), []
    for _ in range(3):
        override_add(judgement=current(run), value=7, reason="so", by=bob)
        run_rejudge(run=run, selection=Selection(ANYTHING), user=None)
        run = judge(Run.objects.get(pk=run.pk), lambda _: said(3))
        browser = client_of(bob)
        with CaptureQueriesContext(connection) as queries:
            browser.get(address(current(run)), {"tab": "history"})
        counts.append(len(queries))
    assert counts[0] == counts[-1] <= 26


def test_the_answer_and_the_reference_are_compared_on_demand(
    project: Project, bob: User, client_of: ClientOf
) -> None:
    one = first_of(a_judged_run(project, lambda _: said(7)))
    one.row.raw = json.dumps({**json.loads(one.row.raw), "ref_answer": "alpha says 1.2"})
    one.row.save()
    browser = client_of(bob)
    assert "<ins>" not in text(browser.get(address(one)))
    page = text(browser.get(address(one), {"differences": "1"}))
    assert "alpha says 1.<del>2</del>" in page
    assert "alpha says 1.<ins>1</ins>" in page


def test_two_judges_words_are_compared_on_demand(project: Project, bob: User, client_of: ClientOf) -> None:
    run = a_judged_run(project, lambda _: said(7, content="It is right.", reasoning="Hm."))
    other = judge(
        a_run(run.version, a_metric(JUDGE_URL), name="later"), lambda _: said(2, content="It is wrong.")
    )
    one = first_of(run)
    mine, theirs = (found.replies.get() for found in (one, first_of(other)))
    page = text(client_of(bob).get(address(one), {"tab": "reply", "a": mine.pk, "b": theirs.pk}))
    assert "<del>right</del>" in page
    assert "<ins>wrong</ins>" in page


def test_a_reply_to_another_answer_is_not_compared(project: Project, bob: User, client_of: ClientOf) -> None:
    run = a_judged_run(project, lambda place: said(place, content=f"secret {place}"))
    one, other = run.judgements.order_by("position")[:2]
    query = {"tab": "reply", "a": one.replies.get().pk, "b": other.replies.get().pk}
    assert "secret 1" not in text(client_of(bob).get(address(one), query))


def test_images_of_a_row_are_shown_and_remote_ones_only_named(
    project: Project, bob: User, client_of: ClientOf
) -> None:
    one = first_of(a_judged_run(project, lambda _: said(7)))
    remote = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}, "text": None}
    content = [{"type": "text", "text": "What is it?"}]
    one.row.raw = json.dumps({"messages": [{"role": "user", "content": content}], "photo": PIXEL})
    one.row.save()
    answer = client_of(bob).get(address(one))
    assert f'<img class="picture" src="{PIXEL}"' in text(answer)
    assert "img-src 'self' data:" in answer["Content-Security-Policy"]
    assert remote["image_url"]["url"] not in text(answer)


def test_the_panel_begins_with_the_same_verdict_as_the_page(
    project: Project, bob: User, client_of: ClientOf
) -> None:
    one = first_of(a_judged_run(project, lambda _: said(7, content="Because it is right.")))
    pages = [text(client_of(bob).get(address(one, name))) for name in ("judgement", "panel")]
    verdicts = [page[page.index('<section class="card verdict"') :].split("</section>")[0] for page in pages]
    assert verdicts[0] == verdicts[1]
    assert "Because it is right." in verdicts[0]
