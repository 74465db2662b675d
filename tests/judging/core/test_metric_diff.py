"""Differences between two versions of a metric, as sentences."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from judging.core.metric_definition import JudgeModel, MetricDefinition, Script
from judging.core.metric_diff import MetricPart, as_text, difference, lines_of

JUDGE = JudgeModel(name="a", template="one\ntwo\nthree", endpoint=1)
METRIC = MetricDefinition(name="m", judges=(JUDGE,))


def change(**more: Any) -> MetricDefinition:
    return structs.replace(METRIC, **more)


def judge_change(**more: Any) -> MetricPart:
    (part,) = difference(METRIC, change(judges=(structs.replace(JUDGE, **more),)))
    return part


def shown(before: str, after: str) -> list[str]:
    marks = {"same": " ", "gone": "-", "new": "+"}
    return [
        f"…{line.skipped}" if line.kind == "skipped" else marks[line.kind] + line.text
        for line in lines_of(before, after)
    ]


def test_a_version_does_not_differ_from_itself() -> None:
    assert difference(METRIC, METRIC) == ()


def test_a_changed_setting_of_the_metric_is_named_with_both_values() -> None:
    (part,) = difference(METRIC, change(max_score=5))
    assert [(one.name, one.before, one.after) for one in part.settings] == [("max_score", 10, 5)]


@pytest.mark.parametrize(
    ("name", "value"),
    [("params", {"temperature": 0}), ("repeats", 2), ("parse", "comparison"), ("endpoint", 2)],
)
def test_a_changed_setting_of_a_judge_is_reported_in_its_part(name: str, value: Any) -> None:
    part = judge_change(**{name: value})
    assert (part.judge, [one.name for one in part.settings], part.texts) == ("a", [name], ())


def test_a_changed_template_is_reported_by_its_lines() -> None:
    (text,) = judge_change(template="one\n2\nthree").texts
    assert [(line.kind, line.text, line.before, line.after) for line in text.lines] == [
        ("same", "one", 1, 1),
        ("gone", "two", 2, None),
        ("new", "2", None, 2),
        ("same", "three", 3, 3),
    ]


def test_judges_are_known_by_name_wherever_they_are() -> None:
    other = JudgeModel(name="b", template="x")
    assert difference(change(judges=(JUDGE, other)), change(judges=(other, JUDGE))) == ()


def test_an_added_and_a_removed_judge_are_reported_whole() -> None:
    parts = difference(METRIC, change(judges=(JudgeModel(name="b", template="x"),)))
    assert [(part.judge, part.kind) for part in parts] == [("b", "new"), ("a", "gone")]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a", "b", ["-a", "+b"]),
        ("", "a\nb", ["+a", "+b"]),
        ("a", "", ["-a"]),
        ("1\n2\n3\n4\n5\n6\n7\nx", "1\n2\n3\n4\n5\n6\n7\ny", ["…4", " 5", " 6", " 7", "-x", "+y"]),
        ("x\n1\n2\n3\n4\n5", "y\n1\n2\n3\n4\n5", ["-x", "+y", " 1", " 2", " 3", "…2"]),
        ("x\n1\n2\n3\nz", "y\n1\n2\n3\nw", ["-x", "+y", " 1", " 2", " 3", "-z", "+w"]),
    ],
)
def test_only_what_lies_near_a_change_is_shown(before: str, after: str, expected: list[str]) -> None:
    assert shown(before, after) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ({}, ""),
        (10.0, "10"),
        (0.5, "0.5"),
        ("评分", "评分"),
        ({"a": 1}, '{"a": 1}'),
        (True, "true"),
    ],
)
def test_values_are_shown_as_people_write_them(value: Any, text: str) -> None:
    assert as_text(value) == text


def test_long_texts_full_of_equal_lines_are_replaced_as_a_whole() -> None:
    lines = list(lines_of("\n" * 20_000, "x\n" * 20_000))
    assert [line.kind for line in lines] == ["gone"] * 20_001 + ["new"] * 20_001


def test_scripts_are_compared_with_those_of_the_same_kind_and_place_among_them() -> None:
    first, second = (Script(kind="preprocess", source=source, after=1) for source in "ab")
    (part,) = difference(change(scripts=(first,)), change(scripts=(first, second)))
    assert [(text.name, text.number) for text in part.texts] == [("preprocess", 2)]


def test_a_script_moved_before_its_judges_is_another_order_of_steps() -> None:
    script = Script(kind="preprocess", source="s", after=1)
    (part,) = difference(change(scripts=(script,)), change(scripts=(structs.replace(script, after=0),)))
    assert [(setting.name, setting.before, setting.after) for setting in part.settings] == [
        ("steps", "a → preprocess", "preprocess → a")
    ]
