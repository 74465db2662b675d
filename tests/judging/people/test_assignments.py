"""Items a page claims in advance for working offline: how many, shared fairly, and returned."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evalsite import clock
from evalsite.accounts.models import Project, User
from judging.core.people.assignment import starting_rank
from judging.people import assignments, ratings
from judging.people.assignments import raters_add
from judging.people.gold import gold_add, gold_of_item
from judging.people.models import Assignment, AssignmentState, Evaluation
from tests.conftest import ClientOf
from tests.judging.people.make import give, make_evaluation, progress_of

pytestmark = pytest.mark.django_db


def held(user: User) -> list[int]:
    own = Assignment.objects.filter(rater__user=user, state=AssignmentState.LEASED)
    return list(own.order_by("place").values_list("pk", flat=True))


def fill(evaluation: Evaluation, user: User, known: Collection[int] = ()) -> list[int]:
    """Claim items until there are no more, as the page does; return all items held."""
    known = set(known)
    while found := assignments.claim(evaluation=evaluation, user=user, count=5, loaded=known):
        known |= {one.pk for one in found}
    return held(user)


def test_ten_items_are_held_before_the_pace_is_known(project: Project, rita: User) -> None:
    assert len(fill(make_evaluation(project, [rita], rows=40), rita)) == 10


def test_a_quick_rater_holds_ten_minutes_worth(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=40)
    give(assignments.claim(evaluation=evaluation, user=rita)[0], "A>B", seconds=40)
    assert len(fill(evaluation, rita)) == 15


def test_a_page_is_filled_again_once_it_lacks_a_third(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=60)
    page = fill(evaluation, rita)
    sizes = []
    for _verdict in range(4):
        give(Assignment.objects.get(pk=page.pop(0)), "A>B", seconds=60)
        fresh = assignments.claim(evaluation=evaluation, user=rita, count=8, loaded=page)
        page += [assignment.pk for assignment in fresh]
        sizes.append(len(page))
    assert sizes == [9, 8, 7, 10]


def test_a_full_page_locks_nothing(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=60)
    page = fill(evaluation, rita)
    with CaptureQueriesContext(connection) as queries:
        assert assignments.claim(evaluation=evaluation, user=rita, count=8, loaded=page) == []
    assert [query["sql"][:6] for query in queries] == ["SELECT"] * 5


def test_a_page_open_for_long_renews_its_leases(
    project: Project, rita: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation = make_evaluation(project, [rita], rows=60)
    page, later = fill(evaluation, rita), clock.now() + timedelta(minutes=evaluation.lease_minutes * 0.6)
    monkeypatch.setattr(clock, "now", lambda: later)
    assignments.claim(evaluation=evaluation, user=rita, count=8, loaded=page)
    ends = set(Assignment.objects.filter(pk__in=page).values_list("lease_until", flat=True))
    assert ends == {later + timedelta(minutes=evaluation.lease_minutes)}


def test_by_need_those_that_lack_most_come_first(project: Project, rita: User, ravi: User) -> None:
    evaluation = make_evaluation(project, [rita, ravi], rows=3, overlap=2, order="need")
    (first,) = assignments.claim(evaluation=evaluation, user=ravi, count=1)
    found = assignments.claim(evaluation=evaluation, user=rita, count=3)
    assert len(found) == 2
    assert first.item not in [one.item for one in found]


def test_at_random_a_rater_goes_round_from_the_own_start(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=4)
    start = starting_rank(evaluation.seed, evaluation.raters.get().pk, 4)
    found = assignments.claim(evaluation=evaluation, user=rita, count=4)
    assert [one.item.rank for one in found] == [*range(start, 4), *range(start)]


def test_raters_share_what_is_left(project: Project, rita: User, ravi: User) -> None:
    evaluation = make_evaluation(project, [rita, ravi], rows=9)
    assert [len(fill(evaluation, user)) for user in (rita, ravi)] == [5, 4]


def test_who_joins_later_gets_a_share_of_what_another_holds(project: Project, rita: User, ravi: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=8)
    before = fill(evaluation, rita)
    raters_add(evaluation=evaluation, users=[ravi])
    assert fill(evaluation, rita, before) == before[:4]
    assert len(fill(evaluation, ravi)) == 4


def test_an_item_with_a_draft_is_not_taken_for_a_share(project: Project, rita: User, ravi: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=4)
    last = Assignment.objects.get(pk=fill(evaluation, rita)[-1])
    ratings.draft_save(assignment=last, values={}, comment="half a thought")
    raters_add(evaluation=evaluation, users=[ravi])
    assert last.pk in fill(evaluation, rita)


def until(user: User) -> str:
    return Assignment.objects.filter(rater__user=user).latest("lease_until").lease_until.isoformat()


def tokens(user: User) -> list[str]:
    """The tokens of the items a user holds, in the user's order."""
    own = Assignment.objects.filter(rater__user=user, state=AssignmentState.LEASED)
    return [str(one.token) for one in own.order_by("place")]


def close_page(client: Client, evaluation: Evaluation, items: Collection[object], lease: str) -> int:
    data = {"items": ",".join(map(str, items)), "until": lease}
    return client.post(f"/p/physics/desk/{evaluation.run_id}/give-back/", data).status_code


def test_a_closed_page_gives_back_what_was_not_touched(
    project: Project, rita: User, client_of: ClientOf
) -> None:
    evaluation = make_evaluation(project, [rita], rows=4)
    there = fill(evaluation, rita)
    drafted = Assignment.objects.get(pk=there[1])
    ratings.draft_save(assignment=drafted, values={}, comment="half a thought")
    assert close_page(client_of(rita), evaluation, tokens(rita), until(rita)) == 204
    assert held(rita) == [drafted.pk]


def test_what_another_page_has_renewed_since_is_not_given_back(
    project: Project, rita: User, client_of: ClientOf
) -> None:
    evaluation = make_evaluation(project, [rita], rows=4)
    there, lease = fill(evaluation, rita), until(rita)
    assignments.claim(evaluation=evaluation, user=rita)
    close_page(client_of(rita), evaluation, tokens(rita), lease)
    assert held(rita) == there


def test_a_page_takes_up_again_all_that_another_one_gave_back(
    project: Project, rita: User, client_of: ClientOf
) -> None:
    evaluation = make_evaluation(project, [rita], rows=12)
    there = fill(evaluation, rita)
    close_page(client_of(rita), evaluation, tokens(rita), until(rita))
    assert assignments.claim(evaluation=evaluation, user=rita, count=5, loaded=there) == []
    assert held(rita) == there


def test_nobody_gives_back_what_another_holds(
    project: Project, rita: User, ravi: User, client_of: ClientOf
) -> None:
    evaluation = make_evaluation(project, [rita, ravi], rows=4)
    there = fill(evaluation, rita)
    close_page(client_of(ravi), evaluation, tokens(rita), until(rita))
    assert held(rita) == there


@pytest.mark.parametrize("lease", ["", "yesterday", "2026-02-30T00:00:00Z", "2026-02-20T00:00:00"])
def test_without_a_moment_nothing_is_given_back(
    lease: str, project: Project, rita: User, client_of: ClientOf
) -> None:
    evaluation = make_evaluation(project, [rita], rows=2)
    there = fill(evaluation, rita)
    assert close_page(client_of(rita), evaluation, tokens(rita), lease) == 204
    assert held(rita) == there


def test_gold_and_repeats_that_were_given_back_come_again(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=12, repeat_share=1.0)
    given = 0
    while found := assignments.claim(evaluation=evaluation, user=rita, count=1):
        if found[0].item.repeat_of_id:
            break
        give(found[0], "A>B")
        given += 1
    before = progress_of(evaluation, rita)
    lease = found[0].lease_until + timedelta(seconds=1)
    assert assignments.give_back(evaluation=evaluation, user=rita, items=[found[0].pk], until=lease) == 1
    assert progress_of(evaluation, rita).left == before.left
    assert assignments.claim(evaluation=evaluation, user=rita, count=1) == found


def test_a_verdict_for_an_item_that_was_given_back_is_kept(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=1)
    one = assignments.claim(evaluation=evaluation, user=rita)[0]
    assignments.give_back(evaluation=evaluation, user=rita, items=[one.pk], until=one.lease_until)
    assert give(one, "A>B", key=uuid4()).extra is False


def test_the_script_receives_what_is_still_held_and_until_when(
    project: Project, rita: User, ravi: User, client_of: ClientOf
) -> None:
    evaluation = make_evaluation(project, [rita], rows=10)
    client, address = client_of(rita), f"/p/physics/desk/{evaluation.run_id}/items/"
    first = client.get(address).json()
    assert (len(first["items"]), first["more"], first["until"]) == (8, True, until(rita))
    have = ",".join(str(item["id"]) for item in first["items"])
    second = client.get(address, {"have": have}).json()
    assert (len(second["items"]), second["more"], sorted(second["held"])) == (2, False, sorted(tokens(rita)))
    raters_add(evaluation=evaluation, users=[ravi])
    assert len(client.get(address, {"have": have}).json()["held"]) == 5


@pytest.mark.parametrize("shares", [{"gold_share": 0.3}, {"repeat_share": 0.5}])
def test_the_total_of_a_rater_never_grows_so_that_nobody_tells_gold_and_repeats(
    shares: dict[str, float], project: Project, rita: User
) -> None:
    evaluation = make_evaluation(project, [rita], rows=16, **shares)
    if evaluation.gold_share:
        known = [gold_of_item(evaluation, one, {"preference": "A>B"}) for one in evaluation.items.all()[:3]]
        gold_add(evaluation=evaluation, gold=known)
    totals = [progress_of(evaluation, rita).total]
    while found := assignments.claim(evaluation=evaluation, user=rita, count=1):
        give(found[0], "A=B")
        totals.append(progress_of(evaluation, rita).total)
    assert len(set(totals)) == 1
    assert progress_of(evaluation, rita).left == 0
