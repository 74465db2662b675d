"""The demo judge: an OpenAI-compatible server without a model, for trying the product without an API key.

To the prompts about the sample's answers it gives the replies that were written for them. To any other it compares
characters: it finds the reference (of a checklist: the criterion) and the answer in the built-in prompts and counts how
many of the reference's pairs of adjacent characters occur in the answer. Such a reply says that it comes from no
language model. Without a reference it gives the middle of the scale. Replies are deterministic.
`manage.py demo_judge` runs it.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from judging.core.judges.scripted import Answer, Received, Server
from judging.core.prompts import estimated_tokens

MODEL = "demo-judge"
WRITTEN_SCALE = (1, 5)
"""The scale of the written scores."""

_FENCE = re.compile(
    r"^----- (?:(?P<en>[A-Z ]+?) BEGINS?(?: \((?P<en_size>\d+) characters\))?"
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
    "CRITERION": "criteria",
    "CRITERIA": "criteria",
    "细则": "criteria",
}
_CHOICE = re.compile(
    r"^(?:[^\W\d_]{1,20}[:：] ?)?\[\[(?!n\]\])[^\[\]\n]{1,200}\]\]|^(?:Verdict: (?:not )?met|判定：不?满足)$",
    re.MULTILINE,
)
_CRITERION = re.compile(r"^(\d+)\. (.+)$", re.MULTILINE)
_SCALE = re.compile(r"(\d{1,6})\s*(?:（[^）]{0,60}）|\([^)]{0,80}\))?\s*(?:-|–|~|到|至|to)\s*(\d{1,6})")


@dataclass(frozen=True, slots=True)
class DemoPrompt:
    """What the demo judge extracts from a prompt; `asks` is score, comparison, choice, criteria (a verdict on each of
    several, as JSON) or nothing.

    `reference`: what the answer is compared with: the reference, the first of two answers, or the criteria of a
    checklist. `choices`: the lines of which the prompt asks for one, such as `Verdict: [[PASS]]`, best first.
    """

    chinese: bool
    asks: str
    low: int
    high: int
    reference: str | None
    answer: str | None
    choices: tuple[str, ...] = ()
    is_checklist: bool = False

    def accepts(self, verdict: str) -> bool:
        """Whether a line such as `Score: [[4]]` or `Verdict: met` is a verdict that the prompt asks for."""
        if self.asks == "score":
            return (
                verdict == _score_line(self, _number_in(verdict)) and (self.low, self.high) == WRITTEN_SCALE
            )
        return self.asks in ("comparison", "choice") and verdict in self.choices


@dataclass(frozen=True, slots=True)
class WrittenReply:
    """A reply to the prompts about an answer. `reference`: what the prompt compares it with, or None; `said`: further
    texts in the prompt, such as the question, on lines of their own. The reply's last line is its verdict."""

    answer: str
    reference: str | None
    said: tuple[str, ...]
    reply: str

    @property
    def verdict(self) -> str:
        return self.reply.rpartition("\n")[2]


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
        if name == "criteria":
            parts.setdefault(name, text[position:].partition("\n-----")[0])
        elif name and size:
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
        reference=parts.get("criteria", parts.get("reference")),
        answer=parts.get("answer"),
        choices=choices,
        is_checklist="criteria" in parts,
    )


def _asked_for(said: str, choices: tuple[str, ...]) -> str:
    if '{"criteria": [{' in said:
        return "criteria"
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


class DemoJudge:
    """Answers chat completion requests, with estimated token counts: as written where a reply was written for the
    prompt's answer and question, else by comparing characters."""

    def __init__(self, written: Iterable[WrittenReply] = ()) -> None:
        self._written: dict[tuple[str, str | None], list[WrittenReply]] = defaultdict(list)
        for reply in written:
            self._written[reply.answer, reply.reference].append(reply)

    def __call__(self, request: Received) -> Answer:
        prompt = read_prompt(request.prompt)
        content, reasoning = self._as_written(prompt, request.prompt) or _by_characters(prompt)
        tokens = estimated_tokens(request.prompt), estimated_tokens(content + reasoning)
        return Answer(content=content, reasoning=reasoning, model=MODEL, tokens=tokens)

    def _as_written(self, prompt: DemoPrompt, text: str) -> tuple[str, str] | None:
        for reply in self._written.get((prompt.answer or "", prompt.reference), ()):
            if prompt.accepts(reply.verdict) and all(f"\n{part}\n" in text for part in reply.said):
                return reply.reply, WRITTEN_NOTES[prompt.chinese]
        return None


WRITTEN_NOTES = (
    "This reply was written for the sample project. No language model was asked.",
    "这条回复是为示例项目编写的，没有调用任何语言模型。",
)
"""The reasoning of a written reply, in English and Chinese."""


def _by_characters(prompt: DemoPrompt) -> tuple[str, str]:
    """The reply and its reasoning."""
    compared = None
    if prompt.reference is not None and prompt.answer is not None and _pairs(prompt.reference):
        compared = coverage(prompt.reference, prompt.answer)
    if prompt.asks == "criteria":
        return _verdicts_on_criteria(prompt), _reasoning(prompt, None)
    content = _compared(prompt, *compared) if compared else _without_reference(prompt)
    return content, _reasoning(prompt, compared)


def _compared(prompt: DemoPrompt, matching: int, pairs: int) -> str:
    verdict = _verdict(prompt, matching / pairs)
    return f"{_comparison(prompt, matching, pairs)}\n\n{verdict}"


def _comparison(prompt: DemoPrompt, matching: int, pairs: int) -> str:
    percent = round(100 * matching / pairs)
    if prompt.chinese:
        text = "细则" if prompt.is_checklist else "参考答案"
        return (
            "演示裁判不是语言模型，只比较字符。"
            f"{text}中有 {pairs} 个相邻字符对，其中 {matching} 个（{percent}%）也出现在回答里。"
        )
    text = "criterion" if prompt.is_checklist else "reference"
    return (
        "This demo judge is not a language model; it only compares characters. "
        f"Of the {pairs} pairs of adjacent characters in the {text}, "
        f"{matching} ({percent}%) also occur in the answer."
    )


def _verdicts_on_criteria(prompt: DemoPrompt) -> str:
    """A verdict on each criterion, numbered in the prompt from 1, as JSON."""
    verdicts = [
        {
            "id": number,
            "reasoning": _comparison(prompt, matching, pairs),
            "verdict": _met(prompt, matching / pairs),
        }
        for number, text in _CRITERION.findall(prompt.reference or "")
        for matching, pairs in [coverage(text, prompt.answer or "")]
        if pairs
    ]
    return json.dumps({"criteria": verdicts}, ensure_ascii=False)


def _met(prompt: DemoPrompt, share: float) -> str:
    if prompt.chinese:
        return "满足" if share >= 0.5 else "不满足"
    return "met" if share >= 0.5 else "not met"


def _verdict(prompt: DemoPrompt, share: float) -> str:
    if prompt.asks == "choice":
        return prompt.choices[min(int((1 - share) * len(prompt.choices)), len(prompt.choices) - 1)]
    if prompt.asks == "comparison":
        # The reference is assumed to be correct, so the answer can at best be equal to it.
        return "[[A=B]]" if share >= 0.9 else "[[A>B]]" if share >= 0.5 else "[[A>>B]]"
    return _score_line(prompt, round(prompt.low + share * (prompt.high - prompt.low)))


def _number_in(verdict: str) -> int:
    number = re.search(r"\d+", verdict)
    return int(number[0]) if number else 0


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


def demo_server(written: Iterable[WrittenReply] = ()) -> Server:
    """A server to start in an event loop; it does not store requests."""
    return Server(script=DemoJudge(written), models=(MODEL,), keep=False)
