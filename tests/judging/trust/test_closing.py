"""A test closes once every row of it has its ratings and every disagreement is decided."""

from __future__ import annotations

import json
from collections.abc import Callable
from uuid import uuid4

import pytest

from evalsite.accounts.models import User
from judging.core.licensing import Sizes
from judging.core.results_file.rating_lines import read_lines
from judging.people.adjudication import adjudicate
from judging.people.assignments import claim
from judging.people.models import Assignment, Item
from judging.people.rating_batch import RatingBatch
from judging.people.ratings import DeskRefused, undo
from judging.records.seal import sealed_items
from judging.trust.models import SealedTest
from judging.trust.progress import progress_of
from tests.judging.people.make import give, rate_each
from tests.judging.trust.conftest import Draw

pytestmark = pytest.mark.django_db
TESTED = 8


@pytest.fixture
def drawn(draw: Draw) -> Callable[..., SealedTest]:
    """Draw a test of eight rows, and a row each for train and dev: a rater holds ten at once."""

    def draw_test(overlap: int = 1) -> SealedTest:
        return SealedTest.objects.get(split=draw(Sizes(1, 1, TESTED), overlap))

    return draw_test


def is_open(test: SealedTest) -> bool:
    return SealedTest.objects.get(pk=test.pk).open


def in_test(test: SealedTest, held: Assignment) -> bool:
    assert test.evaluation is not None
    return held.item.row_id in sealed_items(test.evaluation.run)


def of_first(item: Item) -> bool:
    return item.row.line % 2 == 1


def test_it_closes_with_the_last_rating_of_its_own_rows(drawn: Callable[..., SealedTest], rita: User) -> None:
    test = drawn()
    assert test.evaluation is not None
    held = claim(evaluation=test.evaluation, user=rita, count=10)
    tested = [each for each in held if in_test(test, each)]
    others = [each for each in held if not in_test(test, each)]
    assert (len(tested), len(others)) == (TESTED, 2)
    for each in tested[:-1]:
        give(each, True)
    assert is_open(test)
    give(tested[-1], True)
    test.refresh_from_db()
    assert (test.open, len(test.labels), test.closed_by) == (False, TESTED, None)
    assert progress_of(test).next_evaluation == test.evaluation
    for each in others:
        give(each, True)
    assert progress_of(test).complete


def test_its_last_rating_cannot_be_undone(drawn: Callable[..., SealedTest], rita: User) -> None:
    test = drawn()
    assert test.evaluation is not None
    held = claim(evaluation=test.evaluation, user=rita, count=10)
    for each in sorted(held, key=lambda each: in_test(test, each)):
        give(each, True)
    with pytest.raises(DeskRefused) as refused:
        undo(evaluation=test.evaluation, user=rita, key=uuid4())
    assert refused.value.code == "test_closed"


def test_a_disagreement_is_decided_before_it_closes(
    drawn: Callable[..., SealedTest], rita: User, alice: User, bob: User
) -> None:
    test = drawn(overlap=2)
    assert test.evaluation is not None
    rate_each(test.evaluation, rita, of_first)
    disputed = Item.objects.filter(
        evaluation=test.evaluation, row__in=sealed_items(test.evaluation.run)
    ).latest("pk")
    rate_each(test.evaluation, alice, lambda item: of_first(item) != (item.pk == disputed.pk))
    assert is_open(test)
    adjudicate(item=disputed, values={0: True}, reason="it is right", by=bob)
    test.refresh_from_db()
    assert not test.open
    assert [label["tier"] for label in test.labels].count("adjudicated") == 1


def test_it_closes_with_an_agreement_of_two_raters(
    drawn: Callable[..., SealedTest], rita: User, alice: User
) -> None:
    test = drawn(overlap=2)
    assert test.evaluation is not None
    rate_each(test.evaluation, rita, of_first)
    assert is_open(test)
    rate_each(test.evaluation, alice, of_first)
    assert not is_open(test)


def test_the_last_ratings_may_come_from_a_file(drawn: Callable[..., SealedTest], rita: User) -> None:
    test = drawn()
    evaluation = test.evaluation
    assert evaluation is not None
    (criterion,) = evaluation.criteria.values()
    items = evaluation.items.select_related("row", "response__candidate")
    lines = [
        {"row": item.row.line, "candidate": "alpha", "rater": "rita", "values": {criterion.name: True}}
        for item in items
    ]
    text = "\n".join(map(json.dumps, lines))
    imported = RatingBatch(evaluation, list(read_lines(text, [criterion]))).import_lines()
    assert (imported.new, imported.wrong) == (10, [])
    assert not is_open(test)
