"""The examples of the second seed document, in Chinese and English form, with their results."""

from typing import Any

import pytest

from judging.core.rules.ask import read_reply
from judging.core.rules.check import read_program
from judging.core.rules.evaluate import Result, conclude, plan
from judging.core.rules.program import Reason, Scored
from judging.core.rules.python_blocks import run_code
from judging.core.sandbox.pool import Sandbox
from tests.judging.core.rules.programs import program

LONG = "一部融合了未来科技和人类情感的科幻巨作,充满视觉震撼和深刻反思的暑期档大片"
SHORT = "一部融合了未来科技和人类情感,充满视觉震撼和深刻反思的暑期档科幻大片"
RULE = "模型回答主题和参考答案主题意思接近即可得5分,如主题完全不相同,直接为1分。其它情况根据模型回答相关程度给2-4分。"
JSON_REFERENCE = f'{{"核心标签": "电影", "主题": "{LONG}"}}'
JSON_ANSWER = f'{{"核心标签": "电影", "主题": "{SHORT}"}}'
XML_REFERENCE = f"<核心标签>电影</核心标签>\n<主题>{LONG}</主题>"
XML_ANSWER = f"<核心标签>电影</核心标签>\n<主题>{SHORT}</主题>"

# Chinese form, English form, the scores of the lines (None: the judge model is called).
JSON_EXAMPLES: list[tuple[str, str, list[int | None]]] = [
    (
        "# DSL\n核心标签:精确匹配\n主题:模糊匹配\n主题:字数限制:60\n@聚合方式:min\n@格式限制:JSON",
        "# DSL\n核心标签:exact_match\n主题:fuzzy_match\n主题:length:60\n@aggregate:min\n@format:JSON",
        [5, None, 5],
    ),
    (
        "# DSL\n核心标签:精确匹配\n@聚合方式:mean\n@格式限制:JSON",
        "# DSL\n核心标签:exact_match\n@aggregate:mean\n@format:JSON",
        [5],
    ),
    (
        "# DSL\n主题:模糊匹配\n@聚合方式:mean\n@格式限制:JSON",
        "# DSL\n主题:fuzzy_match\n@aggregate:mean\n@format:JSON",
        [None],
    ),
    (
        "# DSL\n主题:字数限制:60\n@聚合方式:min\n@格式限制:JSON",
        "# DSL\n主题:length:60\n@aggregate:min\n@format:JSON",
        [5],
    ),
    (
        "# DSL\n主题:字数限制:(20, 60)\n@聚合方式:min\n@格式限制:JSON",
        "# DSL\n主题:length:(20, 60)\n@aggregate:min\n@format:JSON",
        [5],
    ),
    (
        "# DSL\n主题:常量等于:喜剧\n@聚合方式:min\n@格式限制:JSON",
        "# DSL\n主题:equals:喜剧\n@aggregate:min\n@format:JSON",
        [1],
    ),
    (
        "# DSL\n主题:常量不等于:科幻\n@聚合方式:min\n@格式限制:JSON",
        "# DSL\n主题:not_equals:科幻\n@aggregate:min\n@format:JSON",
        [5],
    ),
    (
        "# DSL\n主题:精确存在于:未来科技和人类情感\n@聚合方式:min\n@格式限制:JSON",
        "# DSL\n主题:contained_in:未来科技和人类情感\n@aggregate:min\n@format:JSON",
        [1],
    ),
    (
        "# DSL\n核心标签:精确全包括:电影\n@聚合方式:min\n@格式限制:JSON",
        "# DSL\n核心标签:contains:电影\n@aggregate:min\n@format:JSON",
        [5],
    ),
    (
        f"# DSL\n主题:自然语言规则:规则标签1\n@聚合方式:min\n@格式限制:JSON\n<规则标签1>\n{RULE}\n</规则标签1>",
        f"# DSL\n主题:rule:rule1\n@aggregate:min\n@format:JSON\n<rule1>\n{RULE}\n</rule1>",
        [None],
    ),
]
OTHER_EXAMPLES = [
    (
        "# DSL\n@单个字段:模糊匹配\n@聚合方式:min\n@格式限制:字符串",
        "# DSL\n@whole:fuzzy_match\n@aggregate:min\n@format:text",
        f'"核心标签:电影,主题:{SHORT}"',
        f'"核心标签:电影,主题:{LONG}"',
    ),
    (
        "# DSL\n核心标签:精确匹配\n主题:模糊匹配\n主题:字数限制:60\n@聚合方式:min\n@格式限制: JSON",
        "# DSL\n核心标签:exact_match\n主题:fuzzy_match\n主题:length:60\n@aggregate:min\n@format: JSON",
        JSON_ANSWER,
        JSON_REFERENCE,
    ),
    (
        "# DSL\n核心标签:精确匹配\n主题:模糊匹配\n@聚合方式:min\n@格式限制:XML",
        "# DSL\n核心标签:exact_match\n主题:fuzzy_match\n@aggregate:min\n@format:XML",
        XML_ANSWER,
        XML_REFERENCE,
    ),
    (
        "# DSL\n\n核心标签:精确匹配\n主题:模糊匹配\n@聚合方式:min\n@格式限制:XML:content\n",
        "# DSL\n\n核心标签:exact_match\n主题:fuzzy_match\n@aggregate:min\n@format:XML:content\n",
        f"<content>\n{XML_ANSWER}\n</content>",
        f"<content>\n{XML_REFERENCE}\n</content>",
    ),
]
TEMPLATE = """# DSL
字段名1:精确匹配
字段名2:字数限制:5
字段名3:Python代码:代码标签1
字段名4:自然语言规则:规则标签1
字段名5:Python代码:代码标签2
字段名6:自然语言规则:规则标签2
@聚合方式:mode
@格式限制:JSON
<代码标签1>
def compare_function_1(ref_answer, model_answer):
    return 5 if ref_answer == model_answer else 1
</代码标签1>
<规则标签1>
1. 这是一段自然语言评分规则
2. 这段规则可以写多行
</规则标签1>
<代码标签2>
def compare_function_2(model_answer, ref_answer):
    return 5 if int(ref_answer) >= int(model_answer) else 1
</代码标签2>
<规则标签2>
1. 这是另一段自然语言评分规则
2. 这段规则可以写多行
</规则标签2>
"""
IN_ENGLISH = {
    "Python代码": "python",
    "自然语言规则": "rule",
    "代码标签": "code",
    "规则标签": "rule",
    "精确匹配": "exact_match",
    "字数限制": "length",
    "@聚合方式": "@aggregate",
    "@格式限制": "@format",
}


def judged(text: str, answer: str, reference: Any, verdict: int) -> Result:
    """The result if the judge model answers every question with `verdict`."""
    evaluation = plan(program(text), answer, reference)
    found: dict[int, Scored | Reason] = {
        question.line: read_reply(f"Score: [[{verdict}]]") for question in evaluation.questions
    }
    return conclude(evaluation, found)


def in_english(text: str) -> str:
    for chinese, english in IN_ENGLISH.items():
        text = text.replace(chinese, english)
    return text


@pytest.mark.parametrize(("chinese", "english", "scores"), JSON_EXAMPLES)
def test_a_json_example_scores_the_same_in_both_languages(
    chinese: str, english: str, scores: list[int | None]
) -> None:
    for text in (chinese, english):
        reported = judged(text, JSON_ANSWER, JSON_REFERENCE, 4)
        assert [line.score for line in reported.lines] == [4 if score is None else score for score in scores]


@pytest.mark.parametrize(("chinese", "english", "answer", "reference"), OTHER_EXAMPLES)
def test_the_other_formats_score_the_same_in_both_languages(
    chinese: str, english: str, answer: str, reference: str
) -> None:
    for text in (chinese, english):
        reported = judged(text, answer, reference, 3)
        assert (reported.format_ok, reported.score) == (True, 3)


XML_FORMAT = [
    "# DSL\n核心标签:精确匹配\n@聚合方式:min\n@格式限制:XML",
    "# DSL\n核心标签:exact_match\n@aggregate:min\n@format:XML",
]


@pytest.mark.parametrize("text", XML_FORMAT)
def test_the_example_of_a_format_takes_xml_and_nothing_else(text: str) -> None:
    assert judged(text, XML_ANSWER, XML_REFERENCE, 3).score == 5
    refused = judged(text, JSON_ANSWER, XML_REFERENCE, 3)
    assert (refused.format_ok, refused.score, refused.lines) == (False, 1, ())


CHINESE = "# DSL\n{}:精确匹配\n@聚合方式:{}\n@格式限制:JSON"
ENGLISH = "# DSL\n{}:exact_match\n@aggregate:{}\n@format:JSON"
BY_AGGREGATE = {"min": 1, "max": 5, "mean": 3, "median": 3, "mode": 1}


@pytest.mark.parametrize(("aggregate", "score"), BY_AGGREGATE.items())
def test_every_aggregate_that_the_seed_names_is_taken_over_all_fields(aggregate: str, score: int) -> None:
    for text in (CHINESE.format("@全部字段", aggregate), ENGLISH.format("@all", aggregate)):
        assert judged(text, JSON_ANSWER, JSON_REFERENCE, 3).score == score


@pytest.mark.parametrize("aggregate", BY_AGGREGATE)
def test_the_whole_answer_is_one_score_whatever_the_aggregate(aggregate: str) -> None:
    for text in (CHINESE.format("@单个字段", aggregate), ENGLISH.format("@whole", aggregate)):
        assert judged(text, JSON_ANSWER, JSON_ANSWER, 3).score == 5


def test_the_first_example_takes_the_lowest_of_its_lines() -> None:
    assert judged(JSON_EXAMPLES[0][0], JSON_ANSWER, JSON_REFERENCE, 2).score == 2


@pytest.mark.parametrize("text", [TEMPLATE, in_english(TEMPLATE)])
def test_the_template_of_the_seed_runs_with_all_its_blocks(text: str, sandbox: Sandbox) -> None:
    answer = (
        '{"字段名1": "a", "字段名2": "abc", "字段名3": "x", "字段名4": "b", "字段名5": "7", "字段名6": "c"}'
    )
    reference = '{"字段名1": "a", "字段名3": "y", "字段名4": "b", "字段名5": "6", "字段名6": "c"}'
    evaluation = plan(program(text), answer, reference)
    found = {call.line: run_code(sandbox, call.code, [call])[0] for call in evaluation.calls}
    found |= {question.line: read_reply("评分:[[2]]") for question in evaluation.questions}
    reported = conclude(evaluation, found)
    assert ([line.score for line in reported.lines], reported.score) == ([5, 5, 1, 2, 1, 2], 1)


def test_the_two_forms_of_the_template_differ_in_their_words_only() -> None:
    chinese, english = read_program(TEMPLATE).program, read_program(in_english(TEMPLATE)).program
    assert chinese is not None
    assert english is not None
    assert [rule.function for rule in chinese.rules] == [rule.function for rule in english.rules]
