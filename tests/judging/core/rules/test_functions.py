"""Each mechanical function on the values of one JSON field: (answer, reference, score)."""

import pytest

from judging.core.rules.functions import BY_WORD, FUNCTIONS
from judging.core.rules.program import Reason
from tests.judging.core.rules.programs import one_score, result, scores, with_lines

EQUAL = [
    ('"电影"', '"电影"', 5),
    ('"电影"', '"电影 "', 1),
    ('"é"', '"e\u0301"', 1),
    ("1", "1.0", 5),
    ("100", "1e2", 5),
    ("0.10", "0.1", 5),
    ("-0", "0.0", 5),
    ("1", '"1"', 1),
    ("true", "1", 1),
    ("false", "0", 1),
    ("null", "false", 1),
    ("null", "null", 5),
    ("12345678901234567890123", "12345678901234567890124", 1),
    ("12345678901234567890123", "12345678901234567890123.000", 5),
    ("0.1", "0.1000000000000000055511151231257827", 1),
    ("1e400", "1e401", 1),
    ("1E999999999999", "10e999999999998", 5),
    ('{"a": [1, {"b": true}], "c": null}', '{"c": null, "a": [1.0, {"b": true}]}', 5),
    ('{"a": 1}', '{"a": 1, "b": 2}', 1),
    ("[1, 2]", "[2, 1]", 1),
    ("[true]", "[1]", 1),
    ("[]", "{}", 1),
]
PARTS = [  # part, whole, score
    ('"科幻"', '"一部科幻巨作"', 5),
    ('"喜剧"', '"一部科幻巨作"', 1),
    ('""', '"a"', 5),
    ("[1, 2]", "[3, 2.0, 1]", 5),
    ("[1, 4]", "[3, 2, 1]", 1),
    ("[]", "[1]", 5),
    ('["a"]', '["ab"]', 1),
    ('[{"x": [1]}]', '[{"x": [1.0]}, 2]', 5),
    ('{"a": 1}', '{"a": 1.0, "b": 2}', 5),
    ('{"a": 1}', '{"a": 2, "b": 1}', 1),
    ('{"a": "x"}', '{"a": "xy"}', 1),
    ('"a"', '["a", "b"]', 5),
    ('"a"', '["ab"]', 1),
    ('["a"]', '"a"', 5),
    ('["a", "b"]', '"ab"', 1),
    ('{"a": 1}', '[{"a": 1}]', 5),
    ("1", "1.0", 5),
    ("1", "12", 1),
    ("true", "1", 1),
    ('"1"', "1", 1),
    ("null", "null", 5),
]


@pytest.mark.parametrize(("answer", "reference", "score"), EQUAL)
def test_exact_match_compares_by_value(answer: str, reference: str, score: int) -> None:
    assert one_score("精确匹配", answer, reference) == score
    assert one_score("exact_match", reference, answer) == score


@pytest.mark.parametrize(("part", "whole", "score"), PARTS)
def test_containment_goes_both_ways(part: str, whole: str, score: int) -> None:
    assert one_score("精确存在于", part, whole) == score
    assert one_score("精确全包括", whole, part) == score


@pytest.mark.parametrize(
    ("function", "answer", "score"),
    [
        ("精确存在于:未来科技,情感", '"科技"', 5),
        ("精确存在于:未来科技", '"情感"', 1),
        ("精确存在于:a", '["a"]', 5),
        ("精确存在于:60", "60", 1),
        ("精确全包括:电影", '"电影,动作"', 5),
        ("精确全包括:电影", '["电影", "动作"]', 5),
        ("精确全包括:电影", '"动作"', 1),
    ],
)
def test_an_argument_takes_the_place_of_the_reference(function: str, answer: str, score: int) -> None:
    assert result(with_lines(f"f:{function}"), f'{{"f": {answer}}}', "no JSON").score == score


@pytest.mark.parametrize(
    ("function", "code"),
    [
        ("精确存在于:电影，动作", "part_of_argument"),
        ("精确存在于:书", "not_part_of_argument"),
        ("精确全包括:电", "holds_argument"),
        ("精确全包括:书", "does_not_hold_argument"),
        ("精确存在于", "part_of_reference"),
        ("精确全包括:", "holds_reference"),
    ],
)
def test_the_reason_names_the_argument_that_was_compared_with(function: str, code: str) -> None:
    (line,) = result(with_lines(f"f:{function}"), '{"f": "电影"}', '{"f": "电影"}').lines
    argument = function.partition(":")[2]
    assert line.reason == Reason(code, {"argument": argument} if argument else {})


@pytest.mark.parametrize(
    ("limit", "answer", "score"),
    [
        ("3", '"一二三"', 5),
        ("3", '"一二三四"', 1),
        ("3", '" \\n一二三\\t\u3000"', 5),
        ("(2, 3)", '"一"', 1),
        ("(2, 3)", '"一二"', 5),
        ("1", '"\U0001f600"', 5),
        ("1", '"e\u0301"', 1),
        ("0", '"  "', 5),
        ("4", "true", 5),
        ("3", "null", 1),
        ("4", "1.50", 5),
        ("6", "[1,2]", 5),
        ("5", "[1,2]", 1),
        ("8", '{"a":1}', 5),
    ],
)
def test_length_counts_code_points_of_the_text(limit: str, answer: str, score: int) -> None:
    assert one_score(f"字数限制:{limit}", answer, "null") == score


@pytest.mark.parametrize(
    ("constant", "answer", "score"),
    [
        ("是", '"是"', 5),
        ("是", '"是 "', 1),
        ("true", "true", 5),
        ("true", '"true"', 5),
        ("null", "null", 5),
        ("1.0", "1.0", 5),
        ("1", "1.0", 1),
        ('{"a": [1, "二"]}', '{"a":[1,"\\u4e8c"]}', 5),
    ],
)
def test_constants_are_compared_with_the_fields_text(constant: str, answer: str, score: int) -> None:
    assert one_score(f"常量等于:{constant}", answer, "null") == score
    assert one_score(f"常量不等于:{constant}", answer, "null") == 6 - score


@pytest.mark.parametrize(
    ("form", "answer", "score"),
    [
        ("JSON", '"{\\"a\\": 1}"', 5),
        ("JSON", '{"a": 1}', 5),
        ("JSON", "[1]", 1),
        ("JSON", '"text"', 1),
        ("XML", '"<a>1</a><b/>"', 5),
        ("XML", '"text"', 1),
        ("XML:r", '"<r><a>1</a></r>"', 5),
        ("XML:r", '"<a>1</a>"', 1),
        ("字符串", '"anything"', 5),
        ("text", "null", 5),
    ],
)
def test_a_field_can_have_a_format_of_its_own(form: str, answer: str, score: int) -> None:
    assert one_score(f"格式限制:{form}", answer, "null") == score


def test_the_whole_answer_is_compared_as_text() -> None:
    text = with_lines("@单个字段:精确匹配", "@whole:字数限制:8", "@whole:contained_in")
    assert scores(text, '{"a": 1}', '{"a": 1}') == [5, 5, 5]
    assert scores(text, '{"a": 1}', '{"a":1}') == [1, 5, 1]


def test_the_words_of_the_table_are_distinct() -> None:
    assert len(BY_WORD) == 2 * len(FUNCTIONS)


def test_who_scores_mechanically_has_a_way_to() -> None:
    assert all((function.score is not None) == (function.by == "machine") for function in FUNCTIONS)
