"""Further answers drawn for people: probabilities, earlier draws, what rules had sent, and the corrected score."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from evalsite.accounts.models import User
from judging.people.asking.draws import NewStudy, answers_draw, receiving, unrated_items
from judging.people.asking.items import items_add
from judging.people.asking.models import AnswerDraw
from judging.people.asking.pool import pool_of
from judging.people.assignments import claim
from judging.people.models import Item
from judging.people.sampling import Thing
from judging.records.models import Run, RunMetric
from judging.reports.frames import run_frame
from judging.reports.services import report_document
from tests.judging.people.make import about, give, rate_each

pytestmark = pytest.mark.django_db


def as_people_say(item: Item) -> bool:
    return item.row.line % 6 not in (1, 3)  # the judge fails those with 1


@pytest.fixture
def draw(run: Run, judged: RunMetric, alice: User, rita: User) -> Any:
    def drawn(size: int = 30, **more: Any) -> AnswerDraw:
        into = next(iter(receiving(run, judged.name)), NewStudy([rita]))
        return answers_draw(run=run, run_metric=judged, size=size, into=into, user=alice, seed=3, **more)

    return drawn


def corrected(run: Run) -> dict[str, Any]:
    (score,) = report_document(Run.objects.get(pk=run.pk))["corrected"]
    return dict(score)


def by_people(run: Run) -> tuple[int, int, int]:
    """How many answers people's mean and the agreement hold, and how many ratings of sent answers are left out."""
    document = report_document(Run.objects.get(pk=run.pk))
    (cell,) = (cell for cells in document["people_candidates"].values() for cell in cells.values())
    (agreement,) = (each for each in document["judges"] if each["against"] == "people")
    return cell["scored"], agreement["items"], document["left_out"]["sent_by_rule"]


def test_each_answer_has_its_probability_before_its_first_rating(draw: Any) -> None:
    made = draw()
    chances = set(Item.objects.filter(evaluation=made.evaluation).values_list("drawn_with", flat=True))
    assert len(chances) > 1
    assert None not in chances


def test_answers_in_doubt_are_drawn_more_often(run: Run, judged: RunMetric, draw: Any) -> None:
    made = draw()
    failed = Item.objects.filter(evaluation=made.evaluation, row__line__in=range(1, 61, 6))
    passed = Item.objects.filter(evaluation=made.evaluation).exclude(pk__in=failed)
    assert failed.first().drawn_with > passed.first().drawn_with


def test_a_draw_alone_corrects_with_its_own_probabilities(run: Run, draw: Any, rita: User) -> None:
    rate_each(draw(40).evaluation, rita, as_people_say)
    score = corrected(run)
    assert (score["draw"], score["refused"]) == ("own", None)


def test_a_further_draw_leaves_out_what_was_rated(run: Run, draw: Any, rita: User) -> None:
    first = about(run, [rita], sample={"sample_size": 25})
    rate_each(first, rita, as_people_say)
    known = set(Item.objects.filter(evaluation=first).values_list("response", flat=True))
    made = draw()
    assert made.evaluation == first
    drawn = Item.objects.filter(evaluation=first, draw=1).values_list("response", flat=True)
    assert not known & set(drawn)
    assert set(Item.objects.filter(response__in=known).values_list("known_to", flat=True)) == {1}


def test_several_draws_give_one_corrected_score(run: Run, draw: Any, rita: User) -> None:
    rate_each(about(run, [rita], sample={"sample_size": 25}), rita, as_people_say)
    rate_each(draw(20).evaluation, rita, as_people_say)
    score = corrected(run)
    assert (score["draw"], score["refused"]) == ("several", None)
    assert score["ci_low"] < score["value"] < score["ci_high"]


def test_an_unfinished_draw_is_a_smaller_one(run: Run, draw: Any, rita: User) -> None:
    made = draw(30)
    evaluation = made.evaluation
    (held,) = claim(evaluation=evaluation, user=rita, count=1)
    give(held, True)
    frame = run_frame(run)
    (scaled,) = frame["drawn_with"].dropna().tolist()
    assert scaled == pytest.approx(held.item.drawn_with / made.waiting)


def test_a_further_draw_ends_the_earlier_one(run: Run, draw: Any, rita: User) -> None:
    evaluation = about(run, [rita], sample={"sample_size": 40})
    (held,) = claim(evaluation=evaluation, user=rita, count=1)
    give(held, True)
    assert unrated_items(run) == 39
    draw(10)
    left = Item.objects.filter(evaluation=evaluation, draw=0, needed__gt=0)
    assert [item.pk for item in left] == [held.item_id]


def test_what_a_rule_sent_counts_only_where_it_is_drawn(
    run: Run, judged: RunMetric, draw: Any, rita: User
) -> None:
    evaluation = draw(25).evaluation
    rate_each(evaluation, rita, as_people_say)
    before = corrected(run)
    pool = pool_of(run, judged)
    place = int(pool.frame[0])
    thing = Thing(int(pool.rows[place]), int(pool.responses[place]))
    items_add(evaluation, [thing], seed=1, by_rule=True)
    rate_each(evaluation, rita, as_people_say)
    assert corrected(run)["labelled"] == before["labelled"]
    assert by_people(run) == (before["labelled"], before["labelled"], 1)
    made = draw(1_000)
    assert made.rated_before == [thing.response]
    assert corrected(run)["labelled"] == before["labelled"] + 1
    assert by_people(run) == (before["labelled"] + 1, before["labelled"] + 1, 0)


def test_a_draw_of_nothing_stores_nothing(run: Run, draw: Any, rita: User) -> None:
    rate_each(about(run, [rita]), rita, as_people_say)
    with pytest.raises(ValidationError):
        draw()
    assert not AnswerDraw.objects.exists()
