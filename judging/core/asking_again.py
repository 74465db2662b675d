"""Asks a judge once more whose reply could not be read: the same conversation, and a sentence that says what was wrong.

What is said is in the language of the prompt.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Literal

from datasets.core.kinds import CATEGORY, COMPARISON, PASS_FAIL
from judging.core.judges.settings import Request
from judging.core.reading import reasons
from judging.core.reading.gives import Gives
from judging.core.results import JudgeCall
from judging.core.values import value_text

Language = Literal["en", "zh"]

_CHINESE = re.compile("[\u3400-\u9fff]")

_NOTHING: dict[Language, str] = {"en": "it states no verdict", "zh": "其中没有判定"}
_WRONG: dict[str, dict[Language, str]] = {
    reasons.EMPTY: _NOTHING,
    reasons.NOTHING_OFFERED: _NOTHING,
    reasons.AMBIGUOUS: {
        "en": "it states several different verdicts ({detail})",
        "zh": "其中有几个不同的判定（{detail}）",
    },
    reasons.OUT_OF_RANGE: {"en": "{detail} is outside the scale", "zh": "{detail} 超出了评分范围"},
    reasons.OTHER_SCALE: {"en": "{detail} is on another scale", "zh": "{detail} 用的是另一种分制"},
    reasons.RANGE: {"en": "{detail} is a range", "zh": "{detail} 是一个区间"},
    reasons.NOT_A_NUMBER: {"en": "“{detail}” is not a number", "zh": "“{detail}”不是一个数"},
    reasons.NOT_WHOLE: {"en": "{detail} is not a whole number", "zh": "{detail} 不是整数"},
    reasons.OFF_STEP: {
        "en": "{detail} lies between two steps of the scale",
        "zh": "{detail} 不在评分的档位上",
    },
    reasons.UNKNOWN_LABEL: {
        "en": "“{detail}” is none of the possible verdicts",
        "zh": "“{detail}”不是可选的判定",
    },
    reasons.CUT_OFF: {
        "en": "it reached its limit of tokens before the verdict",
        "zh": "还没有给出判定就达到了 token 上限",
    },
}
ASKED_AGAIN = frozenset(_WRONG)
"""The reasons of replies that are asked for once more. A refusal would be repeated."""

_SENTENCE: dict[Language, str] = {
    "en": "Your verdict could not be read: {wrong}. Give it once more, alone on one line, {form}.",
    "zh": "无法从你的回复中读出判定：{wrong}。请再给出一次，单独写成一行，{form}。",
}
_AS_BEFORE: dict[Language, str] = {"en": "in the form that was asked for", "zh": "格式与上文要求的相同"}
_EXACTLY: dict[Language, str] = {"en": "in exactly this form: {form}", "zh": "格式必须完全如下：{form}"}
_OR: dict[Language, str] = {"en": " or ", "zh": " 或 "}
_SCORE: dict[Language, str] = {
    "en": "Score: [[n]], n being a {number} from {low} to {high}",
    "zh": "评分：[[n]]，其中 n 为 {low} 到 {high} 的{number}",
}
_WHOLE: dict[Language, str] = {"en": "whole number", "zh": "整数"}
_NUMBER: dict[Language, str] = {"en": "number", "zh": "数"}
_VERDICTS: dict[Language, tuple[str, str]] = {"en": ("PASS", "FAIL"), "zh": ("通过", "不通过")}


def correction(prompt: str, reason: str, detail: str, gives: Gives | None) -> str:
    """The sentence for a reply to `prompt` that could not be read. `gives`: what is read from replies; None if a user's
    own parser reads them."""
    language: Language = "zh" if _CHINESE.search(prompt) else "en"
    form = _EXACTLY[language].format(form=_form(gives, language)) if gives else _AS_BEFORE[language]
    wrong = _WRONG[reason][language]
    wrong = wrong.format(detail=detail) if detail else wrong.replace("{detail}", "…")
    return _SENTENCE[language].format(wrong=wrong, form=form)


def _form(gives: Gives, language: Language) -> str:
    if gives.kind in (PASS_FAIL, CATEGORY, COMPARISON):
        words = _VERDICTS[language] if gives.kind == PASS_FAIL else gives.labels
        if gives.kind == COMPARISON:
            words = gives.comparison_words
        return _OR[language].join(f"[[{word}]]" for word in words)
    number = _WHOLE if gives.whole else _NUMBER
    low, high = value_text(gives.min_score), value_text(gives.max_score)
    return _SCORE[language].format(number=number[language], low=low, high=high)


def prompt_of(request: Request) -> str:
    """The prompt of a request: its first user message."""
    messages = request.get("messages") or ()
    return next(
        (str(message.get("content", "")) for message in messages if message.get("role") == "user"), ""
    )


def first_messages(request: Request) -> list[Any]:
    """The messages before the judge's first reply."""
    messages = request.get("messages") or []
    roles = [message.get("role") for message in messages]
    return messages[: roles.index("assistant")] if "assistant" in roles else messages


def further_request(request: Request, said: str, sentence: str) -> Request:
    """The request that goes on with the conversation. Servers refuse an empty reply, and two messages of the same role:
    after a reply without words, the sentence ends the last message."""
    messages: list[dict[str, Any]] = list(request["messages"])
    if said.strip():
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": sentence}]
    else:
        messages[-1] = {**messages[-1], "content": f"{messages[-1].get('content', '')}\n\n{sentence}"}
    return {**request, "messages": messages}


def with_further_call(first: JudgeCall, further: JudgeCall, reason: str) -> JudgeCall:
    """Both calls as one: the last reply counts, the first is kept with its calls and the reason why it was not read.
    If there was no further reply, the first one counts."""
    together = {
        "seconds": first.seconds + further.seconds,
        "prompt_tokens": _sum(first.prompt_tokens, further.prompt_tokens),
        "completion_tokens": _sum(first.completion_tokens, further.completion_tokens),
        "digest": "",
    }
    if further.failure is not None:
        return replace(first, calls=[*first.calls, *further.calls], copied=False, **together)  # type: ignore[arg-type]
    *tries, last = first.calls or [{}]
    calls = [*tries, {**last, "reply": first.reply, "unread": reason}, *further.calls]
    first_token = first.first_token_seconds
    return replace(further, calls=calls, first_token_seconds=first_token, **together)  # type: ignore[arg-type]


def _sum(first: int | None, further: int | None) -> int | None:
    return None if first is None and further is None else (first or 0) + (further or 0)
