"""Which parts of an answer are prose: code keeps its words and figures."""

from __future__ import annotations

import re
from collections.abc import Iterator

_CODE = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1[^\n]*$|\Z)|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def matches_in_prose(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The matches of a pattern outside code, in order."""
    code = [match.span() for match in _CODE.finditer(text)]
    for match in pattern.finditer(text):
        if not any(start < match.end() and match.start() < end for start, end in code):
            yield match


def replaced(text: str, match: re.Match[str], replacement: str) -> str:
    """The text with one match replaced."""
    return text[: match.start()] + replacement + text[match.end() :]
