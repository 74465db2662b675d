"""Takes away what is no part of a reply's own statement: quotations, marks of emphasis, fences, comments.

`characters` keeps every place, so it comes first; `without_quoted_parts` leaves objects whole, which are read before
`without_marks`.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import islice

from judging.core.reading.clauses import begins_line
from judging.core.reading.edits import Edit, EditedText

# Unicode category Cf: zero width, direction marks, soft hyphens, tags.
_FORMAT_CHARACTERS = re.compile(
    "[\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]+"
)
_KEPT = "，；！？："  # of the full-width forms
_HYPHENS = "\u2010\u2011\u2212"


def without_format_characters(reply: EditedText) -> EditedText:
    return reply if reply.text.isascii() else reply.replaced(_FORMAT_CHARACTERS, "")


def plain_characters(text: str) -> str:
    """The text, of the same length, with ASCII digits, brackets and signs, and blanks for pictographs."""
    if text.isascii():
        return text.replace("\r", "\n") if "\r" in text else text
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
    return " " if category == "Zs" or pictograph or character == "\ufe0f" else character


# --- parts that go whole -----------------------------------------------------------------------------------------

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,8}[0-9]{0,2});", re.IGNORECASE)
_BREAK = re.compile(r"<br\s{0,2}/?>", re.IGNORECASE)
_WIDE_COLONS = re.compile("：+")
_QUOTED_LINE = re.compile(r"^[ \t]{0,3}>.*$", re.MULTILINE)
_STRUCK = re.compile(r"(?<![0-9~])~~[^~\n]+~~(?!~)|(?<!~)~~[^~\n]+~~(?![0-9~])")
_BOXED = re.compile(r"\\boxed\s?\{([^{}\n]{0,80})\}")


def without_quoted_parts(reply: EditedText) -> EditedText:
    text = reply.text
    if "&" in text:
        reply = reply.replaced(_ENTITY, lambda entity: plain_characters(html.unescape(entity[0])))
    if "<" in text:
        reply = reply.replaced(_BREAK, "\n")
        reply = reply.edited(_comments(reply.text))
    if "：" in text:
        reply = reply.replaced(_WIDE_COLONS, ": ")
    if "```" in text or "~~~" in text:
        reply = reply.edited(_fences(reply.text))
    if ">" in reply.text:
        reply = reply.replaced(_QUOTED_LINE, "")
    if "~~" in text:
        reply = reply.replaced(_STRUCK, "")
    return reply.replaced(_BOXED, lambda boxed: boxed[1]) if "\\boxed" in text else reply


def _comments(text: str) -> Iterator[Edit]:
    start = text.find("<!--")
    while start >= 0:
        end = text.find("-->", start + 4)
        if end < 0:
            return
        yield start, end + 3, ""
        start = text.find("<!--", end + 3)


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


# --- marks -------------------------------------------------------------------------------------------------------

_ESCAPED_BRACKET = re.compile(r"\\(?=[\[\](){}])")
_INLINE_TAG = re.compile(r"</?(?:b|i|em|strong|u|span|code|mark)(?:\s[^<>]{0,200})?>", re.IGNORECASE)
_LINE_MARK = re.compile(r"^[ \t]*(?:#{1,6}|[-*+•]|[0-9]{1,3}[.)])[ \t]+(?=\S)", re.MULTILINE)
# A run that cannot match is not tried again from its middle.
_STARS = re.compile(r"(?<![0-9*])\*++|(?<!\*)\*++(?![0-9])")
_UNDERSCORES = re.compile(r"(?<!\w)_++|(?<!_)_++(?![^\W_])")
_DOLLARS = re.compile(r"\$+")
_QUOTATION = re.compile(
    r"\"[^\"\n]*\"|“[^“”\n]*”|「[^「」\n]*」|『[^『』\n]*』|«[^«»\n]*»|`[^`\n]*`|(?<!\w)'[^'\n]*'(?!\w)|‘[^‘’\n]*’"
)
_MARKS_OF_QUOTATION = "\"“「『«`'‘"
_TICKS = re.compile("`+")
_ROW = re.compile(r"^[ \t]*\|([^|\n]*)\|([^|\n]*)\|[ \t]*$", re.MULTILINE)
_RULE_OF_TABLE = re.compile(r"^[ \t]{0,9}\|?[ \t]{0,9}:?--[-:| \t]*$", re.MULTILINE)


def without_marks(reply: EditedText) -> EditedText:
    text = reply.text
    if "\\" in text:
        reply = reply.replaced(_ESCAPED_BRACKET, "")
    if "<" in text:
        reply = reply.replaced(_INLINE_TAG, "")
    reply = reply.replaced(_LINE_MARK, "")
    if "*" in text:
        reply = reply.replaced(_STARS, "").replaced(_LINE_MARK, "")
    if "_" in text:
        reply = reply.replaced(_UNDERSCORES, "")
    if "$" in text:
        reply = reply.replaced(_DOLLARS, "")
    if "``" in text:
        reply = reply.replaced(_TICKS, "`")
    if any(mark in text for mark in _MARKS_OF_QUOTATION):
        reply = reply.edited(list(_quotations(reply.text)))
    if "|" in text:
        reply = reply.replaced(_RULE_OF_TABLE, "")
        reply = reply.replaced(_ROW, lambda row: f"{row[1].strip()}: {row[2].strip()}")
    return reply


def _quotations(text: str) -> Iterator[Edit]:
    """Quotations within a line that could be read as a statement go whole; of others only the marks go."""
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


def without_scale_end(reply: EditedText, max_score: float) -> EditedText:
    """Leaves out the 10 of 满分10分 on a scale to 10."""
    return reply.edited(
        (*end.span(1), "")
        for end in islice(_SCALE_END.finditer(reply.text), _MOST_SCALE_ENDS)
        if float(end[1]) == max_score
    )


_MOST_SCALE_ENDS = 200
_SCALE_END = re.compile(
    r"(?:满分|总分|共计|共)\s{0,3}[为是]?\s{0,3}([0-9]{1,15}(?:\.[0-9]{1,15})?)(?=\s{0,3}分)"
)
