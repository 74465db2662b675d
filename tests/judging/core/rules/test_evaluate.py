from typing import Any

import pytest

from judging.core.rules.evaluate import LineError, conclude, needs_answers, plan
from judging.core.rules.functions import aggregate
from judging.core.rules.program import Reason, Scored
from tests.judging.core.rules.programs import planned, program, result, scores, with_lines

RULE = "\n<规则1>\n相近得 5 分\n</规则1>"


@pytest.mark.parametrize(
    ("name", "scores", "score"),
    [
        ("min", [5, 1, 3], 1),
        ("max", [5, 1, 3], 5),
        ("mean", [5, 1, 3, 3], 3),
        ("median", [5, 1, 5], 5),
        ("median", [5, 1, 2, 4], 3),
        ("mode", [5, 1, 5], 5),
        ("mode", [5, 1, 5, 1, 3], 1),
        ("mode", [5, 5.0, 1, 1, 5], 5),
        ("mean", [1.1, 1.1, 1.1], 1.1),
        ("mean", [1.8179109980644692] * 37, 1.8179109980644692),  # with rounding, sum / 37 is less
    ],
)
def test_aggregates(name: str, scores: list[float], score: float) -> None:
    assert aggregate(name, scores) == score


def test_an_answer_without_the_format_scores_1_and_has_no_lines() -> None:
    reported = result(with_lines("a:精确匹配", aggregate="max"), "not JSON", "not JSON either")
    assert (reported.score, reported.format_ok, reported.lines, reported.error) == (1, False, (), None)


FORGIVEN = ['{"a": [1, 2,],}', '// the year\n{"a": [1, 2]} // done', '{"a": [1, /* or 3 */ 2]\n,}']


@pytest.mark.parametrize("reference", FORGIVEN)
def test_a_json_reference_is_forgiven_trailing_commas_and_comments(reference: str) -> None:
    (line,) = result(with_lines("a:精确匹配"), '{"a": [1, 2]}', reference).lines
    assert (line.score, line.reason) == (5, Reason("equal", {"forgiven": "yes"}))


@pytest.mark.parametrize("answer", FORGIVEN)
def test_an_answer_is_never_forgiven(answer: str) -> None:
    assert result(with_lines("a:精确匹配"), answer, '{"a": [1, 2]}').format_ok is False


def test_comments_and_commas_inside_texts_stay() -> None:
    reference = '{"a": "http://x/,] // y", "b": 1,}'
    assert scores(with_lines("a:精确匹配"), '{"a": "http://x/,] // y"}', reference) == [5]


def test_a_reference_with_another_fault_keeps_its_place() -> None:
    (line,) = result(with_lines("a:精确匹配"), '{"a": 1}', '{"a": 1,}\n{"a": 2}').lines
    assert (line.reason.code, line.reason.params["problem"]) == ("reference.format", "trailing_comma")


def test_a_line_whose_result_comes_later_says_so_too() -> None:
    evaluation = planned(with_lines("a:自然语言规则:规则1") + RULE, '{"a": 1}', '{"a": 1,}')
    (line,) = conclude(evaluation, {0: Scored(4, Reason("judge_said", {"said": "close"}))}).lines
    assert line.reason == Reason("judge_said", {"said": "close", "forgiven": "yes"})


@pytest.mark.parametrize(
    ("answer", "reference", "code"),
    [
        ("<content><a>1</a></content>", "<a>1</a>", "field_missing"),
        ("<a>1</a>", "<content><a>1</a></content>", "reference.field_missing"),
    ],
)
def test_a_field_inside_an_xml_root_names_the_root(answer: str, reference: str, code: str) -> None:
    (line,) = result(with_lines("a:exact_match", form="XML"), answer, reference).lines
    reason = {"name": "a", "why": "root", "root": "content", "format": "@format"}
    assert line.reason == Reason(code, reason)


@pytest.mark.parametrize("answer", ["<b>1</b>", "<content><b>1</b></content>", "<c/><content><a/></content>"])
def test_a_field_that_is_nowhere_names_no_root(answer: str) -> None:
    (line,) = result(with_lines("a:精确匹配", form="XML"), answer, "<a>1</a>").lines
    assert line.reason == Reason("field_missing", {"name": "a"})


@pytest.mark.parametrize(
    ("word", "name"),
    [("平均数", "mean"), ("最小值", "min"), ("最大值", "max"), ("中位数", "median"), ("众数", "mode")],
)
def test_aggregates_have_chinese_names(word: str, name: str) -> None:
    assert program(with_lines("a:精确匹配", aggregate=word)).aggregate == name


def test_a_passed_format_adds_nothing_to_the_aggregate() -> None:
    assert result(with_lines("a:常量等于:x"), '{"a": "y"}', None).score == 1


def test_a_field_that_the_answer_lacks_scores_1_on_each_of_its_lines() -> None:
    reported = result(
        with_lines("a:精确匹配", "a:常量不等于:x", "b:精确匹配"), '{"b": 1}', '{"a": 1, "b": 1}'
    )
    assert [line.score for line in reported.lines] == [1, 1, 5]
    assert reported.lines[0].reason == Reason("field_missing", {"name": "a"})


def test_a_null_field_is_there() -> None:
    assert scores(with_lines("a:精确匹配"), '{"a": null}', '{"a": null}') == [5]


def test_judges_and_code_are_not_asked_about_a_field_that_the_answer_lacks() -> None:
    code = "\n<代码1>\ndef f(ref_answer, model_answer): return 5\n</代码1>"
    text = with_lines("a:模糊匹配", "a:rule:规则1", "a:python:代码1") + RULE + code
    evaluation = planned(text, "{}", '{"a": 1}')
    assert (evaluation.questions, evaluation.calls) == ((), ())
    assert conclude(evaluation, {}).score == 1


@pytest.mark.parametrize("function", ["精确匹配", "模糊匹配", "精确存在于", "精确全包括", "rule:规则1"])
@pytest.mark.parametrize("answer", ['{"a": 1}', "{}"])
def test_a_field_that_the_reference_lacks_is_an_error_of_the_row(function: str, answer: str) -> None:
    reported = result(with_lines("b:常量等于:x", f"a:{function}") + RULE, answer, '{"b": 1}')
    assert reported.score is None
    assert reported.error == LineError("reference.field_missing", 3, {"name": "a", "why": "lacks"})


@pytest.mark.parametrize("line", ["a:字数限制:3", "a:常量等于:x", "a:精确存在于:xy", "a:格式限制:text"])
@pytest.mark.parametrize("reference", ["{}", "no JSON", None, 3])
def test_a_line_that_needs_no_reference_does_not_look_at_it(line: str, reference: Any) -> None:
    assert result(with_lines(line), '{"a": "x"}', reference).score == 5


@pytest.mark.parametrize("reference", ["no JSON", "[1]", '{"a": 1, "a": 1}', "", 3, ["x"], [[[]]]])
def test_a_reference_without_the_format_is_an_error_of_the_row(reference: Any) -> None:
    reported = result(with_lines("a:精确匹配"), '{"a": 1}', reference)
    assert reported.error is not None
    assert (reported.score, reported.format_ok, reported.error.code, reported.error.line) == (
        None,
        True,
        "reference.format",
        2,
    )


def test_a_row_without_a_reference_is_an_error_where_a_line_needs_one() -> None:
    reported = result(with_lines("@单个字段:精确匹配", form="字符串"), "x", None)
    assert reported.error == LineError("reference.field_missing", 2, {"name": "@单个字段", "why": "none"})


@pytest.mark.parametrize("reference", ['{"a": 1.0}', {"a": 1}, {"a": 1.0, "b": [True]}])
def test_a_reference_may_be_text_or_a_json_value(reference: Any) -> None:
    assert scores(with_lines("a:精确匹配"), '{"a": 1}', reference) == [5]


def test_a_reference_value_may_not_nest_too_deeply() -> None:
    deep: Any = 1
    for _ in range(150):
        deep = [deep]
    error = result(with_lines("a:精确匹配"), '{"a": 1}', {"a": deep}).error
    assert error is not None
    assert error.params["why"] == "too_deep"


def test_a_reference_value_is_text_where_the_format_is_text() -> None:
    text = with_lines("@whole:精确匹配", form="text")
    assert result(text, '{"答": [1, true]}', {"答": [1, True]}).score == 5


def test_all_fields_are_the_references_in_its_order() -> None:
    reported = result(
        with_lines("@全部字段:精确匹配"), '{"x": 9, "a": 1, "b": 2}', '{"b": 2, "a": 0, "c": 3}'
    )
    assert [(line.name, line.score) for line in reported.lines] == [("b", 5), ("a", 1), ("c", 1)]


def test_all_fields_may_be_next_to_named_ones() -> None:
    text = with_lines("a:字数限制:1", "@all:精确匹配", "d:常量等于:x")
    reported = result(text, '{"a": "aa", "b": 1, "d": "x"}', '{"a": "aa", "b": 1}')
    assert [(line.name, line.score) for line in reported.lines] == [("a", 1), ("a", 5), ("b", 5), ("d", 5)]


def test_all_fields_need_a_reference_with_fields() -> None:
    errors = [
        result(with_lines("@all:字数限制:3"), '{"a": 1}', reference).error for reference in ("{}", "x", None)
    ]
    assert [error and error.code for error in errors] == [
        "reference.field_missing",
        "reference.format",
        "reference.field_missing",
    ]


@pytest.mark.parametrize(
    ("name", "found"),
    [("a.b[0]", 5), ("a.b[1].c", 5), ("a.b[2]", 1), ("a.b.0", 1), ("a.x", 1), ("d[0][1]", 5), ("a.b[-1]", 1)],
)
def test_json_fields_are_reached_by_dots_and_indices(name: str, found: int) -> None:
    answer = '{"a": {"b": [7, {"c": 7}]}, "d": [[0, 7]]}'
    assert scores(with_lines(f"{name}:常量等于:7"), answer, None) == [found]


def test_a_field_of_that_very_name_comes_first() -> None:
    assert scores(with_lines("a.b:常量等于:7"), '{"a": {"b": 1}, "a.b": 7}', None) == [5]


def test_xml_names_are_taken_as_they_are() -> None:
    text = with_lines("a.b:常量等于:7", "c:常量等于:7", form="XML")
    assert scores(text, "<a.b>7</a.b><c><d>7</d></c>", None) == [5, 5]


@pytest.mark.parametrize(
    ("answer", "reference", "score"),
    [
        ("<a><b>x</b><c>y</c></a>", "<a><b>x</b><c>y</c></a>", 5),
        ("<a>\n  <b> x </b>\n  <c>y</c>\n</a>", "<a><b>x</b><c>y</c></a>", 5),
        ("<a><b k='1'>x</b></a>", "<a><b>x</b></a>", 5),
        ("<a><b><!-- --><![CDATA[x]]></b></a>", "<a><b>x</b></a>", 5),
        ("<a>1<b>x</b>2</a>", "<a>1<b>x</b>2</a>", 5),
        ("<a><b>x</b><d>y</d></a>", "<a><b>x</b><c>y</c></a>", 1),
        ("<a><c>y</c><b>x</b></a>", "<a><b>x</b><c>y</c></a>", 1),
        ("<a><b>xy</b></a>", "<a><b>x</b><b>y</b></a>", 1),
        ("<a><b>x</b></a>", "<a>x</a>", 1),
        ("<a>x</a>", "<a><b>x</b></a>", 1),
        ("<a><b/></a>", "<a></a>", 1),
        ("<a><b/></a>", "<a><b></b></a>", 5),
        ("<a><b><c>x</c></b></a>", "<a><b><d>x</d></b></a>", 1),
        ("<a><b>x</b></a><a>z</a>", "<a><b>x</b></a><a>z</a>", 5),
        ("<a><b>x</b></a><a>z</a>", "<a><c>x</c></a><a>z</a>", 1),
    ],
)
def test_xml_elements_with_children_are_equal_by_tags_order_and_texts(
    answer: str, reference: str, score: int
) -> None:
    assert scores(with_lines("a:精确匹配", form="XML"), answer, reference) == [score]


def test_all_text_of_an_xml_element_is_its_value_for_other_functions() -> None:
    text = with_lines("a:常量等于:xy", "a:字数限制:2", "a:精确全包括:xy", form="XML:r")
    assert scores(text, "<r><a><b>x</b><c>y</c></a></r>", None) == [5, 5, 5]


def test_repeated_xml_elements_are_a_list() -> None:
    text = with_lines("a:精确存在于", "a:精确匹配", form="XML")
    assert scores(text, "<a>1</a>", "<a>2</a><a>1</a>") == [5, 1]


def test_an_xml_reference_is_text() -> None:
    error = result(with_lines("a:精确匹配", form="XML"), "<a>1</a>", {"a": "1"}).error
    assert error is not None
    assert error.code == "reference.format"


def test_lines_keep_what_they_looked_at() -> None:
    line = result(with_lines("a:精确匹配"), '{"a": "x"}', '{"a": "y"}').lines[0]
    assert (line.name, line.answer, line.reference, line.reason.code) == ("a", "x", "y", "different")


def test_open_lines_wait_for_their_answers_and_make_the_score_with_the_others() -> None:
    evaluation = planned(with_lines("a:精确匹配", "a:模糊匹配"), '{"a": "x"}', '{"a": "x"}')
    (question,) = evaluation.questions
    reported = conclude(evaluation, {question.line: Scored(2, Reason("judge_said", {"said": "…"}))})
    assert (reported.score, [line.score for line in reported.lines]) == (3.5, [5, 2])


def test_a_line_without_its_answer_makes_the_judgement_an_error() -> None:
    evaluation = planned(with_lines("a:精确匹配", "b:模糊匹配"), '{"a": 1, "b": 2}', '{"a": 1, "b": 2}')
    reported = conclude(evaluation, {1: Reason("nothing_offered")})
    assert (reported.score, reported.lines[0].score) == (None, 5)
    assert reported.error == LineError("nothing_offered", 3, {"name": "b"})


def test_an_error_becomes_the_judgements_outcome_with_its_line() -> None:
    outcome = result(with_lines("a:精确匹配"), '{"a": 1}', "{}").outcome()
    assert (outcome.state, outcome.reason, outcome.detail[:2]) == ("error", "reference.field_missing", "2:")


def test_a_score_becomes_the_judgements_outcome() -> None:
    outcome = result(with_lines("a:精确匹配"), "no JSON", "{}").outcome()
    assert (outcome.state, outcome.value) == ("scored", 1)


def test_nobody_is_asked_where_the_row_has_an_error() -> None:
    text = with_lines("a:模糊匹配", "b:精确匹配")
    assert not needs_answers(planned(text, '{"a": 1}', '{"a": 1}'))
    assert needs_answers(planned(text, '{"a": 1}', '{"a": 1, "b": 1}'))


def test_a_plan_does_not_change_its_program() -> None:
    read = program(with_lines("@all:精确匹配"))
    assert plan(read, '{"a": 1}', '{"a": 1}') == plan(read, '{"a": 1}', '{"a": 1}')
