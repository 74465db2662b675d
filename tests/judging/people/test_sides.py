"""Each side shows its own conversation if there are two, and nothing that reveals the reference."""

from __future__ import annotations

import json

import pytest
from django.core.exceptions import ValidationError

from datasets.models import Row
from evalsite.accounts.models import Project, User
from judging.people import assignments
from judging.people.item_view import shown_to
from judging.people.presets import preview
from tests.conftest import ClientOf
from tests.judging.people.make import legacy, make_evaluation
from tests.make import a_version

pytestmark = pytest.mark.django_db


def turns(*answers: str) -> str:
    """A legacy row of two turns."""
    asked = ("first question", "second question")
    return json.dumps(
        {"conversation": [{"prompt": one, "response": two} for one, two in zip(asked, answers, strict=True)]}
    )


def test_two_versions_are_shown_each_with_its_own_first_turn(
    project: Project, rita: User, client_of: ClientOf
) -> None:
    one, other = legacy(project, False), legacy(project, False, "newer")
    Row.objects.filter(version=one, line=1).update(raw=turns("old first", "old last"))
    Row.objects.filter(version=other, line=1).update(raw=turns("new first", "new last"))
    choice = {"candidates": (), "other_version": other}
    evaluation = make_evaluation(
        project, [rita], version=one, scheme="versions", choice=choice, shows_reference=False
    )
    held = next(
        one
        for one in assignments.claim(evaluation=evaluation, user=rita, count=3)
        if "first question" in one.item.row.raw
    )
    seen = shown_to(held)
    assert [each["content"] for each in seen.messages] == ["first question"]
    sides = [seen.left, seen.right] if held.shown_first == 1 else [seen.right, seen.left]
    found = [([each["content"] for each in side.before], side.content) for side in sides if side]
    assert sorted(found) == [
        (["new first", "second question"], "new last"),
        (["old first", "second question"], "old last"),
    ]
    page = client_of(rita).get(f"/p/physics/desk/{evaluation.run_id}/").content.decode()
    assert page.count("old first") == page.count("new first") == 1


def test_versions_that_answer_the_first_turn_the_same_share_the_conversation(
    project: Project, rita: User
) -> None:
    one, other = legacy(project, False), legacy(project, False, "newer")
    Row.objects.filter(version=one, line=1).update(raw=turns("same", "old last"))
    Row.objects.filter(version=other, line=1).update(raw=turns("same", "new last"))
    seen = preview(one, "versions", [], other=other)
    assert seen is not None
    assert seen.right is not None
    assert [each["content"] for each in seen.messages] == ["first question", "same", "second question"]
    assert (seen.left.before, seen.right.before) == ([], [])


def test_a_reference_that_is_compared_is_not_shown_as_such(project: Project, rita: User) -> None:
    with pytest.raises(ValidationError, match="reveal which one it is"):
        make_evaluation(project, [rita], version=legacy(project), scheme="reference", shows_reference=True)


@pytest.mark.parametrize(("answers", "said"), [(1, False), (2, True)])
def test_it_is_said_that_of_several_answers_the_first_are_compared(
    project: Project, alice: User, client_of: ClientOf, answers: int, said: bool
) -> None:
    version = a_version(project, answers=answers)
    version.candidates.update(responses=version.valid_rows * answers)
    form = client_of(alice).get(f"/p/physics/evaluations/new/?version={version.pk}").content.decode()
    assert ("the first ones are compared" in form) == said
    made = make_evaluation(project, version=version)
    page = client_of(alice).get(f"/p/physics/evaluations/{made.run_id}/").content.decode()
    assert ("first answer of each row" in page) == said
