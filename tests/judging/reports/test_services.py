"""The report document of a run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evalsite.accounts.models import Project, User
from judging.core.statistics.intervals import mean_interval
from judging.core.values import Outcome, Value
from judging.engine import planning
from judging.records.models import Judgement, Run
from judging.records.overrides import override_add
from judging.reports.labels import left_out_sentences
from judging.reports.services import report_document
from judging.runs.services import run_retry
from tests.judging.reports.cast import a_judged_run, by_name, judge_all
from tests.make import a_metric, a_run, a_version

pytestmark = pytest.mark.django_db


def cell(run: Run, candidate: str = "alpha", metric: str = "quality") -> dict[str, Any]:
    found: dict[str, Any] = report_document(Run.objects.get(pk=run.pk))["candidates"][candidate][metric]
    return found


def by_line(judgement: Judgement) -> int:
    return judgement.row.line + (judgement.candidate.name == "alpha")


def partly_unscored(judgement: Judgement) -> int | Outcome | None:
    outcomes = {1: 4, 2: 8, 3: None, 4: Outcome.unparsed("nothing_offered"), 5: Outcome.error("timeout")}
    return outcomes[judgement.row.line]


def override(judgement: Judgement, value: Value, by: User) -> None:
    override_add(judgement=judgement, value=value, reason="seen", by=by)


def test_means_and_intervals_are_those_of_the_scores(project: Project) -> None:
    run = a_judged_run(a_version(project, rows=3), by_line)
    assert (cell(run)["mean"], cell(run, "beta")["mean"]) == (3.0, 2.0)
    assert cell(run)["ci_low"] == mean_interval(3, 3**-0.5, 3, (1, 10))[0]


def test_what_could_not_be_scored_is_counted_by_its_reason_and_never_zero(project: Project) -> None:
    figures = cell(a_judged_run(a_version(project, rows=5), partly_unscored))
    assert [figures[name] for name in ("scored", "no_score", "unparsed", "errors", "not_run")] == [
        2,
        1,
        1,
        1,
        0,
    ]
    assert (figures["mean"], figures["coverage"], figures["responses"]) == (6.0, 0.5, 5)


def test_bounds_are_by_the_metrics_scale(project: Project) -> None:
    figures = cell(a_judged_run(a_version(project, rows=5), partly_unscored))
    assert (figures["low_bound"], figures["high_bound"]) == ((4 + 8 + 1 + 1) / 4, (4 + 8 + 10 + 10) / 4)


def test_an_items_responses_are_meaned_first(project: Project) -> None:
    run = a_judged_run(a_version(project, rows=2, answers=2), lambda one: one.response.number * 2)
    assert (cell(run)["items"], cell(run)["responses"], cell(run)["best_at_k"]["2"]) == (2, 4, 4.0)


def test_equal_judgements_give_equal_figures(project: Project) -> None:
    first, second = (a_judged_run(a_version(project, rows=7), by_line) for _ in range(2))
    one, other = report_document(first), report_document(second)
    assert [one[name] for name in ("rows", "candidates", "pairs")] == [
        other[name] for name in ("rows", "candidates", "pairs")
    ]


def test_the_document_is_strict_json(project: Project) -> None:
    run = a_judged_run(a_version(project, rows=2), lambda one: 1e300 if one.row.line == 1 else True)
    document = report_document(run)
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_it_says_which_run_and_data_it_is_about(project: Project) -> None:
    run = a_judged_run(a_version(project), by_line, name="first look")
    document = report_document(run)
    assert [document[name] for name in ("run", "run_id", "dataset", "version", "rows")] == [
        "first look", run.pk, run.version.dataset.name, 1, 3,
    ]  # fmt: skip


def test_rows_that_were_not_drawn_are_named_with_the_seed(project: Project) -> None:
    run = a_judged_run(a_version(project, rows=9), by_line, sample_size=4, seed=7)
    left_out = report_document(run)["left_out"]
    assert left_out == {
        "bad_rows": 0,
        "not_read_to_its_end": False,
        "rows_not_drawn": 5,
        "seed": 7,
        "rows_without_answers": 0,
        "pairs_without_answers": 0,
        "excluded": 0,
        "excluded_by": [],
        "sealed": 0,
        "sent_by_rule": 0,
    }


def test_a_file_that_was_not_read_to_its_end_is_stated(project: Project) -> None:
    version = a_version(project, rows=3)
    version.stopped_by, version.left_out_at = "file.encoding", timezone.now()
    version.save()
    left_out = report_document(a_judged_run(version, by_line))["left_out"]
    assert left_out_sentences(left_out) == ["Rest of the file (incomplete)."]


def test_rows_without_an_answer_are_counted(project: Project) -> None:
    version = a_version(project, rows=3)
    version.data_rows.get(line=2).responses.all().delete()
    document = report_document(a_judged_run(version, by_line))
    assert (document["rows"], document["left_out"]["rows_without_answers"]) == (2, 1)


def test_a_reviewers_value_counts_in_place_of_the_first(project: Project, bob: User) -> None:
    run = a_judged_run(a_version(project, rows=2), by_name(alpha=4, beta=4))
    judgement = run.judgements.filter(candidate__name="alpha").first()
    assert judgement is not None
    override(judgement, 9, bob)
    override(judgement, 10, bob)
    assert (cell(run)["mean"], cell(run)["overridden"], cell(run, "beta")["overridden"]) == (7.0, 1, 0)


def test_an_override_gives_a_value_to_what_had_none(project: Project, bob: User) -> None:
    run = a_judged_run(a_version(project, rows=5), partly_unscored)
    judgement = run.judgements.get(candidate__name="alpha", state="unparsed")
    override(judgement, 6, bob)
    assert (cell(run)["scored"], cell(run)["unparsed"], cell(run)["mean"]) == (3, 0, 6.0)


def test_an_override_is_seen_at_once(project: Project, bob: User) -> None:
    run = a_judged_run(a_version(project, rows=1), by_name(alpha=4, beta=4))
    before = cell(run)["mean"]
    override_add(judgement=run.judgements.get(candidate__name="alpha"), value=5, reason="seen", by=bob)
    run.refresh_from_db()
    assert (before, cell(run)["mean"]) == (4.0, 5.0)


def test_only_the_newest_attempt_counts(project: Project) -> None:
    run = a_judged_run(a_version(project, rows=5), partly_unscored)
    run_retry(run)
    judge_all(run, lambda _: 6)
    assert (cell(run)["responses"], cell(run)["errors"], cell(run)["mean"]) == (5, 0, 6.0)


def test_a_run_under_way_is_provisional_and_says_what_is_not_run(project: Project) -> None:
    run = a_run(a_version(project, rows=80), a_metric("http://127.0.0.1:9"))
    planning.plan(run.pk)
    judge_all(run, by_line, most=1)
    document = report_document(Run.objects.get(pk=run.pk))
    assert document["provisional"]
    assert document["candidates"]["alpha"]["quality"]["not_run"] == 30


def test_a_run_that_is_not_planned_yet_has_a_document_without_figures(project: Project) -> None:
    document = report_document(a_run(a_version(project), a_metric("http://127.0.0.1:9")))
    assert document["rows"] == 0
    assert document["candidates"]["alpha"]["quality"]["mean"] is None


def test_figures_are_worked_out_once_for_each_state_of_a_run(project: Project) -> None:
    run = a_judged_run(a_version(project, rows=20), by_line)
    report_document(run)
    with CaptureQueriesContext(
        connection,
    ) as asked:
        report_document(run)
    assert not [
        query for query in asked if "judging_judgement" in query["sql"] and "override" not in query["sql"]
    ]


def test_the_number_of_queries_does_not_grow_with_the_run(
    project: Project, django_assert_num_queries: Any
) -> None:
    small, large = a_version(project, rows=2), a_version(project, rows=60, models=("a", "b", "c", "d"))
    counts = []
    for version in (small, large):
        run = a_judged_run(version, lambda _: 5)
        with CaptureQueriesContext(connection) as asked:
            report_document(run)
        counts.append(len(asked))
    assert counts[0] == counts[1]


def test_cost_counts_requests_tokens_and_time(project: Project) -> None:
    cost = report_document(a_judged_run(a_version(project), by_line))["cost"]
    assert (cost["requests"], cost["retries"], cost["prompt_tokens"]) == (0, 0, 0)
    assert cost["judgements_per_second"] > 0
