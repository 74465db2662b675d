"""Outcomes with their kinds on the list of items, an item's page, the inbox of differences and in exports."""

from __future__ import annotations

import csv
import io

import pytest

from evalsite.accounts.models import Membership, Project, Role, User
from judging.people.models import Evaluation
from judging.people.outcomes import item_kinds, items_of_kind
from judging.people.rating_export import csv_lines
from tests.conftest import ClientOf, member
from tests.judging.people.make import lines_of, make_evaluation, rate_each

pytestmark = pytest.mark.django_db
RITAS = {1: "A>B", 2: "A=B", 3: "A>B", 4: "A>>B"}
RAVIS = {1: "A>B", 2: "A=B", 3: "B>A", 4: "A>B"}
KINDS = {1: "agreed", 2: "equal", 3: "split", 4: "near"}


@pytest.fixture
def rated(project: Project, rita: User) -> Evaluation:
    """Four items rated by two people, each with another kind of outcome."""
    ravi = member("ravi", project, Role.RATER)
    evaluation = make_evaluation(project, [rita, ravi], rows=4, overlap=2)
    for user, values in ((rita, RITAS), (ravi, RAVIS)):
        rate_each(evaluation, user, lambda item, values=values: values[item.number])
    return evaluation


def test_each_item_has_its_kind(rated: Evaluation) -> None:
    numbers = dict(rated.items.values_list("pk", "number"))
    kinds = item_kinds(rated)
    assert {numbers[item]: of[0] for item, of in kinds.items()} == KINDS
    assert [numbers[item] for item in items_of_kind(rated, "split")] == [3]
    first = next(iter(kinds))
    assert item_kinds(rated, [first]) == {first: kinds[first]}


def test_the_pages_tell_split_from_equal(rated: Evaluation, alice: User, client_of: ClientOf) -> None:
    address, client = f"/p/physics/evaluations/{rated.run_id}/", client_of(alice)
    every = client.get(f"{address}items/").text
    badges = ("agreed on a tie</span>", "split</span>", "nearly agreed</span>", ">agreed</span>")
    assert [every.count(badge) for badge in badges] == [1, 1, 1, 1]
    split = client.get(f"{address}items/?outcome=split").text
    assert "/items/3/" in split
    assert "/items/2/" not in split
    assert "agreed on a tie</span>" in client.get(f"{address}items/2/").text
    admin = client_of(member("ada", rated.run.project, Role.ADMIN))
    assert admin.get(f"{address}differences/").text.count("split</span>") == 1


def test_who_rates_here_sees_no_outcomes(rated: Evaluation, rita: User, client_of: ClientOf) -> None:
    Membership.objects.create(user=rita, project=rated.run.project, role=Role.REVIEWER)
    page = client_of(rita).get(f"/p/physics/evaluations/{rated.run_id}/items/?outcome=split").text
    assert "split</span>" not in page
    assert "/items/2/" in page


def test_both_exports_hold_the_kind(rated: Evaluation) -> None:
    lines = lines_of(rated)
    assert {line["item"]: line["outcome"] for line in lines} == {
        number: {"preference": kind} for number, kind in KINDS.items()
    }
    table = csv.DictReader(io.StringIO(b"".join(csv_lines(rated)).decode("utf-8-sig"), newline=""))
    assert {int(row["item"]): row["outcome: preference"] for row in table} == KINDS


def test_gold_and_repeats_have_no_outcome(project: Project, rita: User) -> None:
    evaluation = make_evaluation(project, [rita], rows=4, repeat_share=0.5)
    rate_each(evaluation, rita, lambda item: "A>B")
    outcomes = {line["repeat_of"] is None: line["outcome"] for line in lines_of(evaluation)}
    assert outcomes == {True: {"preference": "single"}, False: None}
