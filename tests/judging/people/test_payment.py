"""Active time, sessions and days of raters, and the payment sheet."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from io import BytesIO, StringIO
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from openpyxl import load_workbook

from evalsite.accounts.models import Project, User
from evalsite.api.lists import cursor_of
from judging.core.people.work import Action, Category, active_between, by_day, together, work_by_day
from judging.people import assignments, ratings
from judging.people.gold import gold_add, gold_of_item
from judging.people.models import Evaluation, Rating
from judging.people.payment import COLUMNS, payment_row, rater_days
from judging.people.set_aside import rater_set_aside
from tests.api import Api, code_of, pages_of
from tests.conftest import ClientOf
from tests.judging.people.make import give, make_evaluation, rate_all

NINE = datetime(2026, 5, 1, 9, tzinfo=UTC)


def action(minutes: float, seconds: float = 20, category: Category = "items", hit: bool = False) -> Action:
    return Action(NINE + timedelta(minutes=minutes), seconds, category, hit)


def test_up_to_five_minutes_between_two_actions_are_work() -> None:
    [day] = work_by_day([action(0), action(2), action(7)], UTC)
    assert (day.active, day.sessions) == (20 + 120 + 300, 1)


def test_of_a_break_only_the_time_on_the_item_counts() -> None:
    assert active_between(301, 20) == 20
    assert active_between(301, 3000) == 301
    assert active_between(10, 600) == 10


def test_a_session_ends_after_thirty_minutes_without_an_action() -> None:
    [day] = work_by_day([action(0), action(30), action(60.1), action(100)], UTC)
    assert day.sessions == 3


def test_days_are_those_of_the_time_zone() -> None:
    days = work_by_day([action(0), action(15 * 60)], ZoneInfo("Asia/Shanghai"))
    assert [str(day.day) for day in days] == ["2026-05-01", "2026-05-02"]
    assert [day.sessions for day in days] == [1, 1]


def test_every_rating_is_in_one_column_and_imported_ones_take_no_time() -> None:
    categories: tuple[Category, ...] = ("items", "extra", "gold", "repeats", "skips", "imported", "undone")
    actions = [
        action(minutes, category=category, hit=category == "gold")
        for minutes, category in enumerate(categories)
    ]
    [day] = work_by_day(actions, UTC)
    assert (day.rated, day.ordinary, day.gold_hits, day.pace) == (4, 1, 1, 20)
    assert day.active == 20 + 6 * 60


def test_work_of_several_raters_is_added_up_by_day() -> None:
    ours = {1: work_by_day([action(0), action(24 * 60)], UTC), 2: work_by_day([action(1)], UTC)}
    assert [day.ordinary for day in by_day(ours).values()] == [2, 1]
    total = together(ours.values())
    assert total is not None
    assert (total.ordinary, total.sessions) == (3, 3)
    assert together([]) is None


@pytest.fixture
def evaluation(project: Project, rita: User, ravi: User) -> Evaluation:
    """Twelve items, three of them gold; Rita rates all with 5, Ravi nothing."""
    evaluation = make_evaluation(
        project, [rita, ravi], rows=12, side_by_side=False, models=["alpha"], gold_share=0.5
    )
    items = evaluation.items.order_by("number")[:3]
    gold_add(evaluation=evaluation, gold=[gold_of_item(evaluation, item, {"quality": 5}) for item in items])
    evaluation.refresh_from_db()
    rate_all(evaluation, rita, 5)
    return evaluation


def sheet(evaluation: Evaluation, **more: bool) -> dict[str, object]:
    [row] = [payment_row(*rater_day, **more) for rater_day in rater_days(evaluation)]
    return dict(zip(COLUMNS, row, strict=True))


@pytest.mark.django_db
def test_gold_and_ordinary_ratings_have_columns_of_their_own(evaluation: Evaluation) -> None:
    row = sheet(evaluation)
    assert (row["rater"], row["rated"], row["items"], row["gold"], row["gold_hits"]) == ("R1", 12, 9, 3, 3)


@pytest.mark.django_db
def test_what_is_set_aside_undone_or_skipped_is_listed(
    evaluation: Evaluation, rita: User, alice: User
) -> None:
    ratings.undo(evaluation=evaluation, user=rita, key=uuid4())
    [held] = assignments.claim(evaluation=evaluation, user=rita, count=1)
    ratings.skip(assignment=held, reason="unclear", key=uuid4())
    rater_set_aside(rater=evaluation.raters.get(user=rita), reason="too quick", by=alice)
    row = sheet(evaluation)
    assert (row["items"], row["skips"], row["undone"]) == (0, 1, 2)
    assert row["set_aside"] == row["rated"] - row["gold"]  # type: ignore[operator]


@pytest.mark.django_db
def test_a_name_is_no_formula_in_either_file(
    evaluation: Evaluation, rita: User, alice: User, client_of: ClientOf
) -> None:
    User.objects.filter(pk=rita.pk).update(username="=1+1")
    client, address = client_of(alice), f"/p/physics/evaluations/{evaluation.run_id}/payment"
    text = b"".join(client.get(f"{address}.csv?names=1").streaming_content).decode("utf-8-sig")  # type: ignore[attr-defined]
    head, row = csv.reader(StringIO(text))
    assert (tuple(head), row[0]) == (COLUMNS, "'=1+1")
    book = load_workbook(BytesIO(b"".join(client.get(f"{address}.xlsx?names=1").streaming_content)))  # type: ignore[attr-defined]
    assert book.active is not None
    cell = book.active["A2"]
    assert (cell.value, cell.data_type) == ("=1+1", "s")
    assert book.active["B2"].is_date


@pytest.mark.django_db
def test_only_organisers_get_it_and_pseudonyms_unless_asked(
    evaluation: Evaluation, rita: User, bob: User, alice: User, client_of: ClientOf
) -> None:
    address = f"/p/physics/evaluations/{evaluation.run_id}/payment"
    for user in (rita, bob):
        for path in ("/", ".csv", ".xlsx"):
            assert client_of(user).get(address + path).status_code in (403, 404)
    assert client_of(alice).get(f"{address}.pdf").status_code == 404
    text = b"".join(client_of(alice).get(f"{address}.csv").streaming_content).decode()  # type: ignore[attr-defined]
    assert rita.username not in text
    [row] = Api(alice).get(f"projects/physics/evaluations/{evaluation.run_id}/payment").json()["items"]
    assert (row["rater"], row["items"]) == ("R1", 9)


@pytest.mark.django_db
def test_the_api_gives_it_in_pages(evaluation: Evaluation, alice: User) -> None:
    early = Rating.objects.filter(rater__evaluation=evaluation).latest("pk")
    Rating.objects.filter(pk=early.pk).update(at=datetime(2026, 5, 1, 17, tzinfo=UTC))
    path = f"projects/physics/evaluations/{evaluation.run_id}/payment"
    [[first], [second]] = pages_of(Api(alice), path, 1)
    assert (first["day"], first["rater"], second["rater"]) == ("2026-05-01", "R1", "R1")
    assert code_of(Api(alice).get(path, cursor=cursor_of("R1"))) == (422, "invalid")


@pytest.mark.django_db
def test_without_ratings_the_page_says_so(
    project: Project, rita: User, alice: User, client_of: ClientOf
) -> None:
    evaluation = make_evaluation(project, [rita])
    page = client_of(alice).get(f"/p/physics/evaluations/{evaluation.run_id}/payment/").text
    assert "Nothing rated yet." in page
    give(assignments.claim(evaluation=evaluation, user=rita)[0], "A>B")
    assert (
        "Nothing rated yet."
        not in client_of(alice).get(f"/p/physics/evaluations/{evaluation.run_id}/payment/").text
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("query", "file_name"), [("", "payment-{}.csv"), ("?names=1", "payment-{}-names.csv")]
)
def test_a_file_with_names_is_called_so(
    evaluation: Evaluation, alice: User, client_of: ClientOf, query: str, file_name: str
) -> None:
    answer = client_of(alice).get(f"/p/physics/evaluations/{evaluation.run_id}/payment.csv{query}")
    assert f'"{file_name.format(evaluation.run_id)}"' in answer["Content-Disposition"]
