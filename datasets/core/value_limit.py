"""Whether a row holds so many values that reading it would take many times its bytes of memory."""

import re

_BESIDE = rb'(?:[^",\[{]++|"(?:[^"\\]++|\\.)*+"|[\[{]\s*+[\]}])*+'
_MARK = rb"(?:" + _BESIDE + rb"[,\[{])"  # one for each value but the outermost
_AT_ONCE = 1_000
_MARKS = re.compile(_MARK + b"{%d}+" % _AT_ONCE, re.DOTALL)
_NEXT = re.compile(_MARK, re.DOTALL)


def holds_more_values(text: bytes, most: int) -> bool:
    """Whether a JSON text holds more than `most` values; lists, objects and what is in them all count.

    Of a text that is no JSON the part before that shows is counted. Nothing is kept, and nearly all texts are too short
    to be looked at.
    """
    if len(text) < 2 * most - 1 or text.count(b",") + text.count(b"[") + text.count(b"{") < most:
        return False
    marks, at = 0, 0
    while marks <= most - _AT_ONCE and (found := _MARKS.match(text, at)):
        marks, at = marks + _AT_ONCE, found.end()
    while marks < most and (found := _NEXT.match(text, at)):
        marks, at = marks + 1, found.end()
    return marks >= most
