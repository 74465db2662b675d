"""The demo judge: an OpenAI-compatible server without a model, for trying the product without an API key.

It compares characters: it finds the reference and the answer in the built-in prompts and counts how many of the
reference's pairs of adjacent characters occur in the answer. Every reply says that it is not a language model. Without
a reference it gives the middle of the scale. Replies are deterministic. `manage.py demo_judge` runs it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from judging.core.judges.scripted import Answer, Received, Server
from judging.core.prompts import estimated_tokens

MODEL = "demo-judge"

_FENCE = re.compile(
    r"^----- (?:(?P<en>[A-Z ]+?) BEGINS(?: \((?P<en_size>\d+) characters\))?"
    r"|(?P<zh>\S+?(?: [AB] )?)开始(?:（共 (?P<zh_size>\d+) 个字符）)?) -----\n",
    re.MULTILINE,
)
_PARTS = {
    "REFERENCE ANSWER": "reference",
    "ANSWER": "answer",
    "ANSWER A": "reference",
    "ANSWER B": "answer",
    "参考答案": "reference",
    "回答": "answer",
    "回答 A": "reference",
    "回答 B": "answer",
}
_CHOICE = re.compile(r"^(?:[^\W\d_]{1,20}[:：] ?)?\[\[(?!n\]\])[^\[\]\n]{1,200}\]\]", re.MULTILINE)
_SCALE = re.compile(r"(\d{1,6})\s*(?:（[^）]{0,60}）|\([^)]{0,80}\))?\s*(?:-|–|~|到|至|to)\s*(\d{1,6})")


@dataclass(frozen=True, slots=True)
class DemoPrompt:
    """What the demo judge extracts from a prompt; `asks` is score, comparison, choice or nothing.

    `choices`: the lines of which the prompt asks for one, such as `Verdict: [[PASS]]`, best first.
    """

    chinese: bool
    asks: str
    low: int
    high: int
    reference: str | None
    answer: str | None
    choices: tuple[str, ...] = ()


def read_prompt(text: str) -> DemoPrompt:
    """Extract the fenced parts by the lengths in the fences, so that an answer cannot fake a fence."""
    parts: dict[str, str] = {}
    around: list[str] = []
    position = 0
    while fence := _FENCE.search(text, position):
        around.append(text[position : fence.start()])
        size = fence["en_size"] or fence["zh_size"]
        name = _PARTS.get((fence["en"] or fence["zh"]).strip())
        position = fence.end() + (int(size) if size else 0)
        if name and size:
            parts.setdefault(name, text[fence.end() : position])
    said = "".join([*around, text[position:]])
    # The instructions come after the last fence; text before it may contain any numbers.
    instructions = text[position:] if around else said
    low, high = _scale(instructions)
    choices = tuple(dict.fromkeys(match[0] for match in _CHOICE.finditer(instructions)))
    return DemoPrompt(
        chinese=bool(re.search(r"[\u4e00-\u9fff]", instructions)),
        asks=_asked_for(said, choices) or ("nothing" if around else "score"),
        low=low,
        high=high,
        reference=parts.get("reference"),
        answer=parts.get("answer"),
        choices=choices,
    )


def _asked_for(said: str, choices: tuple[str, ...]) -> str:
    if "[[A>B]]" in said:
        return "comparison"
    return "choice" if len(choices) > 1 else "score" if "[[" in said else ""


def _scale(said: str) -> tuple[int, int]:
    for match in _SCALE.finditer(said):
        if int(match[1]) < int(match[2]):
            return int(match[1]), int(match[2])
    return 1, 10


def coverage(reference: str, answer: str) -> tuple[int, int]:
    """How many of the reference's pairs of adjacent characters occur in the answer, and how many there are.

    Case, whitespace and punctuation are ignored; a text of one character is compared as that character.
    """
    wanted, offered = _pairs(reference), _pairs(answer)
    if len(re.sub(r"\W", "", reference)) == 1:
        offered = Counter(re.sub(r"\W", "", answer.casefold()))
    return (wanted & offered).total(), wanted.total()


def _pairs(text: str) -> Counter[str]:
    plain = re.sub(r"\W", "", text.casefold())
    return Counter([plain] if len(plain) == 1 else [plain[i : i + 2] for i in range(len(plain) - 1)])


def demo_reply(request: Received) -> Answer:
    """The answer to one chat completion request, with estimated token counts."""
    prompt = read_prompt(request.prompt)
    compared = None
    if prompt.reference is not None and prompt.answer is not None and _pairs(prompt.reference):
        compared = coverage(prompt.reference, prompt.answer)
    content = _compared(prompt, *compared) if compared else _without_reference(prompt)
    reasoning = _reasoning(prompt, compared)
    tokens = estimated_tokens(request.prompt), estimated_tokens(content + reasoning)
    return Answer(content=content, reasoning=reasoning, model=MODEL, tokens=tokens)


def _compared(prompt: DemoPrompt, matching: int, pairs: int) -> str:
    verdict = _verdict(prompt, matching / pairs)
    percent = round(100 * matching / pairs)
    if prompt.chinese:
        return (
            "演示裁判不是语言模型，只比较字符。"
            f"参考答案中有 {pairs} 个相邻字符对，其中 {matching} 个（{percent}%）也出现在回答里。\n\n{verdict}"
        )
    return (
        "This demo judge is not a language model; it only compares characters. "
        f"Of the {pairs} pairs of adjacent characters in the reference, "
        f"{matching} ({percent}%) also occur in the answer.\n\n{verdict}"
    )


def _verdict(prompt: DemoPrompt, share: float) -> str:
    if prompt.asks == "choice":
        return prompt.choices[min(int((1 - share) * len(prompt.choices)), len(prompt.choices) - 1)]
    if prompt.asks == "comparison":
        # The reference is assumed to be correct, so the answer can at best be equal to it.
        return "[[A=B]]" if share >= 0.9 else "[[A>B]]" if share >= 0.5 else "[[A>>B]]"
    return _score_line(prompt, round(prompt.low + share * (prompt.high - prompt.low)))


def _score_line(prompt: DemoPrompt, score: int) -> str:
    return f"评分:[[{score}]]" if prompt.chinese else f"Score: [[{score}]]"


def _without_reference(prompt: DemoPrompt) -> str:
    if prompt.chinese:
        text = "演示裁判不是语言模型，只比较字符，而这里没有可供对照的参考答案。"
        middle_note = "因此给出居中的结果，它不说明回答的好坏。"
    else:
        text = (
            "This demo judge is not a language model; it only compares characters, "
            "and there is no reference to compare with."
        )
        middle_note = " It therefore gives the middle result, which says nothing about the answer."
    if prompt.asks == "nothing":
        return text
    middle = (prompt.low + prompt.high) // 2
    verdict = "[[A=B]]" if prompt.asks == "comparison" else _score_line(prompt, middle)
    if prompt.asks == "choice":
        verdict = prompt.choices[(len(prompt.choices) - 1) // 2]
    return f"{text}{middle_note}\n\n{verdict}"


def _reasoning(prompt: DemoPrompt, compared: tuple[int, int] | None) -> str:
    if compared is None:
        return "没有找到参考答案。" if prompt.chinese else "No reference found in the prompt."
    matching, pairs = compared
    return (
        f"{matching} / {pairs} 个字符对。"
        if prompt.chinese
        else f"{matching} of {pairs} pairs of characters."
    )


def demo_server() -> Server:
    """A server to start in an event loop; it does not store requests."""
    return Server(script=demo_reply, models=(MODEL,), keep=False)
