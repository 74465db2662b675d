"""Negates the first statement of a text, or removes its negation, in English and Chinese."""

from __future__ import annotations

import re

from judging.core.drill.prose import matches_in_prose, replaced

_ENGLISH = (
    r"(?<![\w'’-])(?<!\bto )(?P<verb>am|is|are|was|were|has|have|had|do|does|did|can|could|will|would|shall|should|may"
    r"|might|must|(?P<short>wo|sha|ca))(?:(?P<no>\s?not|n['’]t)(?![\w'’])|(?![\w'’-]))"
)
_CHINESE = (
    r"(?:(?<![是有能会])(?P<bu>[不没])|(?<![不没]))(?P<word>可以"
    r"|(?<![还但于可总凡要只若])是(?![否非不])"
    r"|(?<![所只具拥含享占设现原固稀持])有(?![效关些时趣机限利力的没])"
    r"|(?<![功可性智才技职潜本热电动核产万体光势储节])能(?![力量源耗级人不])"
    r"|(?<![社机协员大学体聚开集教晚年约委国商工])会(?![议计员场面话谈见长晤展不])"
    r"|(?<![反适相响供效对感呼回答照])应(?![用对付变急答聘试邀不]))"
)
_FINITE = re.compile(f"{_ENGLISH}|{_CHINESE}", re.IGNORECASE)
_MONTH = re.compile(r"May\b(?= \d|,)|(?<=[a-z0-9,] )May\b")
_WHOLE = {"wo": "will", "sha": "shall", "ca": "can"}
"""What is left of won't, shan't and can't."""


def negated(text: str) -> str:
    """The text with the first finite form of be, have, do or a modal (是, 有, 能, 会, 可以, 应) negated, or without its
    negation; unchanged if it has none."""
    for match in matches_in_prose(_FINITE, text):
        if match["verb"] and not _is_verb(text, match):
            continue
        return replaced(text, match, _turned(match))
    return text


def _is_verb(text: str, match: re.Match[str]) -> bool:
    """Not the month of May, nor the beginning of another word such as wo and ca."""
    return not _MONTH.match(text, match.start()) and (match["short"] is None or match["no"] is not None)


def _turned(match: re.Match[str]) -> str:
    if word := match["word"]:
        negation = "没" if word == "有" else "不"
        return word if match["bu"] else negation + word
    verb = match["verb"]
    if match["no"] is None:
        return f"{verb} not"
    if match["short"] is None:
        return verb
    whole = _WHOLE[verb.lower()]
    if verb.isupper():
        return whole.upper()
    return whole.capitalize() if verb[0].isupper() else whole
