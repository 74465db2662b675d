"""The instruction how a judge should answer, made from what its metric gives: `{{ answer_format }}` in templates.

Reasoning comes before the verdict, which is then read by `judging.core.reading`. The language is the template's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from datasets.core.kinds import (
    BOTH_BAD,
    CATEGORY,
    CHECKLIST,
    COMPARISON,
    COMPARISON_CODES,
    PASS_FAIL,
    THREE_STEPS,
)
from judging.core.metric_definition import MetricDefinition
from judging.core.metrics_file_kind import plain_number

Language = Literal["zh", "en"]

_CHINESE = re.compile("[\u4e00-\u9fff]")
_REASONS = {
    "en": "First explain your judgement in a few sentences, naming what is right and what is wrong.",
    "zh": "请先用几句话说明理由，指出哪里对、哪里不对。",
}
_DIFFERENCES = {
    "en": "First explain in a few sentences where the two differ and what that means for the asker.",
    "zh": "请先用几句话说明两者的差别，以及这对提问者意味着什么。",
}
_END = {
    "en": "Then end with one line that holds exactly one of these verdicts:",
    "zh": "最后单独用一行给出以下结论之一：",
}
_VERDICTS = {
    PASS_FAIL: {
        "en": ("Verdict: [[PASS]]", "Verdict: [[FAIL]]"),
        "zh": ("结论：[[通过]]", "结论：[[不通过]]"),
    },
    CHECKLIST: {
        "en": ("Verdict: [[met]]", "Verdict: [[not met]]"),
        "zh": ("结论：[[满足]]", "结论：[[不满足]]"),
    },
}
_BETTER = {
    "en": {
        "A>>B": "A is much better",
        "A>B": "A is slightly better",
        "A=B": "they are about equal",
        "B>A": "B is slightly better",
        "B>>A": "B is much better",
        BOTH_BAD: "both are bad",
    },
    "zh": {
        "A>>B": "A 明显更好",
        "A>B": "A 略好",
        "A=B": "两者相当",
        "B>A": "B 略好",
        "B>>A": "B 明显更好",
        BOTH_BAD: "都不好",
    },
}
_BETTER_OF_THREE = {
    "en": {"A>B": "A is better", "B>A": "B is better"},
    "zh": {"A>B": "A 更好", "B>A": "B 更好"},
}
_NUMBER = {
    "en": ("a number", "a whole number", "{number} from {low} to {high}{steps}", ", in steps of {step}"),
    "zh": ("数字", "整数", "{low} 到 {high} 的{number}{steps}", "，步长为 {step}"),
}


def language_of(template: str) -> Language:
    return "zh" if _CHINESE.search(template) else "en"


def answer_format(metric: MetricDefinition, language: Language) -> str:
    """What the judge is told about its answer, several lines without a newline at the end."""
    kind = metric.asks_for
    if kind in _VERDICTS:
        return _one_of(_REASONS[language], _VERDICTS[kind][language], language)
    if kind == CATEGORY:
        labels = [_meaning(f"[[{label.label}]]", label.description) for label in metric.labels]
        return _one_of(_REASONS[language], labels, language)
    if kind == COMPARISON:
        return _one_of(_DIFFERENCES[language], _sides(metric, language), language)
    return _score(metric, language)


def _one_of(reasoning: str, verdicts: Sequence[str], language: Language) -> str:
    gap = "" if language == "zh" else " "
    return "\n".join((f"{reasoning}{gap}{_END[language]}", *verdicts))


def _meaning(verdict: str, meaning: str) -> str:
    return f"{verdict} {' '.join(meaning.split())}".rstrip()


def _sides(metric: MetricDefinition, language: Language) -> list[str]:
    codes = THREE_STEPS if metric.three_steps else COMPARISON_CODES
    words = _BETTER[language] | (_BETTER_OF_THREE[language] if metric.three_steps else {})
    return [
        _meaning(f"[[{code}]]", words[code]) for code in (*codes, *((BOTH_BAD,) if metric.both_bad else ()))
    ]


def _score(metric: MetricDefinition, language: Language) -> str:
    any_number, whole_number, pattern, in_steps = _NUMBER[language]
    number = pattern.format(
        number=whole_number if metric.whole else any_number,
        low=plain_number(metric.min_score),
        high=plain_number(metric.max_score),
        steps=in_steps.format(step=plain_number(metric.step)) if metric.step else "",
    )
    if language == "zh":
        end = f"最后单独用一行给出分数，格式必须完全如下，其中 n 为你给出的 {number}：\n评分:[[n]]"
        return _REASONS["zh"] + end
    return f"{_REASONS['en']} Then end with one line of exactly this form, n being {number}:\nScore: [[n]]"
