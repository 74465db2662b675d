"""Splits, sealed tests, openings and licences."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.utils import timezone

from evalsite.accounts.models import Project, User
from evalsite.models import Job
from judging.core.licensing import Sizes
from judging.core.statistics.uses import Thresholds
from judging.deletion.services import delete_begin
from judging.metrics.models import Metric, MetricVersion
from judging.metrics.services import metric_edit
from judging.people.models import Evaluation
from judging.records.definitions import definition_now
from judging.records.models import Run
from judging.records.overrides import override_add
from judging.reports.figures import for_page
from judging.reports.services import report_document
from judging.trust.answers import row_keys
from judging.trust.events import tell_of_dates
from judging.trust.models import Licence, SealedTest, Split
from judging.trust.progress import candidates_to_open
from judging.trust.selectors import licence_in_force, licence_state, sealed_lines
from judging.trust.services import (
    licence_lift,
    licence_suspend,
    rows_of_test,
    sealed_test_close,
    sealed_test_open,
    split_draw,
    thresholds_change,
)
from tests.judging.deletion.whole import remove_all
from tests.judging.judged import JUDGE_URL, judge, said
from tests.judging.people.make import about, rate_each
from tests.judging.trust.conftest import DEFINITION, ROWS
from tests.make import a_metric, a_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def rated(run: Run, rita: User) -> Evaluation:
    """Rita agrees with the judge but on the first row."""
    evaluation = about(run, [rita])
    rate_each(evaluation, rita, lambda item: item.row.line % 2 == 1 and item.row.line > 1)
    return evaluation


def split_of(run: Run, metric: Metric, **options: Any) -> Split:
    return split_draw(
        **{"version": run.version, "metric": metric, "sizes": Sizes(2, 4, 24), "seed": 5, **options}
    )


def a_closed_test(run: Run, metric: Metric, **options: Any) -> SealedTest:
    return sealed_test_close(test=split_of(run, metric, **options).test, run=run)


def opened(test: SealedTest, run: Run, **options: Any) -> Licence:
    return sealed_test_open(test=test, run_metric=run.metrics.get(), **options)


def test_a_version_is_offered_with_the_run_over_most_answers(
    run: Run, metric: Metric, rated: Evaluation
) -> None:
    part = judge(a_run(run.version, DEFINITION, sample_size=5), lambda place: said(place % 2 == 0))
    part.metrics.update(metric_version=metric.versions.get())
    (offered,) = candidates_to_open(a_closed_test(run, metric))
    assert (offered.run_metric.run, offered.scored) == (run, 24)


def another_version(metric: Metric) -> MetricVersion:
    changed = a_metric(JUDGE_URL, gives="pass_fail", parse="bool", template="Is {{ response }} good?")
    return metric_edit(metric=metric, definition=changed, based_on=1, user=None)


def a_run_with(version: MetricVersion, run: Run) -> Run:
    """The judge of another version passes everything."""
    changed = a_metric(JUDGE_URL, gives="pass_fail", parse="bool", template="Is {{ response }} good?")
    later = judge(a_run(run.version, changed), lambda _place: said(True))
    later.metrics.update(metric_version=version)
    return later


def test_a_draw_divides_the_rows_once(run: Run, metric: Metric) -> None:
    split = split_of(run, metric)
    parts = list(split.rows.values_list("part", flat=True))
    assert [parts.count(part) for part in ("train", "dev", "test")] == [2, 4, 24]
    with pytest.raises(ValidationError, match="already split"):
        split_of(run, metric)


def test_rows_set_aside_are_the_tests(run: Run, metric: Metric) -> None:
    split = split_of(run, metric, sizes=Sizes(2, 4, 10), aside=range(1, 16))
    keys, _by_id = row_keys(run.version)
    assert rows_of_test(split.test) <= {keys[line] for line in range(1, 16)}
    assert sealed_lines(run.version) <= set(range(1, 16))


def test_only_rated_rows_are_drawn_where_labels_exist(run: Run, metric: Metric, rita: User) -> None:
    evaluation = about(run, [rita], sample={"sample_size": 8})
    rate_each(evaluation, rita, lambda item: True)
    split = split_of(run, metric, sizes=Sizes(1, 2, 5), evaluation=evaluation)
    assert split.rows.count() == 8
    assert split.test.labels_before


def test_closing_keeps_the_labels_as_they_stand(run: Run, metric: Metric, rated: Evaluation) -> None:
    test = a_closed_test(run, metric)
    assert (len(test.labels), {label["tier"] for label in test.labels}) == (24, {"one"})
    with pytest.raises(ValidationError, match="already closed"):
        sealed_test_close(test=test, run=run)


def test_a_test_that_nobody_rated_stays_open(run: Run, metric: Metric) -> None:
    with pytest.raises(ValidationError, match="Nobody has rated"):
        a_closed_test(run, metric)


def test_an_opening_gives_a_licence_with_its_figures(run: Run, metric: Metric, rated: Evaluation) -> None:
    licence = opened(a_closed_test(run, metric), run)
    figures = licence.figures
    assert (figures["rows"], figures["items"], licence.opening_number, licence.tier) == (24, 24, 1, "one")
    right = figures["positive"]["count"] + figures["negative"]["count"]
    assert right == sum(judged == people for *_answer, judged, people in licence.answers) >= 23
    assert (licence.use, licence.thresholds["gates_rate"]) == ("trends", 0.8)


def test_labels_count_as_they_stood_when_the_test_was_closed(
    run: Run, metric: Metric, rated: Evaluation, rita: User
) -> None:
    test = a_closed_test(run, metric)
    rate_each(about(run, [rita]), rita, lambda item: True)
    people = [people for *_answer, people in opened(test, run).answers]
    assert 0 < sum(people) < 24


def test_a_test_being_rated_cannot_be_opened(run: Run, metric: Metric, rated: Evaluation) -> None:
    with pytest.raises(ValidationError, match="Close the test first"):
        opened(split_of(run, metric).test, run)


def test_a_test_is_opened_once_for_a_version_and_counts_openings(
    run: Run, metric: Metric, rated: Evaluation
) -> None:
    test = a_closed_test(run, metric)
    opened(test, run)
    with pytest.raises(ValidationError, match="already opened for version 1"):
        opened(test, run)
    second = opened(test, a_run_with(another_version(metric), run))
    assert (second.opening_number, second.figures["opening"], second.use) == (2, 2, "exploring")


def test_verdicts_without_a_stored_version_get_no_licence(
    run: Run, metric: Metric, rated: Evaluation
) -> None:
    test = a_closed_test(run, metric)
    run.metrics.update(metric_version=None)
    with pytest.raises(ValidationError, match="stored version"):
        opened(test, run)


def test_a_licence_belongs_to_equal_content_and_lapses_with_it(
    run: Run, metric: Metric, rated: Evaluation, project: Project
) -> None:
    licence = opened(a_closed_test(run, metric), run)
    same, other = DEFINITION, definition_now(a_run_with(another_version(metric), run).metrics.get())
    assert licence_in_force(same, project) == licence
    assert licence_in_force(other, project) is None
    assert [licence_state(licence, definition) for definition in (same, other)] == ["valid", "lapsed"]


def test_a_licence_lapses_at_its_date(run: Run, metric: Metric, rated: Evaluation) -> None:
    licence = opened(a_closed_test(run, metric), run)
    licence.expires_at = timezone.now()
    assert [licence_state(licence, now=timezone.now() + timedelta(days=days)) for days in (-1, 1)] == [
        "valid",
        "lapsed",
    ]


def test_a_suspension_lasts_until_it_is_lifted_with_a_reason(
    run: Run, metric: Metric, rated: Evaluation, adam: User
) -> None:
    licence = opened(a_closed_test(run, metric), run)
    suspension = licence_suspend(licence=licence, reason="The server changed.")
    assert licence_suspend(licence=licence, reason="Again.") == suspension
    assert licence_state(licence) == "suspended"
    with pytest.raises(ValidationError, match="Say why"):
        licence_lift(suspension=suspension, reason=" ", user=adam)
    licence_lift(suspension=suspension, reason="The same model.", user=adam)
    assert licence_state(licence) == "valid"
    with pytest.raises(ValidationError, match="already lifted"):
        licence_lift(suspension=suspension, reason="Twice.", user=adam)


def test_a_change_of_thresholds_touches_no_licence(
    run: Run, metric: Metric, rated: Evaluation, project: Project
) -> None:
    test = a_closed_test(run, metric)
    first = opened(test, run)
    thresholds_change(project=project, thresholds=Thresholds(trends_rate=0.99, gates_rate=0.99))
    first.refresh_from_db()
    assert (first.use, first.thresholds["trends_rate"]) == ("trends", 0.6)
    later = opened(test, a_run_with(another_version(metric), run))
    assert later.thresholds["trends_rate"] == 0.99


@pytest.mark.parametrize("thresholds", [Thresholds(gates_rate=1.2), Thresholds(gates_rate=0.5)])
def test_thresholds_that_make_no_sense_are_refused(project: Project, thresholds: Thresholds) -> None:
    with pytest.raises(ValidationError):
        thresholds_change(project=project, thresholds=thresholds)


def test_rows_are_sealed_until_the_first_opening(run: Run, metric: Metric, rated: Evaluation) -> None:
    test = a_closed_test(run, metric)
    assert len(sealed_lines(run.version)) == 24
    opened(test, run)
    assert sealed_lines(run.version) == set()


def test_a_licence_outlives_its_run(run: Run, metric: Metric, rated: Evaluation) -> None:
    licence = opened(a_closed_test(run, metric), run)
    delete_begin(kind="run", thing=run)
    remove_all()
    connection.check_constraints()
    licence.refresh_from_db()
    assert (licence.opening.run, licence.figures["items"]) == (None, 24)


@pytest.mark.parametrize("kind", ["version", "dataset"])
def test_rows_that_a_split_rests_on_are_not_deleted(
    run: Run, metric: Metric, rated: Evaluation, kind: str
) -> None:
    split_of(run, metric)
    thing: Any = run.version if kind == "version" else run.version.dataset
    with pytest.raises(ValidationError, match="drawn from its rows: “quality · "):
        delete_begin(kind=kind, thing=thing, with_runs=True)
    delete_begin(kind="project", thing=run.project, with_runs=True)
    remove_all()
    connection.check_constraints()
    assert not Split.objects.exists()


def report_of(run: Run) -> dict[str, Any]:
    return report_document(Run.objects.get(pk=run.pk))


def test_a_report_names_the_licence_of_its_judge(run: Run, metric: Metric, rated: Evaluation) -> None:
    (before,) = report_of(run)["licences"]
    opened(a_closed_test(run, metric), run)
    (after,) = report_of(run)["licences"]
    assert [(entry["state"], entry["use"], entry["items"]) for entry in (before, after)] == [
        ("none", None, None),
        ("valid", "trends", 24),
    ]
    assert (after["opening"], after["tier"], after["tpr"] > 0.9, after["tpr_low"] < after["tpr"]) == (
        1, "one", True, True,
    )  # fmt: skip


def test_a_run_without_ratings_is_corrected_by_the_licence_while_it_holds(
    run: Run, metric: Metric, rated: Evaluation
) -> None:
    later = judge(a_run(run.version, DEFINITION), lambda place: said(place % 3 > 0))
    later.metrics.update(metric_version=metric.versions.get())
    assert report_of(later)["corrected"] == []
    licence = opened(a_closed_test(run, metric, sizes=Sizes(0, 0, ROWS)), run)
    (score,) = report_of(later)["corrected"]
    assert (score["source"], score["refused"], score["labelled"]) == ("licence", None, ROWS)
    assert score["ci_low"] < score["value"] < score["ci_high"]
    (headline,) = report_of(later)["headline"]
    assert headline["value"] == "corrected"
    assert headline["text"].endswith("corrected with the test of the judge's licence")
    licence_suspend(licence=licence, reason="The server changed.")
    (score,) = report_of(later)["corrected"]
    assert (score["refused"], score["value"]) == ("suspended", None)
    assert report_of(later)["headline"][0]["value"] == "raw"


def test_overrides_are_in_no_value_corrected_by_a_licence(
    run: Run, metric: Metric, rated: Evaluation, alice: User
) -> None:
    later = judge(a_run(run.version, DEFINITION), lambda place: said(place % 3 > 0))
    later.metrics.update(metric_version=metric.versions.get())
    opened(a_closed_test(run, metric, sizes=Sizes(0, 0, ROWS)), run)
    before = report_of(later)
    for judgement in later.judgements.filter(value="false"):
        override_add(judgement=judgement, value=True, reason="wrong", by=alice)
    after = report_of(later)
    assert after["candidates"] != before["candidates"]
    assert [after["corrected"], after["corrected_pairs"]] == [before["corrected"], before["corrected_pairs"]]


def test_an_evaluation_that_a_test_rests_on_is_not_deleted(
    run: Run, metric: Metric, rated: Evaluation
) -> None:
    split_of(run, metric, evaluation=rated)
    with pytest.raises(ValidationError, match="“quality · "):
        delete_begin(kind="evaluation", thing=rated.run)


def test_an_evaluation_that_no_test_rests_on_is_deleted(run: Run, rated: Evaluation) -> None:
    delete_begin(kind="evaluation", thing=rated.run)
    assert not Run.objects.filter(pk=rated.run_id).exists()


def test_results_in_lists_are_computed_again_on_the_day_a_licence_lapses(
    run: Run, metric: Metric, rated: Evaluation
) -> None:
    licence = opened(a_closed_test(run, metric), run)
    for_page(Run.objects.get(pk=run.pk))
    Job.objects.all().delete()
    tell_of_dates()
    assert not Job.objects.exists()
    Licence.objects.filter(pk=licence.pk).update(expires_at=timezone.now())
    before = Run.objects.get(pk=run.pk).revision
    tell_of_dates()
    tell_of_dates()
    assert list(Job.objects.values_list("kind", "object_id")) == [("compute_figures", run.pk)]
    assert Run.objects.get(pk=run.pk).revision == before + 1
