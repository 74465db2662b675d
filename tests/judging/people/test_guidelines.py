"""A changed guideline makes a version: ratings carry theirs, raters get own items again, and the shift is told."""

from __future__ import annotations

import json

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from evalsite.accounts.models import Project, User
from judging.core.people.criteria import Criterion
from judging.people import assignments
from judging.people.guidelines.models import GuidelineReading, VersionRepeat
from judging.people.guidelines.selectors import ratings_by_version, version_lines
from judging.people.guidelines.services import GuidelineTexts, guideline_change
from judging.people.models import Evaluation, Rating
from judging.people.progress import repeat_hits
from judging.people.rater_figures import study_ratings
from judging.records.models import Judgement
from judging.reports.guideline_notes import version_sentences
from judging.reports.services import report_document
from tests.conftest import ClientOf
from tests.judging.people.make import (
    QUALITY,
    give,
    has_read,
    lines_of,
    make_evaluation,
    progress_of,
    rate_all,
)

pytestmark = pytest.mark.django_db
TEXTS = GuidelineTexts("Read twice.", {0: "Five only without a flaw."})


@pytest.fixture
def evaluation(project: Project, rita: User) -> Evaluation:
    """Rita has rated twelve of 24 answers with 2."""
    evaluation = make_evaluation(project, [rita], rows=12, side_by_side=False, criteria=[QUALITY])
    for held in assignments.claim(evaluation=evaluation, user=rita, count=10):
        give(held, 2)
    for held in assignments.claim(evaluation=evaluation, user=rita, count=2):
        give(held, 2)
    return Evaluation.objects.get(pk=evaluation.pk)


def changed(evaluation: Evaluation, by: User, texts: GuidelineTexts = TEXTS) -> Evaluation:
    guideline_change(evaluation=evaluation, texts=texts, seen=evaluation.guideline_version, by=by)
    return Evaluation.objects.get(pk=evaluation.pk)


def test_a_change_makes_a_version_and_keeps_the_first(evaluation: Evaluation, alice: User) -> None:
    evaluation = changed(evaluation, alice)
    versions = evaluation.guideline_versions.order_by("number")
    assert [(entry.number, entry.guideline, entry.criteria["0"]) for entry in versions] == [
        (1, "", "How good is it?"),
        (2, "Read twice.", "Five only without a flaw."),
    ]
    assert evaluation.criteria[0].guideline == "Five only without a flaw."


def test_a_draft_changes_without_a_version(project: Project, alice: User) -> None:
    evaluation = make_evaluation(project, side_by_side=False, draft=True)
    assert changed(evaluation, alice).guideline_version == 1
    assert not evaluation.guideline_versions.exists()


def test_each_rater_gets_ten_own_items_again(evaluation: Evaluation, rita: User, alice: User) -> None:
    evaluation = changed(evaluation, alice)
    assert progress_of(evaluation, rita).left == 12 + 10
    rate_all(evaluation, rita, 3)
    assert Rating.objects.filter(guideline_version=2).count() == 12 + 10
    again = Rating.objects.filter(assignment__item__version_repeat__isnull=False)
    assert again.values("assignment__item__repeat_of").distinct().count() == 10


def test_the_repeats_count_in_the_shift_and_nowhere_else(
    evaluation: Evaluation, rita: User, alice: User
) -> None:
    evaluation = changed(evaluation, alice)
    rate_all(evaluation, rita, 3)
    newest, oldest = version_lines(evaluation)
    (criterion, shift) = newest.shifts[0]
    assert (criterion.name, shift.estimate.mean, shift.estimate.items) == ("quality", 1.0, 10)
    assert oldest.shifts[0][1].estimate.mean is None
    assert (ratings_by_version(evaluation), newest.repeats) == ({1: 12, 2: 12}, (10, 10))
    assert Judgement.objects.filter(run=evaluation.run, current=True).count() == 24
    assert (repeat_hits(evaluation), study_ratings(evaluation).repeats) == ({}, {})


def test_a_rating_carries_the_version_that_its_page_showed(
    evaluation: Evaluation, rita: User, alice: User
) -> None:
    (held,) = assignments.claim(evaluation=evaluation, user=rita, count=1)
    evaluation = changed(evaluation, alice)
    assert give(held, 2, guideline=1).guideline_version == 1
    (following,) = assignments.claim(evaluation=evaluation, user=rita, count=1)
    assert give(following, 2, guideline=99).guideline_version == 2


def test_a_second_change_replaces_repeats_that_nobody_had(evaluation: Evaluation, alice: User) -> None:
    evaluation = changed(changed(evaluation, alice), alice, GuidelineTexts("Three times."))
    assert list(VersionRepeat.objects.values_list("version__number", flat=True)) == [3] * 10


def test_repeats_are_mixed_in_and_a_repeat_is_a_raters_own(
    evaluation: Evaluation, rita: User, ravi: User, alice: User
) -> None:
    assignments.raters_add(evaluation=evaluation, users=[ravi])
    evaluation = changed(evaluation, alice)
    rate_all(evaluation, ravi, 3)
    assert not Rating.objects.filter(
        rater__user=ravi, assignment__item__version_repeat__isnull=False
    ).exists()


def test_a_model_name_in_the_guideline_is_refused(evaluation: Evaluation, alice: User) -> None:
    with pytest.raises(ValidationError, match="model name alpha"):
        changed(evaluation, alice, GuidelineTexts("Alpha is often right."))


def test_two_who_change_it_at_once_do_not_overwrite_each_other(evaluation: Evaluation, alice: User) -> None:
    changed(evaluation, alice)
    with pytest.raises(ValidationError, match="Somebody has changed"):
        guideline_change(evaluation=evaluation, texts=GuidelineTexts("Mine."), seen=1, by=alice)


def test_the_report_says_that_a_mean_holds_two_versions(
    evaluation: Evaluation, rita: User, alice: User
) -> None:
    assert version_sentences(report_document(evaluation.run), "quality") == []
    evaluation = changed(evaluation, alice)
    rate_all(evaluation, rita, 3)
    document = json.loads(json.dumps(report_document(evaluation.run)))
    assert document["guideline_versions"] == {"quality": {"1": 12, "2": 12}}
    assert version_sentences(document, "quality") == [
        "People's figures here mix ratings under several versions of the guideline: 12 under version 1, 12 under "
        "version 2."
    ]


def test_the_export_holds_the_version(evaluation: Evaluation, rita: User, alice: User) -> None:
    evaluation = changed(evaluation, alice)
    rate_all(evaluation, rita, 3)
    assert [line["guideline_version"] for line in lines_of(evaluation)][:13] == [1] * 12 + [2]


def page_of(evaluation: Evaluation) -> str:
    return f"/p/physics/evaluations/{evaluation.run_id}/guideline/"


def test_the_page_asks_before_it_changes_anything(
    evaluation: Evaluation, alice: User, client_of: ClientOf
) -> None:
    client: Client = client_of(alice)
    sent = {"seen": 1, "guideline": "Read twice.", "criterion_0": "How good is it?"}
    asked = client.post(page_of(evaluation), sent)
    assert "12 ratings so far keep their version" in asked.text
    assert "10 in all" in asked.text
    assert Evaluation.objects.get().guideline_version == 1
    client.post(page_of(evaluation), {**sent, "confirmed": "1"})
    assert Evaluation.objects.get().guideline_version == 2
    assert "Version 2 begins" in client.get(page_of(evaluation)).text


def test_a_changed_guideline_of_a_large_shift_is_shown_with_its_interval(
    evaluation: Evaluation, rita: User, alice: User, client_of: ClientOf
) -> None:
    evaluation = changed(evaluation, alice)
    rate_all(evaluation, rita, 3)
    assert "+1" in client_of(alice).get(page_of(evaluation)).text


def desk_of(evaluation: Evaluation) -> str:
    return f"/p/physics/desk/{evaluation.run_id}/"


def test_the_guideline_opens_at_the_first_item_until_it_is_understood(
    evaluation: Evaluation, rita: User, client_of: ClientOf
) -> None:
    client = client_of(rita)
    assert "data-due open" in client.get(desk_of(evaluation)).text
    reading = GuidelineReading.objects.get()
    assert (reading.version, reading.understood_at) == (1, None)
    assert client.post(f"{desk_of(evaluation)}guideline/understood/", {"version": "1"}).status_code == 302
    assert "data-due" not in client.get(desk_of(evaluation)).text
    assert GuidelineReading.objects.get().understood_at is not None


def test_it_opens_again_after_a_change(
    evaluation: Evaluation, rita: User, alice: User, client_of: ClientOf
) -> None:
    client, json_please = client_of(rita), {"Accept": "application/json"}
    has_read(evaluation, rita)
    changed(evaluation, alice)
    assert client.get(f"{desk_of(evaluation)}items/").json()["guideline"] == 2
    told = client.get(f"{desk_of(evaluation)}guideline/").json()
    assert (told["version"], told["due"], "Read twice." in told["html"]) == (2, True, True)
    client.post(f"{desk_of(evaluation)}guideline/understood/", {"version": "2"}, headers=json_please)
    assert client.get(f"{desk_of(evaluation)}guideline/").json()["due"] is False


def test_nothing_opens_without_a_guideline(project: Project, rita: User, client_of: ClientOf) -> None:
    evaluation = make_evaluation(project, [rita], side_by_side=False, criteria=[Criterion(name="quality")])
    assert "data-due" not in client_of(rita).get(desk_of(evaluation)).text
    assert not GuidelineReading.objects.exists()


def test_the_organiser_sees_who_has_read_it(
    evaluation: Evaluation, rita: User, alice: User, client_of: ClientOf
) -> None:
    client_of(rita).get(desk_of(evaluation))
    assert "Read by" in client_of(alice).get(page_of(evaluation)).text
