"""Reading a row's rubric, and the value of met criteria."""

from typing import Any

import pytest

from datasets.core.rubric import Rubric, lines_of, points_in, read_rubric


def rubric_of(*items: Any) -> Rubric:
    rubric, problems = read_rubric(list(items))
    assert rubric is not None, problems
    return rubric


def points(*numbers: float) -> Rubric:
    return rubric_of(
        *({"criterion": f"c{number}{at}", "points": number} for at, number in enumerate(numbers))
    )


@pytest.mark.parametrize(
    ("met", "bounds"),
    [
        ((True, True, False), (1.0, 1.0)),
        ((True, False, True), ((7 - 6) / 11, (7 - 6) / 11)),
        ((False, False, True), (-6 / 11, -6 / 11)),
        ((True, None, False), (7 / 11, 1.0)),
        ((True, False, None), (1 / 11, 7 / 11)),
        ((None, None, None), (-6 / 11, 1.0)),
    ],
)
def test_the_value_is_points_met_by_positive_points(
    met: tuple[Any, ...], bounds: tuple[float, float]
) -> None:
    assert points(7, 4, -6).bounds(met) == pytest.approx(bounds)


def test_the_least_value_is_that_of_the_worst_answer() -> None:
    assert (points(7, 4, -6).least, points(1, 1).least) == (pytest.approx(-6 / 11), 0.0)


def test_a_group_counts_with_its_weight_and_the_share_of_its_own_criteria() -> None:
    inner = {"criterion": "style", "weight": 3, "children": ["brief", {"criterion": "kind", "weight": 3}]}
    rubric = rubric_of(inner, {"criterion": "right", "points": 1})
    assert [criterion.text for criterion in rubric.criteria] == ["brief", "kind", "right"]
    assert rubric.bounds((True, False, False))[0] == pytest.approx(3 / 4 * 1 / 4)
    assert rubric.bounds((True, True, True)) == (1.0, 1.0)


def test_a_group_with_negative_weight_is_worst_when_it_is_met() -> None:
    rubric = rubric_of("right", {"weight": -1, "children": ["rude", "false"]})
    assert rubric.bounds((True, None, False)) == (0.5, 1.0)


def test_criteria_are_named_by_their_id_or_number() -> None:
    rubric = rubric_of("a", {"criterion": "b", "id": "dose"}, {"criterion": "c", "id": 7})
    assert [(one.id, one.has_own_id) for one in rubric.criteria] == [
        ("1", False),
        ("dose", True),
        ("7", True),
    ]


def test_a_repeated_id_names_only_the_first_criterion() -> None:
    rubric, problems = read_rubric([{"criterion": "a", "id": "x"}, {"criterion": "b", "id": "x"}])
    assert rubric is not None
    assert [criterion.id for criterion in rubric.criteria] == ["x", "x (2)"]
    assert [problem.code for problem in problems] == ["rubric.duplicate"]


@pytest.mark.parametrize(
    "unreadable",
    ["Be brief", 3, {}, [], [" "], [{"criterion": "a", "points": "2"}], [{"criterion": "a", "points": 0}]],
)
def test_a_rubric_without_clear_criteria_and_points_is_not_read(unreadable: Any) -> None:
    assert read_rubric(unreadable)[0] is None


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("1. Brief\n2) Kind\n\n", ["Brief", "Kind"]),
        ("- [ ] Brief\n* Kind", ["Brief", "Kind"]),
        ("一句话\n3、准确", ["一句话", "准确"]),
        ("5 mg at most\n3.5 mg at least", ["5 mg at most", "3.5 mg at least"]),
        ('["a", {"criterion": "b"}]', ["a", {"criterion": "b"}]),
        ("[a] is cited", ["[a] is cited"]),
        (" ", []),
    ],
)
def test_a_text_is_a_criterion_a_line_or_its_json(text: str, lines: list[Any]) -> None:
    assert lines_of(text) == lines


@pytest.mark.parametrize(
    ("value", "number"),
    [("5", 5), ("-2.5", -2.5), ("+3 points", 3), ("4 分", 4), ("many", None), (5, None), ("", None)],
)
def test_points_written_as_text_are_numbers(value: Any, number: float | None) -> None:
    assert points_in(value) == number
