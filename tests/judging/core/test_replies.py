import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasets.core.kinds import COMPARISON, SCORE
from judging.core.reading.gives import Gives
from judging.core.reading.thinking import without_thinking
from judging.core.replies import (
    Parsed,
    ParserError,
    combine_orders,
    is_flip,
    make_parser,
    turned_back,
    with_sides_swapped,
)
from judging.core.values import Value


def parse_score(content: str, low: float, high: float) -> Parsed:
    return make_parser("score", Gives(SCORE, "", low, high)).read(content, None)


def parse_comparison(content: str) -> Parsed:
    return make_parser("comparison", Gives(COMPARISON)).read(content, None)


def score(content: str, low: float = 1, high: float = 10) -> Value | None:
    """The parsed score, or the reason if there is none."""
    parsed = parse_score(content, low, high)
    return parsed.reason if parsed.value is None else parsed.value


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("评分:[[7]]", 7),
        ("Score: [[7]]", 7),
        ("[[3]] or rather [[8]]", "ambiguous"),
        ("[[ 8 ]]", 8),
        ("[[\n8\u3000]]", 8),
        ("[[８]]", 8),
        ("［［８．５］］", 8.5),
        ("[[7.5]]", 7.5),
        ("[[+7]]", 7),
        ("[[-3]]", "out_of_range"),
        ("评分：**[[8]]**", 8),
        ("[[8]] and [[good]]", 8),
        ("[[8/10]]", 8),
        ("总评分：[[8]]", 8),
        ("总分：[[9]]", 9),
        ("满分：[[9]]", 9),
        ("共 [[9]] 分", 9),
        ("[[8]]分制", 8),
        ("[[8]]之间", 8),
        ("满分10分，总分：[[9]]", 9),
        ("评分：6，总分：[[9]]", 9),
    ],
)
def test_the_number_in_double_brackets_is_the_score(content: str, expected: object) -> None:
    assert score(content) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"score": 8}', 8),
        ('{"rating": 8.5, "why": "x"}', 8.5),
        ('{"评分": 8}', 8),
        ('{"得分": "８"}', 8),
        ('{"Score": 8}', 8),
        ('```json\n{"score": 8}\n```', 8),
        ('```\n{"score": 8}```', 8),
        ('\n  {"score": 8}  \n', 8),
        ('<think>{"score": 2}</think>{"score": 8}', 8),
        ('{"score": 11}', "out_of_range"),
        ('{"score": 1e999}', "out_of_range"),
        ('{"score": true}', "nothing_offered"),
        ('{"score": null, "rating": 6}', 6),
        ('{"score": NaN}', "nothing_offered"),
        ('{"points": 8}', 8),
        ("[8]", 8),
        ('{"a":' * 100_000, "nothing_offered"),
    ],
)
def test_a_reply_that_is_one_json_object_is_read(content: str, expected: object) -> None:
    assert score(content) == expected


@pytest.mark.parametrize(
    "label", ["评分", "得分", "分数", "打分", "score", "Score", "RATING", "Overall rating"]
)
@pytest.mark.parametrize("mark", [":", "：", "=", "为", " : ", " = ", "为："])
def test_a_labelled_number_is_read(label: str, mark: str) -> None:
    assert score(f"{label}{mark}8") == 8


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("**评分**：**8**", 8),
        ("**Score: 8**", 8),
        ("__Rating__: 8", 8),
        ("评分：８．５", 8.5),
        ("Score: 8.", 8),
        ("Score: -2", "out_of_range"),
        ("评分：3，修改后评分：9", "ambiguous"),
        ("评分：10分制", "nothing_offered"),
        ("打分：5分钟", "nothing_offered"),
        ("打分：10.5分钟", "nothing_offered"),
        ("评分：8，打分：5分钟", 8),
        ("总评分：8（满分10分）", 8),
        ("underscore: 8", "nothing_offered"),
        ("Score (of 10) 8", "nothing_offered"),
        ("评分：[8]", 8),
        ("评分:【8】", 8),
        ("评分：【【8】】", 8),
        ("**评分**：**【 8.5 】**", 8.5),
        ("Score: [ +7 ]", 7),
        ("Score: [８]", 8),
        ("Rating = [-2]", "out_of_range"),
        ("得分为【9】，满分【10】", 9),
        ("评分：[3]，修改后评分：【9】", "ambiguous"),
        ("评分：【10】分制", "nothing_offered"),
        ("评分：[8/10]", 8),
        ("评分：[8", "nothing_offered"),
    ],
)
def test_a_label_may_be_bold(content: str, expected: object) -> None:
    assert score(content) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("我给 8 分。", 8),
        ("８分", 8),
        ("得 **8** 分", 8),
        ("8.5分", 8.5),
        ("I give it 8/10.", 8),
        ("8 / 10", 8),
        ("7.5/10分", 7.5),
        ("8分/10分", 8),
        ("先给6分，最后给9分", 9),
        ("满分10分", "nothing_offered"),
        ("满分为 10 分", "nothing_offered"),
        ("满分：10分", "nothing_offered"),
        ("共10分", "nothing_offered"),
        ("总分10分", "nothing_offered"),
        ("得8分，共10分", 8),
        ("满分10分，得8分", 8),
        ("10分制", "nothing_offered"),
        ("用了5分钟", "nothing_offered"),
        ("3分之一", "nothing_offered"),
        ("3/4 of it is right", "nothing_offered"),
        ("2024/10/5", "nothing_offered"),
        ("得12分", "out_of_range"),
    ],
)
def test_a_number_with_its_unit_is_read(content: str, expected: object) -> None:
    assert score(content) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("8", 8),
        (" \n８\n", 8),
        ("**8**", 8),
        ("**8.5**", 8.5),
        ("8.", 8),
        ("8。", 8),
        ("**8**。", 8),
        ("**8.**", 8),
        ("__8__", 8),
        ("8.0", 8.0),
        ("+8", 8),
        ("-8", "out_of_range"),
        ("11", "out_of_range"),
        ("<think>3</think>8", 8),
        ("8..", "nothing_offered"),
        ("8!", "nothing_offered"),
        ("8 9", "nothing_offered"),
        ("[8]", 8),
        ("【8】", 8),
        ("about 8", "nothing_offered"),
        ("**", "nothing_offered"),
    ],
)
def test_a_reply_that_is_only_a_number_is_the_score(content: str, expected: object) -> None:
    assert score(content) == expected


def test_n_of_max_is_of_this_scale() -> None:
    assert (score("3/5", 1, 5), score("3/5", 1, 10)) == (3, "other_scale")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Score: 3\n[[8]]", 8),
        ("[[8]]\nScore: 3", 8),
        ('{"score": 8, "why": "Rating: 3"}', 8),
        ('{"score": 8, "why": "[[3]]"}', 8),
        ("评分：8，不是3分", 8),
    ],
)
def test_the_first_kind_that_offers_something_decides(content: str, expected: int) -> None:
    assert score(content) == expected


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[[7]] [[11]]", "ambiguous"),
        ("Score: 7\n[[0]]", "out_of_range"),
        ('{"score": 0, "rating": 7}', "ambiguous"),
        ("Score: 7, Score: 70", "ambiguous"),
        ("7分 70分", "nothing_offered"),
    ],
)
def test_out_of_range_takes_no_other_number(content: str, reason: str) -> None:
    assert score(content) == reason


def test_the_bounds_belong_to_the_scale() -> None:
    assert (score("[[0]]", 0, 1), score("[[1]]", 0, 1), score("[[-1]]", -1, 1)) == (0, 1, -1)


def test_integers_stay_integers_and_decimals_floats() -> None:
    assert [type(score(content)) for content in ("[[8]]", "[[8.0]]")] == [int, float]


@pytest.mark.parametrize(
    "content", ["", "  \n", "<think>[[7]]</think>", "<think>[[7]]", "hm [[7]]</think>\n"]
)
def test_a_reply_that_says_nothing_is_empty(content: str) -> None:
    assert score(content) == "empty"


def test_a_reply_without_verdict_offers_nothing() -> None:
    assert parse_score("很好。", 1, 10) == Parsed(None, "nothing_offered")


@pytest.mark.parametrize(
    ("content", "left"),
    [
        ("<think>a</think>b", "b"),
        ("<THINK>a</Think>b", "b"),
        ("a<think>b</think>c<think>d</think>e", "ace"),
        ("<think>a<think>b</think>c</think>d", "d"),
        ("thinking</think>b", "b"),
        ("a\n<think>b", "a\n"),
        ("has a <think> tag. [[7]]", "has a <think> tag. [[7]]"),
        ("no tags", "no tags"),
    ],
)
def test_thinking_is_left_out(content: str, left: str) -> None:
    assert without_thinking(content) == left


def test_the_words_that_were_read_are_kept() -> None:
    assert parse_score("Well. Score: 8.", 1, 10).evidence == "Score: 8"


@given(st.text(alphabet='[]<>think/0189.分满评:{}"*- ', max_size=60))
def test_no_reply_breaks_the_reading(content: str) -> None:
    parsed = parse_score(content, 1, 10)
    assert (parsed.value is None) == bool(parsed.reason)


@given(st.integers(1, 10), st.text(max_size=30))
def test_a_verdict_at_the_end_is_read_whatever_comes_before(value: int, before: str) -> None:
    assert score(f"{before}\n评分:[[{value}]]") == value


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ("[[A>>B]]", 1),
        ("[[A>B]]", 2),
        ("[[A=B]]", 3),
        ("[[B>A]]", 4),
        ("[[B>>A]]", 5),
        ("At first [[A>>B]], but on reflection [[B>A]]", 4),
        ("[[ A > B ]]", 2),
        ("［［Ａ＝Ｂ］］", 3),
        ("<think>[[A>B]]</think>[[B>A]]", 4),
    ],
)
def test_the_verdict_of_a_comparison_is_read(content: str, value: int) -> None:
    assert parse_comparison(content).value == value


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("A or B", "nothing_offered"),
        ("[[B=A]]", "unknown_label"),
        ("<think>[[A>B]]", "empty"),
        ("[[A>>B]], no: [[B>A]]", "ambiguous"),
    ],
)
def test_a_comparison_without_verdict_has_a_reason(content: str, reason: str) -> None:
    assert (parse_comparison(content).value, parse_comparison(content).reason) == (None, reason)


@pytest.mark.parametrize(
    ("first", "second", "combined"),
    [
        (1, 1, 1),
        (1, 2, 2),
        (2, 1, 2),
        (4, 5, 4),
        (5, 5, 5),
        (1, 5, 3),
        (2, 4, 3),
        (3, 3, 3),
        (1, 3, 3),
        (3, 5, 3),
    ],
)
def test_two_orders_make_one_verdict(first: int, second: int, combined: int) -> None:
    assert combine_orders(first, second) == combined


def test_the_two_sides_are_exchanged_for_any_template() -> None:
    data, response = {"ref_answer": None, "gt": "r", "q": 1}, {"content": "a", "extra": 2}
    swapped = {"ref_answer": "a", "gt": "a", "q": 1}, {"content": "r", "extra": 2}
    assert with_sides_swapped(data, response) == swapped


@pytest.mark.parametrize(
    ("reference", "content"), [(None, "a"), ("", "a"), (" ", "a"), ("r", ""), ("r", None)]
)
def test_a_missing_side_cannot_be_exchanged(reference: str | None, content: str | None) -> None:
    assert with_sides_swapped({"ref_answer": reference}, {"content": content}) is None


@pytest.mark.parametrize("reference", [0, False])
def test_zero_and_false_are_sides_of_a_comparison(reference: object) -> None:
    swapped = with_sides_swapped({"ref_answer": reference, "gt": "other"}, {"content": "a"})
    assert swapped == ({"ref_answer": "a", "gt": "a"}, {"content": reference})


def test_a_swapped_verdict_is_turned_back() -> None:
    assert [turned_back(value) for value in (1, 2, 3, 4, 5)] == [5, 4, 3, 2, 1]


def test_a_flip_is_a_change_of_sides() -> None:
    assert [is_flip(1, 5), is_flip(2, 4), is_flip(1, 2), is_flip(3, 5)] == [True, True, False, False]


def test_the_named_parsers_read_as_their_functions() -> None:
    assert make_parser("score", Gives(SCORE)).read("[[7]]", None).value == 7
    assert make_parser("comparison", Gives(COMPARISON)).read("[[A>B]]", None).value == 2


@pytest.mark.parametrize(
    ("path", "reply", "expected"),
    [
        ("a.b", {"a": {"b": 7}}, 7),
        ("a.1", {"a": [5, 6]}, 6),
        ("score", {"score": "7.5"}, 7.5),
        ("a", {"a": 70}, "out_of_range"),
        ("a.b", {"a": 7}, "nothing_offered"),
        ("a", {"a": True}, "nothing_offered"),
    ],
)
def test_a_json_path_leads_to_the_score(path: str, reply: object, expected: object) -> None:
    parsed = make_parser({"json_path": path}, Gives(SCORE)).read(f"```json\n{json.dumps(reply)}\n```", None)
    assert (parsed.value or parsed.reason) == expected


def found_by(pattern: str, content: str) -> Value | None:
    """Result of the parser's sandbox script, run in this process with a harmless pattern."""
    parser = make_parser({"regex": pattern}, Gives(SCORE))
    module: dict[str, object] = {}
    exec(parser.sandbox_script, module)
    returned = module["preprocess"](None, {"content": parser.readable(content)})  # type: ignore[operator]
    parsed = parser.conclude(returned)
    return parsed.reason if parsed.value is None else parsed.value


@pytest.mark.parametrize(
    ("pattern", "content", "expected"),
    [
        (r"grade (\d+)", "grade 3, then grade 8", 8),
        (r"\d+", "5 and 6", 6),
        (r"(?:a(\d)|b(\d))", "b4", 4),
        (r"grade (\d+)", "<think>grade 3</think>none", "nothing_offered"),
        (r"grade (\w+)", "grade good", "nothing_offered"),
        (r"grade (\d+)", "grade 80", "out_of_range"),
        ("'\"\\\\n(\\d)", "'\"\\n7", 7),
    ],
)
def test_a_regular_expression_gives_its_last_match(pattern: str, content: str, expected: object) -> None:
    assert found_by(pattern, content) == expected


def test_a_regular_expression_never_runs_here() -> None:
    with pytest.raises(TypeError):
        make_parser({"regex": "(a+)+$"}, Gives(SCORE)).read("aaaa", None)


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ("other", "unknown_parser"),
        ({}, "unknown_parser"),
        ({"regex": "a", "json_path": "b"}, "unknown_parser"),
        ({"regex": "("}, "bad_regex"),
        ({"regex": ""}, "bad_regex"),
        ({"regex": "a" * 3000}, "bad_regex"),
        ({"json_path": "a..b"}, "bad_json_path"),
        ({"json_path": ""}, "bad_json_path"),
    ],
)
def test_a_parser_that_cannot_be_is_refused(spec: str | dict[str, str], code: str) -> None:
    with pytest.raises(ParserError) as caught:
        make_parser(spec, Gives(SCORE))
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("gives", "match", "value", "reason"),
    [
        (Gives("pass_fail"), "PASS", True, ""),
        (Gives("pass_fail"), "不通过", False, ""),
        (Gives("category", labels=("good", "bad")), "Good", "good", ""),
        (Gives("category", labels=("good", "bad")), "fine", None, "unknown_label"),
        (Gives("comparison"), "A>B", 2, ""),
        (Gives("score", whole=True), "7.5", None, "not_whole"),
        (Gives("pass_fail"), "", None, "nothing_offered"),
    ],
)
def test_a_matched_text_is_read_as_the_metric_s_kind(
    gives: Gives, match: str, value: object, reason: str
) -> None:
    parsed = make_parser({"regex": "x(.*)"}, gives).conclude(match)
    assert (parsed.value, parsed.reason) == (value, reason)


def test_a_json_path_may_lead_to_true_or_a_label() -> None:
    parser = make_parser({"json_path": "a.b"}, Gives("pass_fail"))
    assert parser.read('{"a": {"b": true}}', None).value is True
    assert parser.read('{"a": {"b": "fail"}}', None).value is False
    assert parser.read('{"a": {"b": 1}}', None).value is None
