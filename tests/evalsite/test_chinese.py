"""The Chinese texts keep to the terms and the punctuation of docs/translating.md."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.utils import translation
from django.utils.translation import pgettext

ROOT = Path(__file__).parents[2]
PARTS = ROOT / "evalsite" / "locale" / "zh_Hans" / "parts"
PAGES = [*sorted((ROOT / "docs").rglob("*.zh.md")), ROOT / "README.zh.md"]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
HAN = r"[\u4e00-\u9fff]"

FORBIDDEN = {
    "您": "你",
    "数据集": "评测集",
    "评判": "打分，判定",
    "候选模型": "待测模型",
    "标旗": "标记",
    "旗标": "标记",
    "评级分": "等级分",
    "是否想写": "是不是要写",
    "工作进程": "后台进程",
    "模型端点": "接口",
    "规则程序": "评分 DSL",
    "打分规则": "评分 DSL",
    "提示词模板": "打分 Prompt",
    "条评分中": "正在评分",
    "评分指南": "评分说明",
    "审计日志": "操作日志",
    "复核员": "审核员",
    "评测详情": "打分结果",
    "重新解析分数": "重新解析回复",
    "再次提问": "再次调用裁判",
    "量程": "分值范围",
    "尺度": "量表",
    "试跑": "试运行",
    "试算": "试运行",
    "任何数字": "统计",
    "%(n)s 个回答": "%(n)s 条回答",
}
"""What reads as translated or has another name here, and what to write instead."""

TERMS = {
    r"\bfindings?\b": "发现|校验",
    r"\bendpoints?\b": "接口|连接",
    r"\bdata sets?\b": "评测集",
    r"\bmetrics?\b": "指标",
    r"\bhuman evaluations?\b": "人工评测",
    r"\bjudge models?\b": "裁判",
    r"\bcandidates?\b": "待测模型|模型|基线|candidate",
    r"\breference answers?\b": "参考答案",
    r"\b(?<!def )preprocess\b(?!\()": "前处理",
    r"\b(?<!def )postprocess\b(?!\()": "后处理",
    r"\bverdicts?\b": "判定|verdict",
    r"\bre-?judg": "重新打分",
}
"""A word of the English text → what its translation holds."""

QUOTED = re.compile(r"“[^”]*”|%\(\w+\)s|\{[\w, ]*\}|<[^>]+>|\b\w+_\w+\b|\w+=\w+(?:,[\w:]+=\w+)?|/\w+\b")
"""What isn't prose: quotations, placeholders, tags, names, paths."""


def translations() -> Iterator[tuple[str, str]]:
    """(English, Chinese) of every text, without the context."""
    for path in sorted(PARTS.glob("*.json")):
        for key, value in json.loads(path.read_text()).items():
            for form in [value] if isinstance(value, str) else value:
                yield key.split("\x04")[-1], form


def texts() -> Iterator[str]:
    """Every Chinese text: the catalogue's, and the lines of the documentation."""
    yield from (chinese for _english, chinese in translations())
    for page in PAGES:
        yield from page.read_text().splitlines()


def wrong(is_wrong: Callable[[str, str], object]) -> list[tuple[str, str]]:
    return [pair for pair in translations() if is_wrong(*pair)]


@pytest.mark.parametrize("word", FORBIDDEN)
def test_a_word_that_reads_as_translated_is_not_used(word: str) -> None:
    assert [text for text in texts() if word in text] == [], f"write {FORBIDDEN[word]}"


@pytest.mark.parametrize("word", TERMS)
def test_a_term_has_one_translation(word: str) -> None:
    english, chinese = re.compile(word, re.IGNORECASE), re.compile(TERMS[word])
    assert wrong(lambda text, form: english.search(QUOTED.sub("", text)) and not chinese.search(form)) == []


def test_quotation_marks_have_no_blanks_around_them() -> None:
    beside = re.compile(r"(?<=[\w”，。：；、）]) [“‘]|[”’] (?=[\w“‘（])")
    assert [text for text in texts() if beside.search(text) and re.search(HAN, text)] == []


def test_quotation_marks_are_curly() -> None:
    assert wrong(lambda _text, form: re.search(f'"{HAN}|{HAN}"', form)) == []


def test_punctuation_between_chinese_characters_is_full_width() -> None:
    beside = re.compile(rf"{HAN}[,;!?]|{HAN}:(?!{HAN}|%|\s)|{HAN}\(|\){HAN}|{HAN}\.(?:\s|$)")
    assert wrong(lambda _text, form: beside.search(QUOTED.sub("", form))) == []


def test_a_blank_parts_chinese_characters_from_latin_ones() -> None:
    beside = re.compile(rf"{HAN}[A-Za-z0-9]|[A-Za-z0-9]{HAN}")
    assert (
        wrong(lambda _text, form: beside.search(re.sub(r"</?\w+>|%\(\w+\)s|%%|@", "", QUOTED.sub("", form))))
        == []
    )


def test_what_follows_in_time_is_written_with_six_points() -> None:
    assert wrong(lambda text, form: re.search("^(?:正在|加载|等待).*[^…]…$", form)) == []


def test_a_question_is_a_question_and_never_a_finding() -> None:
    asked = re.compile("question|prompt", re.IGNORECASE)
    assert wrong(lambda text, form: "问题" in form and not asked.search(text)) == []


@pytest.mark.parametrize(
    ("context", "english", "chinese"),
    [("link", "open", "有效"), ("finding", "error", "错误"), ("finding", "warning", "警告")],
)
def test_states_of_links_and_severities_have_their_own_words(
    context: str, english: str, chinese: str
) -> None:
    with translation.override("zh-hans"):
        assert pgettext(context, english) == chinese


def test_the_blank_after_a_colon_belongs_to_the_english_text() -> None:
    """Chinese has a wide colon and no blank, so a blank of the template would be one too many."""
    blank = re.compile(r':" %\} \S|:\{% endblocktranslate %\} \S')
    pages = (ROOT / "templates").rglob("*.html")
    assert [path.name for path in pages if blank.search(path.read_text())] == []


@pytest.mark.parametrize(
    "mark",
    [r":(?:</\w+>)* (?:<\w+>)*{[{%]", r" \((?=[^()]*{[{%])", ", "],
    ids=["colon", "bracket", "comma"],
)
def test_no_template_puts_an_english_mark_between_two_values(mark: str) -> None:
    """{% labelled %}, {% bracketed %} and {% translate ", " %} put the reader's. Intervals are alike in both."""
    texts = {path: re.sub(r"\[{{[^]]*\]", "", within(path.read_text())) for path in TEMPLATES}
    between = re.compile(rf"[}}%]}}(?:<[^>]+>)*{mark}")
    assert [path.name for path, text in texts.items() if between.search(text)] == []


def within(template: str) -> str:
    """A template without the texts of its messages."""
    return re.sub(r"(?s){% blocktranslate.*?{% endblocktranslate %}", "{{ text }}", template)


def test_no_template_puts_a_blank_after_a_sentence_also_in_chinese() -> None:
    """{% sentence_space %} stands there instead."""
    ended = r"""\.(?:["'] %}|{% endblocktranslate %})(?:{% (?:end)?if[^%]*%})*"""
    before = r"(?:{% (?:if|url)[^%]*%})*"
    begun = r"""{% (?:translate (?!.*? as \w+ %})|blocktranslate (?!.*?asvar)|include "people/_gold_hit)"""
    sentences = re.compile(rf"{ended}\s+{before}{begun}")
    assert [path.name for path in TEMPLATES if sentences.search(path.read_text())] == []


def test_no_sentences_are_joined_with_a_blank_also_in_chinese() -> None:
    """evalsite.names.join_sentences joins them."""
    joined = re.compile(r"""["'] ["']\.join\((?:map\(str, )?(?:error\.messages|errors|sentences|texts)""")
    sources = (path for name in ("evalsite", "datasets", "judging") for path in (ROOT / name).rglob("*.py"))
    assert [path.name for path in sources if joined.search(path.read_text())] == []
