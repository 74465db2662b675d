"""Changes of a running study: confirmed first, and ratings so far are kept."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from django.core.exceptions import ValidationError

from datasets.models import Row
from evalsite.accounts.models import Project, User
from judging.core.people.criteria import Criterion
from judging.people.changes import StudyChange, study_change
from judging.people.models import Evaluation
from judging.people.services import evaluation_close
from judging.records.models import Judgement
from tests.conftest import ClientOf
from tests.judging.people.make import QUALITY, make_evaluation, rate_all
from tests.make import a_version

pytestmark = pytest.mark.django_db


@pytest.fixture
def evaluation(project: Project, rita: User) -> Evaluation:
    """Four of ten rows, with the answers of two models; Rita has rated them."""
    evaluation = make_evaluation(
        project, [rita], rows=10, side_by_side=False, criteria=[QUALITY], choice={"sample_size": 4}
    )
    rate_all(evaluation, rita, 3)
    return Evaluation.objects.get(pk=evaluation.pk)


def changed(evaluation: Evaluation, by: User, **fields: float) -> Evaluation:
    values = {"overlap": evaluation.overlap, "gold_share": evaluation.gold_share, "rows": 0, **fields}
    study_change(evaluation=evaluation, change=StudyChange(**values), by=by)  # type: ignore[arg-type]
    return Evaluation.objects.select_related("run").get(pk=evaluation.pk)


def test_more_raters_per_item_open_seats_and_keep_ratings(
    evaluation: Evaluation, ravi: User, alice: User
) -> None:
    evaluation = changed(evaluation, alice, overlap=3)
    assert set(evaluation.items.values_list("needed", "free", "rated")) == {(3, 2, 1)}
    assert (evaluation.overlap, evaluation.run.total) == (3, 24)


def test_more_rows_come_after_and_keep_every_probability(
    evaluation: Evaluation, rita: User, alice: User
) -> None:
    evaluation = changed(evaluation, alice, rows=3)
    items = evaluation.items.order_by("rank")
    assert (items.count(), evaluation.items_count, items.values("row").distinct().count()) == (14, 14, 7)
    assert {round(item.drawn_with or 0, 6) for item in items} == {0.7}
    assert min(item.rank for item in items if not item.rated) == 8
    assert len({item.rank for item in items}) == 14
    assert set(Judgement.objects.filter(run=evaluation.run).values_list("drawn_with", flat=True)) == {0.7}
    assert (evaluation.run.rows, evaluation.run.sample_size, evaluation.run.total) == (7, 7, 14)
    rate_all(evaluation, rita, 2)
    assert not evaluation.items.filter(rated=0).exists()


def test_rows_and_raters_together(evaluation: Evaluation, alice: User) -> None:
    evaluation = changed(evaluation, alice, rows=6, overlap=2, gold_share=0.1)
    assert (evaluation.run.total, evaluation.gold_share) == (40, 0.1)
    assert set(evaluation.items.values_list("needed", flat=True)) == {2}


@pytest.mark.parametrize("fields", [{"overlap": 0}, {"overlap": 51}, {"gold_share": 0.6}, {"rows": 7}])
def test_what_is_impossible_is_refused_whole(
    fields: dict[str, float], evaluation: Evaluation, alice: User
) -> None:
    with pytest.raises(ValidationError):
        changed(evaluation, alice, **fields)
    assert Evaluation.objects.get().items_count == 8


def test_more_rows_of_a_stratified_sample_have_the_probability_of_their_stratum(
    project: Project, rita: User, alice: User
) -> None:
    rows = [
        {"messages": [{"role": "user", "content": str(n)}], "topic": "law" if n < 8 else "art"}
        for n in range(12)
    ]
    version = a_version(project, rows=12, models=["alpha"])
    for row, data in zip(Row.objects.filter(version=version).order_by("line"), rows, strict=True):
        row.raw = json.dumps(data)
        row.save()
    evaluation = make_evaluation(
        project,
        [rita],
        version=version,
        side_by_side=False,
        choice={"sample_size": 3, "stratify_by": "topic"},
    )
    rate_all(evaluation, rita, 3)
    evaluation = changed(Evaluation.objects.get(), alice, rows=3)
    drawn = Counter(evaluation.items.values_list("stratum", "drawn_with"))
    assert drawn == {("law", 0.5): 4, ("art", 0.5): 2}
    assert set(Judgement.objects.values_list("drawn_with", flat=True)) == {0.5}


def test_rows_of_a_ranking_bring_all_its_pairs_and_hidden_repeats(
    project: Project, rita: User, alice: User
) -> None:
    evaluation = make_evaluation(
        project,
        [rita],
        rows=6,
        models=["alpha", "beta", "gamma"],
        scheme="rank",
        criteria=[Criterion(name="Preference", scale="rank")],
        choice={"sample_size": 2},
        repeat_share=0.5,
    )
    evaluation = changed(evaluation, alice, rows=4)
    repeats = evaluation.items.exclude(repeat_of=None)
    assert (evaluation.run.total, evaluation.items_count, repeats.count()) == (18, 6, 3)
    assert {item.further.count() for item in evaluation.items.all()} == {1}
    assert len(set(evaluation.items.values_list("number", flat=True))) == 9


def test_a_closed_evaluation_is_not_changed(evaluation: Evaluation, alice: User) -> None:
    evaluation_close(evaluation=evaluation, by=alice)
    with pytest.raises(ValidationError, match="Reopen it"):
        changed(evaluation, alice, overlap=2)


def test_the_page_asks_before_it_changes_anything(
    evaluation: Evaluation, alice: User, client_of: ClientOf
) -> None:
    client, address = client_of(alice), f"/p/physics/evaluations/{evaluation.run_id}/change/"
    sent = {"overlap": 2, "gold_share": 0, "rows": 1}
    asked = client.post(address, sent).text
    for text in ("1 row is drawn", "8 ratings more", "8 ratings so far are kept", "fewer raters than that"):
        assert text in asked
    assert Evaluation.objects.get().overlap == 1
    client.post(address, {**sent, "confirmed": "1"})
    assert (Evaluation.objects.get().overlap, Evaluation.objects.get().items_count) == (2, 10)


def test_the_page_says_what_is_wrong_at_its_field(
    evaluation: Evaluation, alice: User, client_of: ClientOf
) -> None:
    address = f"/p/physics/evaluations/{evaluation.run_id}/change/"
    refused = client_of(alice).post(address, {"overlap": 1, "gold_share": 0, "rows": 9})
    assert refused.status_code == 422
    assert "Only 6 rows are not in this evaluation yet." in refused.text
