"""Takes away what is no part of a reply's own statement: quotations, marks of emphasis, fences, comments.

`plain_characters` keeps every place, so it comes first; `without_quoted_parts` leaves objects whole, which are read
before `without_marks`.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import islice

from judging.core.reading.clauses import begins_line
from judging.core.reading.edits import Edit, EditedText, Edits, replacing

_KEPT = "，；！？："  # of the full-width forms
_HYPHENS = "\u2010\u2011\u2212"


def without_format_characters(reply: EditedText) -> EditedText:
    """Without characters of Unicode's category Cf: zero width, direction marks, soft hyphens, tags."""
    marks = {character for character in set(reply.text) if unicodedata.category(character) == "Cf"}
    places = (place for place, character in enumerate(reply.text) if character in marks) if marks else ()
    return reply.edited((place, place + 1, "") for place in places)


def plain_characters(text: str) -> str:
    """The text, of the same length, with ASCII digits, brackets and signs, and blanks for pictographs."""
    if text.isascii():
        return text.replace("\r", "\n")
    changed = {character: plain for character in set(text) if (plain := _plain(character)) != character}
    if len(changed) > _FEW:
        return text.translate({ord(character): plain for character, plain in changed.items()})
    for character, plain in changed.items():
        text = text.replace(character, plain)
    return text


_FEW = 40  # characters that are replaced one by one, which is faster than translate


@cache
def _plain(character: str) -> str:
    code, category = ord(character), unicodedata.category(character)
    if category == "Nd":
        return str(unicodedata.decimal(character))
    if 0xFF01 <= code <= 0xFF5E:
        return character if character in _KEPT else chr(code - 0xFEE0)
    if character in _HYPHENS:
        return "-"
    if character in "\r\v\f\x85\u2028\u2029":
        return "\n"
    pictograph = category in ("So", "Sk") and code > 0xFF
    return " " if category == "Zs" or pictograph or character in "\ufe0f\u20e3" else character


# --- parts that go whole, and marks ------------------------------------------------------------------------------


_FENCE = re.compile(r"^[ \t]{0,3}(```|~~~)[^`\n]*$\n?", re.MULTILINE)


def _fences(text: str) -> list[Edit]:
    """Fences go whole unless they hold JSON or nothing else is left; then only their marks go."""
    whole: list[Edit] = []
    marks: list[Edit] = []
    position, outside = 0, []
    while opening := _FENCE.search(text, position):
        outside.append(text[position : opening.start()])
        end = text.find(opening[1], opening.end())
        closing = len(text) if end < 0 else end + 3
        body = text[opening.end() : len(text) if end < 0 else end]
        pair: list[Edit] = [(*opening.span(), "")] + ([(end, closing, "")] if end >= 0 else [])
        marks += pair
        whole += pair if body.lstrip()[:1] in ("{", "[") else [(opening.start(), closing, "")]
        position = closing
    outside.append(text[position:])
    only_fences = not any(part.strip() for part in outside)
    return marks if only_fences else whole


_QUOTATION = re.compile(
    r"\"[^\"\n]*\"|“[^“”\n]*”|「[^「」\n]*」|『[^『』\n]*』|«[^«»\n]*»|`[^`\n]*`|(?<!\w)'[^'\n]*'(?!\w)|‘[^‘’\n]*’"
)
_MARKS_OF_QUOTATION = "\"“「『«`'‘"


def _quotations(text: str) -> Iterator[Edit]:
    """Quotations within a line that could be read as a statement go whole; of others only the marks go."""
    if not any(mark in text for mark in _MARKS_OF_QUOTATION):
        return
    end_of_reply = len(text.rstrip(" \n\t.。!！"))
    for quotation in _QUOTATION.finditer(text):
        start, end = quotation.span()
        inside = quotation[0][1:-1]
        states = ":" in inside or "=" in inside or "[[" in inside
        ends_reply = "[[" in inside and end >= end_of_reply
        if not inside or (states and not ends_reply and not _is_line(text, start, end)):
            yield start, end, ""
        else:
            yield start, start + 1, ""
            yield end - 1, end, ""


def _is_line(text: str, start: int, end: int) -> bool:
    line_end = text.find("\n", end, end + 80)
    rest = text[end : line_end if line_end >= 0 else end + 80]
    return begins_line(text, start, start - 80) and not rest.strip(" \t.。!！,，")


_PARTS: tuple[tuple[str, Edits], ...] = (
    (
        "&",
        replacing(
            r"(?i)&(?:#[0-9]{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,8}[0-9]{0,2});",
            lambda entity: plain_characters(html.unescape(entity[0])),
        ),
    ),
    ("<", replacing(r"(?i)</?(?:br|hr|p|div|li|[ou]l|h[1-6])\s{0,2}/?>", "\n")),
    ("<", replacing(r"(?i)<\|[a-z0-9_]{1,40}\|>|<(?:eos|end_of_turn)>|^[ \t]*<s>|</s>(?=[ \t]*$)", "\n")),
    ("<!--", replacing(r"<!--(?:[^-]|-(?!->))*+(?:-->|\Z)")),
    ("：", replacing("：+", ": ")),
    ("```", _fences),
    ("~~~", _fences),
    (">", replacing(r"^[ \t]{0,3}>.*$")),
    ("~~", replacing(r"(?<![0-9~])~~[^~\n]+~~(?!~)|(?<!~)~~[^~\n]+~~(?![0-9~])")),
    ("\\boxed", replacing(r"\\boxed\s?\{([^{}\n]{0,80})\}", lambda boxed: boxed[1])),
)
# A run that cannot match is not tried again from its middle.
_MARKS: tuple[tuple[str, Edits], ...] = (
    ("\\", replacing(r"\\(?=[\[\](){}])")),
    ("<", replacing(r"(?i)</?(?:b|i|em|strong|u|span|code|mark)(?:\s[^<>]{0,200})?>")),
    ("*", replacing(r"(?<![0-9*])\*++|(?<!\*)\*++(?![0-9])")),
    ("_", replacing(r"(?<!\w)_++|(?<!_)_++(?![^\W_])")),
    ("$", replacing(r"\$+")),
    ("", replacing(r"^[ \t]*(?:#{1,6}|[-+•]|[0-9]{1,3}[.)])[ \t]+(?=\S)")),
    ("``", replacing("`+", "`")),
    ("", _quotations),
    ("|", replacing(r"^[ \t]{0,9}\|?[ \t]{0,9}:?--[-:| \t]*$")),
    ("--", replacing(r"^[ \t]{0,3}---++[ \t]*$")),
    ("==", replacing(r"^[ \t]{0,3}===++[ \t]*$")),
    (
        "|",
        replacing(
            r"^[ \t]*\|([^|\n]*)\|([^|\n]*)\|[ \t]*$", lambda row: f"{row[1].strip()}: {row[2].strip()}"
        ),
    ),
)


def without_quoted_parts(reply: EditedText) -> EditedText:
    return _edited(reply, _PARTS)


def without_marks(reply: EditedText) -> EditedText:
    return _edited(reply, _MARKS)


def _edited(reply: EditedText, steps: tuple[tuple[str, Edits], ...]) -> EditedText:
    """After the steps whose mark occurs."""
    for mark, edits in steps:
        if mark in reply.text:
            reply = reply.edited(edits(reply.text))
    return reply


_SCALE_END = re.compile(
    r"(?:满分|总分|共计|共)\s{0,3}[为是]?\s{0,3}([0-9]{1,15}(?:\.[0-9]{1,15})?)(?=\s{0,3}分)"
)
_MOST_SCALE_ENDS = 200


def without_scale_end(reply: EditedText, max_score: float) -> EditedText:
    """Leaves out the 10 of 满分10分 on a scale to 10."""
    ends = islice(_SCALE_END.finditer(reply.text), _MOST_SCALE_ENDS)
    return reply.edited((*end.span(1), "") for end in ends if float(end[1]) == max_score)
