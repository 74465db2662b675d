"""Adjudication: disagreements are found, decided without seeing who rated what, and stored next to the ratings."""

from __future__ import annotations

import pytest

from evalsite.accounts.models import Project, Role, User
from evalsite.models import AuditEntry
from judging.core.people.criteria import Criterion, ValuesRefused
from judging.core.values import Value
from judging.people import assignments
from judging.people.adjudication import LEAST, adjudicate, differing, differs, verdicts
from judging.people.models import Adjudication, Evaluation, Item
from judging.records.models import Judgement
from tests.conftest import ClientOf, member
from tests.judging.people.make import give, make_evaluation

pytestmark = pytest.mark.django_db


@pytest.fixture
def differ(project: Project, rita: User) -> Evaluation:
    """Rita and Ravi rate three items: equal on the first, far apart on the second, one apart on the third."""
    ravi = member("ravi", project, Role.RATER)
    evaluation = make_evaluation(project, [rita, ravi], overlap=2, side_by_side=False, models=["alpha"])
    said = {1: (3, 3), 2: (1, 5), 3: (2, 3)}
    for place, user in enumerate((rita, ravi)):
        for held in assignments.claim(evaluation=evaluation, user=user, count=3):
            give(held, said[held.item.number][place], comment=f"comment {held.item.number}")
    return evaluation


def test_the_widest_difference_comes_first_and_agreement_not_at_all(differ: Evaluation) -> None:
    assert [(one.number, one.difference) for one in differing(differ)] == [(2, 1.0), (3, 0.25)]


@pytest.mark.parametrize(("least", "numbers"), [(0.0, [2, 3]), (0.25, [2, 3]), (0.26, [2]), (1.0, [2])])
def test_scores_must_be_apart_by_the_threshold(differ: Evaluation, least: float, numbers: list[int]) -> None:
    assert [one.number for one in differing(differ, least)] == numbers


STEPS = Criterion(name="a", scale="steps", both_bad=True)
KIND = Criterion(name="a", scale="categories", categories=("x", "y"))


@pytest.mark.parametrize(
    ("criterion", "values", "least", "expected"),
    [
        (Criterion(name="a", scale="ten"), (7, 9), LEAST, False),
        (Criterion(name="a", scale="ten"), (6, 9), LEAST, True),
        (Criterion(name="a", scale="five"), (4, 4), 0.0, False),
        (KIND, ("x", "y"), 1.0, True),
        (Criterion(name="a", scale="yes_no"), (True, False), 1.0, True),
        (STEPS, ("A>B", "A=B"), LEAST, True),
        (STEPS, ("A>B", "A=B"), 0.5, False),
        (STEPS, ("both_bad", "A=B"), 1.0, True),
        (Criterion(name="a", scale="text"), ("x", "y"), 0.0, False),
    ],
)
def test_of_labels_any_difference_counts(
    criterion: Criterion, values: tuple[Value, ...], least: float, expected: bool
) -> None:
    assert differs({0: criterion}, [{0: value} for value in values], least) is expected


def test_the_threshold_of_the_list_is_changeable_and_kept_on_the_way(
    differ: Evaluation, bob: User, client_of: ClientOf
) -> None:
    address, client = f"/p/physics/evaluations/{differ.run_id}/differences/", client_of(bob)
    page = client.get(f"{address}?least=50").text
    assert f'{address}2/?least=50"' in page
    assert f"{address}3/" not in page
    assert client.get(f"{address}2/?least=50").context["later_url"] == f"{address}?least=50"
    assert 'value="25' in client.get(f"{address}?least=x").text


def test_the_verdicts_come_after_the_answers(differ: Evaluation, bob: User, client_of: ClientOf) -> None:
    page = client_of(bob).get(f"/p/physics/evaluations/{differ.run_id}/differences/2/").text
    assert page.index("question 2") < page.index("alpha says") < page.index("comment 2")


def test_a_decision_is_next_to_the_ratings_and_changes_none(differ: Evaluation, bob: User) -> None:
    item = differ.items.get(number=2)
    adjudicate(item=item, values={0: 4}, reason="The second half is right.", by=bob)
    assert [one.decided for one in differing(differ)] == [True, False]
    assert Judgement.objects.filter(run=differ.run_id, current=True).count() == 6
    assert AuditEntry.objects.filter(action="item.adjudicated").count() == 1


def test_a_second_decision_leaves_the_first(differ: Evaluation, bob: User) -> None:
    item = differ.items.get(number=2)
    for value in (4, 2):
        adjudicate(item=item, values={0: value}, reason="Because.", by=bob)
    assert Adjudication.objects.filter(item=item).count() == 2


def test_a_decision_must_be_on_the_scale(differ: Evaluation, bob: User) -> None:
    with pytest.raises(ValuesRefused):
        adjudicate(item=differ.items.get(number=2), values={0: 9}, reason="Because.", by=bob)


def test_the_page_shows_all_that_was_said_and_nobody_who_said_it(
    differ: Evaluation, bob: User, client_of: ClientOf
) -> None:
    page = client_of(bob).get(f"/p/physics/evaluations/{differ.run_id}/differences/2/").content.decode()
    assert page.count("comment 2") == 2
    assert not [name for name in ("rita", "ravi", "Rita", "Ravi", ">R1<", ">R2<") if name in page]


def test_the_inbox_lists_each_item_by_its_question(
    differ: Evaluation, bob: User, client_of: ClientOf
) -> None:
    page = client_of(bob).get(f"/p/physics/evaluations/{differ.run_id}/differences/").content.decode()
    assert "question 2" in page


def test_after_a_decision_the_next_difference_opens(
    differ: Evaluation, bob: User, client_of: ClientOf
) -> None:
    address = f"/p/physics/evaluations/{differ.run_id}/differences/"
    response = client_of(bob).post(f"{address}2/", {"value_0": "3", "reason": "Because."})
    assert response["Location"] == f"{address}3/"
    assert '"0": 4' in Adjudication.objects.get().values


def test_a_decision_without_a_reason_is_refused(differ: Evaluation, bob: User, client_of: ClientOf) -> None:
    address = f"/p/physics/evaluations/{differ.run_id}/differences/2/"
    answer = client_of(bob).post(address, {"value_0": "3", "reason": ""})
    assert answer.status_code == 422
    assert "Write the reason." in answer.text
    assert not Adjudication.objects.exists()


def test_the_order_of_the_verdicts_is_the_same_each_time(differ: Evaluation) -> None:
    item = Item.objects.get(evaluation=differ, number=2)
    assert verdicts(item) == verdicts(item)
    assert sorted(values[0] for values, _ in verdicts(item)) == [1, 5]


def test_the_form_offers_each_choice_with_its_key(differ: Evaluation, bob: User, client_of: ClientOf) -> None:
    page = client_of(bob).get(f"/p/physics/evaluations/{differ.run_id}/differences/2/").text
    for place in range(5):
        assert f'name="value_0" value="{place}" data-digit="{place + 1}"' in page


def test_what_was_chosen_is_kept_where_the_reason_is_missing(
    differ: Evaluation, bob: User, client_of: ClientOf
) -> None:
    address = f"/p/physics/evaluations/{differ.run_id}/differences/2/"
    page = client_of(bob).post(address, {"value_0": "3", "reason": ""}).text
    assert 'value="3" data-digit="4" checked' in page


def test_later_leads_to_the_next_item_that_waits(differ: Evaluation, bob: User, client_of: ClientOf) -> None:
    address, client = f"/p/physics/evaluations/{differ.run_id}/differences/", client_of(bob)
    following = {number: client.get(f"{address}{number}/").context["later_url"] for number in (2, 3)}
    assert following == {2: f"{address}3/", 3: f"{address}2/"}
    client.post(f"{address}3/", {"value_0": "3", "reason": "Because."})
    assert client.get(f"{address}2/").context["later_url"] == address
