"""At most so many items a rater, and what raters were told."""

import re

import pytest

from evalsite.accounts.models import Project, Role, User
from judging.people import assignments
from judging.people.inviting.quota_change import quota_change
from judging.people.models import Evaluation, EvaluationRater, Order
from judging.people.quota import promise_accept, raised_to, seconds_an_item
from judging.people.selectors import rating_tasks
from tests.conftest import ClientOf, member
from tests.judging.people.make import give, make_evaluation, progress_of, rate_all


@pytest.fixture
def emil(project: Project) -> User:
    return member("emil", project, Role.RATER)


def study(
    project: Project, raters: list[User], adam: User, *, quota: int | None = 4, **more: object
) -> Evaluation:
    more = {"rows": 4, "models": ("alpha", "beta"), **more}
    evaluation = make_evaluation(project, raters, **more)  # type: ignore[arg-type]
    quota_change(evaluation=evaluation, quota=quota, by=adam)
    evaluation.refresh_from_db()
    return evaluation


def rater_of(evaluation: Evaluation, user: User) -> EvaluationRater:
    return EvaluationRater.objects.get(evaluation=evaluation, user=user)


def count(evaluation: Evaluation, user: User) -> int:
    return rater_of(evaluation, user).assignments.filter(state="rated").count()


def test_a_rater_gets_no_more_than_the_quota(project: Project, rita: User, adam: User) -> None:
    evaluation = study(project, [rita], adam, quota=3)
    rate_all(evaluation, rita, "A>B")
    assert count(evaluation, rita) == 3
    assert progress_of(evaluation, rita).left == 0


@pytest.mark.parametrize(("quota", "reached"), [(3, True), (None, False)])
def test_the_desk_of_a_rater_with_a_full_quota_expects_no_items_of_others(
    quota: int | None, reached: bool, project: Project, rita: User, adam: User, client_of: ClientOf
) -> None:
    evaluation = study(project, [rita], adam, quota=quota)
    rate_all(evaluation, rita, "A>B")
    page = client_of(rita).get(f"/p/physics/desk/{evaluation.run_id}/").text
    assert re.findall(r'data-quota="(\w+)">', page) == ["reached" if reached else "open"]
    assert ("data-quota-reached" in page) is reached


def test_an_equal_part_is_what_a_rater_is_told_and_gets(
    project: Project, rita: User, emil: User, adam: User
) -> None:
    evaluation = study(project, [rita, emil], adam, quota=4)
    assert (evaluation.share, rater_of(evaluation, rita).promised) == (2, 2)
    assert progress_of(evaluation, rita).total == 2
    rate_all(evaluation, rita, "A>B")
    assert count(evaluation, rita) == 2


def test_without_a_quota_a_rater_may_do_it_all(project: Project, rita: User, emil: User, adam: User) -> None:
    evaluation = study(project, [rita, emil], adam, quota=None)
    rate_all(evaluation, rita, "A>B")
    assert count(evaluation, rita) == 4


def test_skipped_items_count(project: Project, rita: User, adam: User) -> None:
    from uuid import uuid4

    from judging.people import ratings

    evaluation = study(project, [rita], adam, quota=3)
    (held, *_more) = assignments.claim(evaluation=evaluation, user=rita, count=3)
    ratings.skip(assignment=held, key=uuid4(), reason="unclear")
    rate_all(evaluation, rita, "A>B")
    assert count(evaluation, rita) == 2


def test_a_raised_number_is_told_and_taken_only_with_consent(
    project: Project, rita: User, emil: User, adam: User
) -> None:
    evaluation = study(project, [rita, emil], adam, quota=4)
    assignments.rater_leave(rater=rater_of(evaluation, emil), by=adam)
    evaluation.refresh_from_db()
    assert raised_to(evaluation, rater_of(evaluation, rita)) == 4
    rate_all(evaluation, rita, "A>B")
    assert count(evaluation, rita) == 2  # may stop at the old number
    assert progress_of(evaluation, rita).raised == 4
    assert promise_accept(evaluation=evaluation, user=rita)
    rate_all(evaluation, rita, "A>B")
    assert count(evaluation, rita) == 4


def test_a_lower_number_is_the_one_that_counts(project: Project, rita: User, emil: User, adam: User) -> None:
    evaluation = study(project, [rita], adam, quota=4)
    assert rater_of(evaluation, rita).promised == 4
    assignments.raters_add(evaluation=evaluation, users=[emil])
    assert rater_of(evaluation, rita).promised == 2


def test_items_that_others_skipped_raise_the_number(
    project: Project, rita: User, emil: User, adam: User
) -> None:
    from uuid import uuid4

    from judging.people import ratings

    evaluation = study(project, [rita, emil], adam, quota=4)
    for held in assignments.claim(evaluation=evaluation, user=emil, count=2):
        ratings.skip(assignment=held, key=uuid4(), reason="unclear")
    rate_all(evaluation, rita, "A>B")
    assignments.claim(evaluation=evaluation, user=rita, count=1)
    assert count(evaluation, rita) == 2
    assert progress_of(evaluation, rita).raised == 3


def test_nobody_is_told_of_a_draft(project: Project, rita: User, adam: User) -> None:
    from judging.people.states import study_open

    evaluation = study(project, [rita], adam, quota=2, draft=True)
    assert rater_of(evaluation, rita).promised is None
    study_open(evaluation=evaluation, by=adam)
    assert rater_of(evaluation, rita).promised == 2


def test_a_held_draft_stays_when_the_quota_is_lowered(project: Project, rita: User, adam: User) -> None:
    evaluation = study(project, [rita], adam, quota=4)
    first, second = assignments.claim(evaluation=evaluation, user=rita, count=2)
    give(first, "A>B")
    quota_change(evaluation=evaluation, quota=1, by=adam)
    assert assignments.claim(evaluation=evaluation, user=rita, count=2) == []
    give(second, "A>B")  # on its way
    assert count(evaluation, rita) == 2


def test_all_is_rated_within_the_promises(project: Project, adam: User) -> None:
    users = [member(f"r{number}", project, Role.RATER) for number in range(3)]
    evaluation = study(project, users, adam, quota=50, rows=5, overlap=2, gold_share=0.2, order=Order.NEED)
    for user in users:
        rate_all(evaluation, user, "A>B")
    assert [count(evaluation, user) for user in users] == [4, 4, 2]
    assert not evaluation.items.filter(free__gt=0).exists()


def test_the_list_tells_the_same_number(project: Project, rita: User, emil: User, adam: User) -> None:
    evaluation = study(project, [rita, emil], adam, quota=4)
    (task,) = rating_tasks(rita, Project.objects.filter(pk=project.pk))
    assert (task.left, task.promised, task.raised) == (2, 2, None)
    assert task.evaluation == evaluation


def test_the_pace_is_assumed_until_ten_ratings(project: Project, rita: User, adam: User) -> None:
    evaluation = study(project, [rita], adam, quota=None, rows=10)
    assert seconds_an_item(evaluation) == 30
    rate_all(evaluation, rita, "A>B")
    assert seconds_an_item(evaluation) == 5


def test_nobody_is_asked_for_more_items_than_there_are(project: Project, rita: User, adam: User) -> None:
    evaluation = study(project, [rita], adam, quota=20, overlap=2)
    assert evaluation.share == 4
