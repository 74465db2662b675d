"""Spans: which texts are some, their sum, and an answer cut at overlapping ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from judging.core.metric_definition import MetricDefinition
from judging.core.people.criteria import Criterion, accepted, counted_value, outcome_of, problem_of
from judging.core.people.item_outcomes import kind_of_item
from judging.core.people.quality import RatedValue, Thresholds, criterion_figures
from judging.core.people.spans import Span, passages, spans_of, sum_of, text_of_records

ANSWER = "😀译文 is wrong"  # 12 code points, of which the first is two code units
ERRORS = Criterion(name="errors", scale="spans", categories=("Accuracy", "Style"), length=len(ANSWER))
MARK = {"start": 1, "end": 3, "label": "Accuracy", "severity": -5}


def text(*spans: dict[str, Any]) -> str:
    return json.dumps(spans)


@pytest.mark.parametrize("mark", [{}, {"start": 0, "end": 12}, {"severity": -10}, {"label": "Style"}])
def test_a_span_lies_in_the_answer_and_has_a_label_and_a_severity(mark: dict[str, Any]) -> None:
    assert problem_of(ERRORS, text(MARK | mark)) == ""


@pytest.mark.parametrize(
    "mark",
    [{"end": 13}, {"start": -1}, {"start": 3}, {"start": 1.5}, {"start": True}, {"label": "Tone"},
     {"label": None}, {"severity": -2}, {"severity": 5}, {"more": 1}],
)  # fmt: skip
def test_any_other_span_is_refused(mark: dict[str, Any]) -> None:
    assert problem_of(ERRORS, text(MARK, MARK | {"label": "Style"} | mark)) == "not_on_scale"


@pytest.mark.parametrize(
    "value", ["{}", "x", "[1]", "null", '["\ud800"]', 3, text(MARK, MARK | {"severity": -1})]
)
def test_other_values_and_a_span_marked_twice_are_refused(value: Any) -> None:
    assert problem_of(ERRORS, value) == "not_on_scale"


def test_too_many_spans_are_refused() -> None:
    answer = Criterion(name="errors", scale="spans", categories=("Accuracy",), length=300)
    assert problem_of(answer, text(*(MARK | {"start": n, "end": n + 1} for n in range(201)))) == "too_many"


def test_nothing_to_mark_is_a_value_and_no_value_is_not() -> None:
    assert problem_of(ERRORS, "[]") == ""
    assert problem_of(ERRORS, "") == "missing"
    assert outcome_of(ERRORS, "[]").value == 0


def test_spans_are_stored_sorted_and_count_as_their_sum() -> None:
    later = MARK | {"start": 2, "severity": -1}
    stored = accepted({0: ERRORS}, {0: text(later, MARK)})[0]
    assert [span.start for span in spans_of(str(stored))] == [1, 2]
    assert stored == accepted({0: ERRORS}, {0: text(MARK, later)})[0]
    assert counted_value(ERRORS, stored) == sum_of(str(stored)) == -6


def test_overlapping_spans_cut_the_answer_where_they_begin_and_end() -> None:
    outer, inner = Span(1, 6, "Style", -1), Span(3, 12, "Accuracy", -5)
    pieces = passages(ANSWER, [inner, outer])
    assert [piece.text for piece in pieces] == ["😀", "译文", " is", " wrong"]
    assert [piece.spans for piece in pieces] == [(), (outer,), (outer, inner), (inner,)]


def test_a_file_whose_score_is_not_the_sum_is_refused() -> None:
    assert problem_of(ERRORS, text_of_records([MARK], -5)) == ""
    assert problem_of(ERRORS, text_of_records([MARK], -4)) == "not_on_scale"


def test_the_metric_of_spans_has_no_declared_scale() -> None:
    definition = MetricDefinition.from_json(ERRORS.to_json())
    assert not definition.scale_declared
    assert Criterion.from_json(ERRORS.to_json()).length == 0


def test_raters_agree_on_a_sum_within_a_step() -> None:
    assert [kind_of_item(ERRORS, sums) for sums in ([-5, -6], [-5, 0], [0])] == ["agreed", "split", "single"]


def test_without_a_scale_raters_have_an_agreement_and_no_deviation() -> None:
    values = [RatedValue(rater, item, item, 0, -5, -5) for rater in (1, 2) for item in range(12)]
    assert {figure.name for figure in criterion_figures(ERRORS, values, Thresholds())} == {"agreement"}
