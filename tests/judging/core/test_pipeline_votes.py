"""Aggregation of several judges' votes into one value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from judging.core.metric_definition import JudgeModel, Jury, Label, MetricDefinition
from judging.core.metrics_file import MetricsFileError, read_metrics_file, write_metrics_file
from judging.core.pipeline import combine_verdicts, combine_votes, outcome_of_kind
from judging.core.results import Failure, JudgeCall, Verdict
from judging.core.values import Outcome
from judging.runs.rerun.reparse import reparsed_definition
from tests.make import with_scripts

JUDGE = JudgeModel(name="j", url="http://127.0.0.1:9/v1", model="m", template="t", repeats=3)
METRIC = MetricDefinition(name="quality", judges=(JUDGE,))


@pytest.mark.parametrize(
    ("votes", "how", "value"),
    [
        ([4, 6, 8], "mean", 6.0),
        ([1, 8, 9], "median", 8.0),
        ([1, 8, 9, 10], "median", 8.5),
        ([3, 7, 7], "majority", 7),
        ([3, 7, 7, 8, 9], "majority", 7),
        ([7, 7.0, 3], "majority", 7),
        (["bad", "good", "good"], "majority", "good"),
    ],
)
def test_votes_come_to_one_value(votes: list[Any], how: Jury, value: Any) -> None:
    assert combine_votes(votes, how) == Outcome("scored", value)


@pytest.mark.parametrize("votes", [[3, 7], [1, 1, 2, 2, 3], [True, 1]])
def test_where_two_values_lead_there_is_no_majority(votes: list[Any]) -> None:
    assert combine_votes(votes, "majority") == Outcome.unparsed("jury_tied")


def concluded(metric: MetricDefinition, *votes: int | None, failed: int = 0) -> Outcome:
    failure = Failure("connect", "refused")
    asked = [JudgeCall(0, n, {}, {}, None, []) for n in range(len(votes))]
    asked += [JudgeCall(0, len(votes) + n, {}, None, failure, []) for n in range(failed)]
    verdicts = tuple(Verdict(0, n, vote, "" if vote else "nothing_offered") for n, vote in enumerate(votes))
    return combine_verdicts(metric, tuple(asked), verdicts)


def test_without_a_quorum_what_could_be_read_counts() -> None:
    assert concluded(METRIC, 4, None, failed=1) == Outcome("scored", 4)


def test_below_the_quorum_unreadable_votes_leave_it_unparsed() -> None:
    found = concluded(structs.replace(METRIC, quorum=2), 4, None, None)
    assert (found.state, found.reason, found.detail) == ("unparsed", "quorum", "1 < 2")


def test_below_the_quorum_failed_judges_make_an_error_that_names_the_first() -> None:
    found = concluded(structs.replace(METRIC, quorum=2), 4, failed=2)
    assert (found.state, found.reason, found.detail) == ("error", "quorum", "1 < 2; connect: refused")


def test_the_quorum_reached_is_enough() -> None:
    assert concluded(structs.replace(METRIC, quorum=2, jury="median"), 4, 6, failed=1) == Outcome(
        "scored", 5.0
    )


@pytest.mark.parametrize(
    ("gives", "votes", "outcome"),
    [
        ("pass_fail", [True, False, True], Outcome("scored", True)),
        ("pass_fail", [True, False], Outcome.unparsed("no_majority")),
        ("pass_fail", [False], Outcome("scored", False)),
        ("category", ["good", "bad", "good"], Outcome("scored", "good")),
        ("category", ["good", "good", "bad", "poor"], Outcome.unparsed("no_majority")),
    ],
)
def test_words_need_more_than_half_of_the_votes(gives: str, votes: list[Any], outcome: Outcome) -> None:
    metric = structs.replace(METRIC, gives=gives, jury="median")
    offered = tuple(Verdict(0, number, vote) for number, vote in enumerate(votes))
    assert combine_verdicts(metric, (), offered) == outcome


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "score"),
        ({"judges": (structs.replace(JUDGE, parse="comparison"),)}, "comparison"),
        ({"gives": "pass_fail"}, "pass_fail"),
        ({"judges": (), "rules": "x"}, "score"),
        ({"postprocess": "…"}, ""),
        ({"judges": (), "preprocess": "…"}, ""),
    ],
)
def test_a_metric_that_does_not_say_gives_what_its_judges_or_scripts_give(
    changes: dict[str, Any], kind: str
) -> None:
    assert structs.replace(METRIC, **with_scripts(changes)).kind == kind


def test_replies_are_read_by_the_metrics_kind_unless_it_does_not_say() -> None:
    labels = (Label(label="good"), Label(label="bad"))
    category = structs.replace(METRIC, gives="category", labels=labels)
    assert category.reading_of(JUDGE).labels == ("good", "bad")
    assert structs.replace(METRIC, gives="checklist").reading_of(JUDGE).kind == "pass_fail"
    assert METRIC.reading_of(structs.replace(JUDGE, parse="comparison")).kind == "comparison"


def test_old_definitions_load_as_they_judged() -> None:
    old = MetricDefinition.from_json('{"name":"a"}')
    assert (old.jury, old.quorum) == ("mean", 1)
    assert "jury" not in old.to_json()


def test_a_metrics_file_names_jury_and_quorum_and_is_written_the_same() -> None:
    metric = structs.replace(METRIC, jury="majority", quorum=2)
    assert read_metrics_file(write_metrics_file([metric]), Path()).metrics == (metric,)


def test_more_votes_than_there_are_cannot_be_required() -> None:
    text = write_metrics_file([structs.replace(METRIC, quorum=4)])
    with pytest.raises(MetricsFileError) as raised:
        read_metrics_file(text, Path())
    assert [problem.code for problem in raised.value.problems] == ["quorum_too_high"]


def test_scoring_again_applies_another_jury_to_what_was_said() -> None:
    assert reparsed_definition(METRIC, structs.replace(METRIC, jury="median", quorum=3)) == structs.replace(
        METRIC, jury="median", quorum=3
    )


@pytest.mark.parametrize(
    ("gives", "value", "state"),
    [
        ("pass_fail", True, "scored"),
        ("pass_fail", 1, "error"),
        ("score", 4.5, "scored"),
        ("score", True, "error"),
        ("category", "good", "scored"),
        ("category", "excellent", "error"),
        ("", "anything", "scored"),
    ],
)
def test_a_value_of_another_kind_is_an_error(gives: str, value: Any, state: str) -> None:
    metric = structs.replace(METRIC, gives=gives, labels=(Label(label="good"), Label(label="bad")))
    assert outcome_of_kind(metric, Outcome("scored", value)).state == state


def test_the_error_says_what_the_metric_gives_and_what_came() -> None:
    outcome = outcome_of_kind(structs.replace(METRIC, gives="pass_fail"), Outcome("scored", 7))
    assert outcome == Outcome.error("other_kind", "the metric gives pass_fail, the script returned int 7")


def test_a_script_may_return_a_comparison_with_the_reference_by_its_code() -> None:
    metric = structs.replace(METRIC, gives="comparison", max_score=5)
    assert outcome_of_kind(metric, Outcome("scored", "A>B")).value == 2
