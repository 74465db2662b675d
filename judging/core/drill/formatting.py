"""Removes a text's Markdown, or adds some."""

from __future__ import annotations

import re

_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+", re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)[^\n]*\n?", re.MULTILINE)
_QUOTE = re.compile(r"^ {0,3}>[ \t]?", re.MULTILINE)
_BULLET = re.compile(r"^([ \t]*)[-*+][ \t]+", re.MULTILINE)
_LINK = re.compile(r"!?\[([^\[\]\n]+)\]\([^()\s]+\)")
_CODE = re.compile(r"`([^`\n]+)`")
_STRONG = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1", re.DOTALL)
_EMPHASIS = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]+?)(?<=\S)\*(?![\w*])")
_REMOVED = (
    (_FENCE, ""),
    (_HEADING, ""),
    (_QUOTE, ""),
    (_BULLET, r"\1"),
    (_LINK, r"\1"),
    (_CODE, r"\1"),
    (_STRONG, r"\2"),
    (_EMPHASIS, r"\1"),
)
_HEADINGS = {"en": "## Answer", "zh": "## 回答"}


def reformatted(text: str, language: str) -> str:
    """The text without its Markdown; if it has none, with a heading and its lines as a list."""
    plain = text
    for pattern, replacement in _REMOVED:
        plain = pattern.sub(replacement, plain)
    if plain != text or not text.strip():
        return plain
    lines = [f"- {line.strip()}" for line in text.splitlines() if line.strip()]
    return "\n".join([_HEADINGS["zh" if language == "zh" else "en"], "", *lines])
