"""Leaves out a reply's thinking, in any of the forms in which models mark it."""

from __future__ import annotations

import re
from collections import deque

from judging.core.reading.clauses import begins_line
from judging.core.reading.edits import Edit, EditedText
from judging.core.reading.words import THINKING_TAGS

_TAG = re.compile(
    rf"<\s{{0,4}}(/?)\s{{0,4}}(?:{'|'.join(THINKING_TAGS)})\s{{0,4}}>|\[\s{{0,4}}(/?)think\s{{0,4}}\]"
    r"|◁\s{0,4}(/?)think\s{0,4}▷|<\|(?:begin|(end))_of_thought\|>",
    re.IGNORECASE,
)
_CHANNEL = "<|channel|>"
_FINAL_CHANNEL = re.compile(r"<\|channel\|>\s{0,4}final[^<>|\n]{0,80}<\|message\|>", re.IGNORECASE)
_MESSAGE_END = re.compile(r"<\|(?:end|return|start|call)\|>")
_UNMARKED_START, _UNMARKED_FINAL = "analysis", "assistantfinal"
_LAST_WORD = re.compile(r"[^\s{}\[\]()\"'“”「」【】，。；：！？、]+\Z")
_NARROW_MARKS = str.maketrans("＜＞／［］", "<>/[]")


def without_thinking(content: str) -> str:
    """The reply without thinking between tags such as `<think>…</think>`, and of harmony only the last final channel.

    Templates of reasoning models put the opening tag into the prompt, so everything before a lone closing tag is
    thinking; a reply cut off while thinking lacks the closing tag. A tag mentioned within a line ("has a <think> tag")
    is ignored unless it is closed.
    """
    return without_thinking_parts(EditedText(content)).text


def without_thinking_parts(reply: EditedText) -> EditedText:
    reply = reply.edited(_other_channels(reply.text))
    text = reply.text
    if "＜" in text or "［" in text:  # translating takes longer than all other steps together
        text = text.translate(_NARROW_MARKS)
    return reply.edited(_thinking(text)) if "<" in text or "[" in text or "◁" in text else reply


def without_last_word(reply: EditedText) -> EditedText:
    """The reply without a last word that the token limit may have cut."""
    tail = max(0, len(reply.text) - 400)
    word = _LAST_WORD.search(reply.text, tail)
    return reply.edited([(word.start(), word.end(), "")]) if word else reply


def _other_channels(text: str) -> list[Edit]:
    """What is outside the last final channel."""
    if _CHANNEL in text:
        finals = deque(_FINAL_CHANNEL.finditer(text), maxlen=1)
        if not finals:
            return [(0, len(text), "")]
        final = finals.pop()
        end = _MESSAGE_END.search(text, final.end())
        return [(0, final.end(), ""), *([(end.start(), len(text), "")] if end else [])]
    if text.lstrip()[: len(_UNMARKED_START)].lower() == _UNMARKED_START:
        last = text.rfind(_UNMARKED_FINAL)
        return [(0, last + len(_UNMARKED_FINAL), "")] if last >= 0 else []
    return []


def _thinking(text: str) -> list[Edit]:
    parts: list[Edit] = []
    opened: int | None = None
    for tag in _TAG.finditer(text):
        if not any(tag.groups()):
            opened = tag.start() if opened is None else opened
        elif opened is None:
            parts = [(0, tag.end(), "")]
        else:
            parts.append((opened, tag.end(), ""))
            opened = None
    if opened is not None and begins_line(text, opened, parts[-1][1] if parts else 0):
        parts.append((opened, len(text), ""))
    return parts
