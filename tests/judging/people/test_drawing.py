"""Database queries of creating an evaluation, which holds SQLite's only write lock, and of a rater's queue."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalsite.accounts.models import Project, Role, User
from evalsite.models import AuditEntry
from judging.core.people.assignment import MOST_AHEAD
from judging.people.assignments import claim, rater_leave, raters_add
from judging.people.models import EvaluationRater, Scheme
from judging.people.sampling import ItemChoice, sample_items
from judging.people.selectors import rating_tasks
from tests.conftest import member
from tests.judging.people.make import give, make_evaluation, rate_all
from tests.make import a_version

pytestmark = pytest.mark.django_db


def test_only_the_texts_of_drawn_rows_are_read(project: Project) -> None:
    version = a_version(project, rows=30)
    choice = ItemChoice(version, list(version.candidates.all()), Scheme.EVERY_PAIR, sample_size=2, seed=1)
    with CaptureQueriesContext(connection) as asked:
        sampled = sample_items(choice)
    (texts,) = [one["sql"] for one in asked if '"datasets_row"."raw"' in one["sql"]]
    assert texts.partition(" IN (")[2].count(",") == 1
    assert sampled.rows == 2


def test_twenty_raters_cost_no_more_queries_than_two(project: Project) -> None:
    version = a_version(project, rows=3)
    raters = [member(f"rater{number}", project, Role.RATER) for number in range(20)]
    with CaptureQueriesContext(connection) as for_two:
        make_evaluation(project, raters[:2], version=version)
    with CaptureQueriesContext(connection) as for_twenty:
        evaluation = make_evaluation(project, raters, version=version)
    assert len(for_twenty) == len(for_two)
    assert EvaluationRater.objects.filter(evaluation=evaluation).count() == 20


def test_raters_are_numbered_in_order_and_each_is_in_the_log_once(project: Project, adam: User) -> None:
    ravi, rita, rosa = (member(name, project, Role.RATER) for name in ("ravi", "rita", "rosa"))
    evaluation = make_evaluation(project, [ravi])
    rater_leave(rater=evaluation.raters.get(), by=adam)
    raters_add(evaluation=evaluation, users=[rita, ravi, rosa], by=adam)
    raters_add(evaluation=evaluation, users=[rosa], by=adam)
    there = evaluation.raters.filter(left_at=None).order_by("pk")
    assert list(there.values_list("pseudonym", "user__username")) == [
        ("R1", "ravi"),
        ("R2", "rita"),
        ("R3", "rosa"),
    ]
    log = AuditEntry.objects.filter(action="rater.added", actor=adam.pk).order_by("pk")
    assert [entry.detail["rater"] for entry in log] == ["rita", "ravi", "rosa"]


def test_a_queue_of_many_evaluations_costs_no_more_queries_than_one(project: Project, rita: User) -> None:
    version = a_version(project, rows=3)
    first = make_evaluation(project, [rita], version=version)
    rate_all(first, rita, "A>B")
    with CaptureQueriesContext(connection) as for_one:
        rating_tasks(rita, Project.objects.all())
    others = [make_evaluation(project, [rita], version=version) for _ in range(5)]
    with CaptureQueriesContext(connection) as for_six:
        found = rating_tasks(rita, Project.objects.all())
    assert len(for_six) == len(for_one)
    assert [(one.evaluation, one.rated, one.left) for one in found] == [
        *((other, 0, 3) for other in others),
        (first, 3, 0),
    ]


def test_others_ratings_are_counted_only_where_items_run_short(project: Project) -> None:
    raters = [member(f"rater{number}", project, Role.RATER) for number in range(3)]
    evaluation = make_evaluation(project, raters, rows=3 * MOST_AHEAD, overlap=1)
    with CaptureQueriesContext(connection) as enough:
        held = claim(evaluation=evaluation, user=raters[0])
    give(held[0], "A>B")
    with CaptureQueriesContext(connection) as short:
        claim(evaluation=evaluation, user=raters[0])
    assert [raters_counted(queries) for queries in (enough, short)] == [1, 3]


def raters_counted(queries: CaptureQueriesContext) -> int:
    (ids,) = [
        query["sql"].partition('"rater_id" IN (')[2] for query in queries if "GROUP BY 1" in query["sql"]
    ]
    return ids.partition(")")[0].count(",") + 1
