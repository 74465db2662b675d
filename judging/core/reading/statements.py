"""Statements of a value: in objects, in double brackets, in tags and after labels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from datasets.core.kinds import PASS_FAIL, SCORE
from judging.core.reading.clauses import (
    CLAUSE_END,
    begins_line,
    clause_end,
    clause_start,
    has_guard_word,
    is_correction,
    is_negated,
    is_provisional,
    sentence_end,
    short_clause_before,
)
from judging.core.reading.clean import plain_characters
from judging.core.reading.edits import EditedText
from judging.core.reading.gives import Gives, Value
from judging.core.reading.json_values import (
    MOST_FAILED,
    MOST_FAILED_CHARACTERS,
    JsonObject,
    Member,
    ObjectScanner,
    Plain,
    Text,
)
from judging.core.reading.labels import read_word
from judging.core.reading.names import MOST_NAMES, PLAIN, names_of, strength
from judging.core.reading.numbers import ends_elsewhere, on_scale, read_number

Form = Literal["json", "brackets", "tag", "label", "bare", "prose"]

_LOOK_AHEAD = 160
_MOST_BEFORE_LABEL = 80  # blanks in its line


@dataclass(frozen=True, slots=True)
class Statement:
    """A stated value and its place in the original reply; `strength` is that of its name."""

    value: Value
    start: int
    end: int
    form: Form
    strength: int = PLAIN
    provisional: bool = False
    correction: bool = False


class Reader:
    """What statements are read with: the kind, and whether the reply names another scale than the metric's."""

    def __init__(self, gives: Gives, other_scale: bool = False) -> None:
        self.gives = gives
        self.names = names_of(gives)
        self.other_scale = other_scale

    def read(self, written: Written, other_scale: bool = False) -> Value | None:
        if self.gives.kind == SCORE:
            return read_number(written.text, written.notes, self.gives, self.other_scale or other_scale)
        return read_word(written.text, self.gives)


# --- what is written to the clause's end -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Written:
    """A value's text without brackets, the notes in brackets after it, and where all of it ends."""

    text: str
    notes: tuple[str, ...]
    end: int


_OPENING = {"(": ")", "[": "]", "【": "】", "「": "」"}
_BRACKET_OR_END = re.compile(rf"([(\[【「])|{CLAUSE_END.pattern}", re.IGNORECASE)


def written_from(text: str, start: int, limit: int, whole: bool = False) -> Written:
    """What is written from `start` to the clause's end or `limit`; with `whole`, always to `limit`.

    Brackets round the value are left out; brackets after it are notes.
    """
    pieces: list[str] = []
    notes: list[str] = []
    at = start
    for mark in _BRACKET_OR_END.finditer(text, start, limit):
        if mark.start() < at:
            continue
        opening = mark[1]
        closing = text.find(_OPENING[opening], mark.end(), limit) if opening else -1
        if closing >= 0:
            pieces.append(text[at : mark.start()])
            inside = text[mark.end() : closing].strip(" " + opening)
            at = closing + 1
            while text[at : at + 1] == text[closing]:
                at += 1
            if "".join(pieces).strip():
                notes.append(inside)
            else:
                pieces.append(inside)
        elif not opening and not whole:
            limit = mark.start()
            break
    pieces.append(text[at:limit])
    return Written("".join(pieces).strip(), tuple(notes), max(at, limit))


# --- the words around it -----------------------------------------------------------------------------------------


def statement(
    text: EditedText,
    span: tuple[int, int],
    value: Value | None,
    form: Form,
    force: int = PLAIN,
    label: str = "",
) -> Statement | None:
    """The statement at `span`, or None if it is negated in its clause or states nothing."""
    if value is None:
        return None
    start, end = span
    after = text.text[start : clause_end(text.text, end, end + _LOOK_AHEAD)]
    plain = Statement(value, *text.original_span(start, end), form, force)
    return _in_context(text, start, plain, label, after)


def _in_context(
    text: EditedText, start: int, stated: Statement, label: str = "", after: str = ""
) -> Statement | None:
    """The statement as what its label, the words before `start` and the rest of its clause make of it."""
    begin = clause_start(text.text, start)
    before = text.text[begin:start]
    if before and is_negated(before):
        return None
    provisional = is_provisional(f"{before} {label} {after}") is not None
    corrects = is_correction(f"{before} {label}") or (
        begin > 0 and is_correction(short_clause_before(text.text, begin))
    )
    if provisional or corrects:
        return replace(stated, provisional=provisional, correction=bool(corrects))
    return stated


# --- objects -----------------------------------------------------------------------------------------------------

_TRUTH = {"true": True, "false": False}
_NOTHING = ("null", "none", "nan", "undefined")
_JSON_NUMBER = re.compile(r"[+-]?[0-9]{1,15}(?:\.[0-9]+)?[eE][+-]?[0-9]{1,9}")


def read_objects(text: EditedText, reader: Reader) -> tuple[EditedText, list[Statement]]:
    """The text without its objects, and what they state."""
    if "{" not in text.text:
        return text, []
    scanner = ObjectScanner(text.text)
    statements: list[Statement] = []
    spans: list[tuple[int, int, str]] = []
    failures = failed_characters = position = 0
    while (
        failures < MOST_FAILED and failed_characters < MOST_FAILED_CHARACTERS and len(statements) < MOST_NAMES
    ):
        opening = text.text.find("{", position)
        if opening < 0:
            break
        scanned = scanner.scan(opening)
        stated = _stated(scanned, text, reader) if isinstance(scanned, JsonObject) else []
        if isinstance(scanned, JsonObject) and scanned.members and (scanned.closed or stated):
            statements += stated
            spans.append((scanned.start, scanned.end, " "))
            position = scanned.end
        else:
            failures += 1
            failed_characters += (scanned.end if isinstance(scanned, JsonObject) else scanned) - opening
            position = opening + 1
    return text.edited(spans), statements


def _stated(scanned: JsonObject, text: EditedText, reader: Reader) -> list[Statement]:
    """The values under the strongest names that state something; without a name, those of the objects within."""
    named: list[Statement] = []
    any_name = False
    for member in scanned.members:
        force = reader.names.strength_of_key(member.key)
        if not force:
            continue
        any_name = True
        if isinstance(member.value, JsonObject):
            named += [_at_least(inner, force) for inner in _stated(member.value, text, reader)]
        else:
            value = _member_value(member, reader)
            if value is not None:
                place = text.original_span(member.start, member.end)
                stated = _in_context(text, scanned.start, Statement(value, *place, "json", force))
                named += [stated] if stated else []
    if any_name:
        return strongest(named)
    within = [member.value for member in scanned.members if isinstance(member.value, JsonObject)]
    return [inner for value in within for inner in _stated(value, text, reader)]


def _at_least(stated: Statement, force: int) -> Statement:
    return replace(stated, strength=max(stated.strength, force))


def _member_value(member: Member, reader: Reader) -> Value | None:
    value = member.value
    if not isinstance(value, (Text, Plain)):
        return None
    if isinstance(value, Plain):
        word = value.text.lower()
        if word in _NOTHING:
            return None
        if word in _TRUTH:
            return Value(_TRUTH[word]) if reader.gives.kind == PASS_FAIL else None
        if reader.gives.kind == SCORE and _JSON_NUMBER.fullmatch(value.text):
            number = float(value.text)
            return on_scale(number, value.text, reader.gives)
    line = plain_characters(value.text[: 2 * _LOOK_AHEAD]).strip().strip("*`\"'")
    return reader.read(written_from(line, 0, min(len(line), _LOOK_AHEAD)))


def strongest(statements: list[Statement]) -> list[Statement]:
    most = max((stated.strength for stated in statements), default=0)
    return [stated for stated in statements if stated.strength == most]


# --- double brackets ---------------------------------------------------------------------------------------------

_BRACKETS = re.compile(r"\[\[([^\[\]]{0,160})\]\](?!\()")
_SCALE_AFTER = re.compile(r"\s?(?:/|out of)\s?([0-9]{1,15}(?:\.[0-9]{1,15})?)(?![0-9])", re.IGNORECASE)


def read_brackets(text: EditedText, reader: Reader) -> list[Statement]:
    """What stands in `[[…]]`, unless it is a link."""
    if "[[" not in text.text:
        return []
    return _present(_bracket_statements(text, reader))


def _bracket_statements(text: EditedText, reader: Reader) -> Iterator[Statement | None]:
    for brackets in islice(_BRACKETS.finditer(text.text), MOST_NAMES):
        inside = brackets[1].strip()
        scale = _SCALE_AFTER.match(text.text, brackets.end())
        value = reader.read(Written(inside, (scale[0],) if scale else (), brackets.end()))
        yield statement(text, brackets.span(), value, "brackets")


def _present(statements: Iterator[Statement | None]) -> list[Statement]:
    return [stated for stated in statements if stated is not None]


# --- tags and labels ---------------------------------------------------------------------------------------------

_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,15})?"
_AFTER_NAME = re.compile(
    r"(?:\s{1,3}for\s(?:this|the)\s(?:answer|response|reply))?"
    r"(?:\s{0,3}\((?P<bracket>[^()\n]{0,80})\)"
    rf"|\s{{1,3}}(?P<scale>out\sof\s{_NUMBER}|(?:on\sa\sscale\sof\s|from\s)?{_NUMBER}\s?(?:-|–|~|to)\s?{_NUMBER})"
    r"(?=\s{0,3}[:=]))?"
    r"(?P<mark>\s{0,3}(?:\sis|为|為|是|は)?\s{0,2}[:=]{1,2}|\s{0,2}[】\]]\s{0,2}[:=]?|\s{0,2}(?:为|為|是|给|給|は)"
    r"|\s(?:should\sbe|est\sde|es|ist)(?=\s)|\s{1,3}[-–—]{1,2}(?=\s))?",
    re.IGNORECASE,
)
_OWNER = re.compile(
    r"(?:\w['’]s|\b(?:model|assistant|student|user|expected|gold|his|her|their))\s{1,3}(?:final\s)?\Z",
    re.IGNORECASE,
)
"""Before `answer`: what follows is what somebody answered, not a verdict."""
_CHANGED_TO = re.compile(
    rf"(?:改为|改成|调整为|下调至|降为|降到|(?:chang|revis|lower|rais|adjust)\w{{1,4}}\s(?:it\s|this\s)?to(?:\sa)?)\s{{0,2}}"
    rf"({_NUMBER})(?![0-9])",
    re.IGNORECASE,
)
_NEXT_LINE = re.compile(r"[ \t]{0,40}\n\s{0,40}")
_TAG_END = re.compile(r"\s{0,3}>([^<>]{1,160})</")


def read_names(text: EditedText, reader: Reader) -> list[Statement]:
    """What stands in tags and after labels."""
    return _present(_named(text, reader))


def _named(text: EditedText, reader: Reader) -> Iterator[Statement | None]:
    for name in islice(reader.names.find(text.text), MOST_NAMES):
        opening = text.text.rfind("<", max(0, name.start() - 4), name.start())
        tag = _TAG_END.match(text.text, name.end()) if opening >= 0 else None
        if tag is not None and not text.text[opening + 1 : name.start()].strip():
            written = written_from(tag[1], 0, len(tag[1]), whole=True)
            yield statement(text, (opening, tag.end(1)), reader.read(written), "tag", strength(name))
        else:
            labelled = _labelled(text, name, reader)
            yield labelled
            if labelled is not None and reader.gives.kind == SCORE:
                yield _changed(text, name, labelled, reader)


def _labelled(text: EditedText, name: re.Match[str], reader: Reader) -> Statement | None:
    source = text.text
    after = _AFTER_NAME.match(source, name.end())
    assert after is not None
    mark = after["mark"]
    next_line = _NEXT_LINE.match(source, after.end())
    if mark is None and not (
        next_line and begins_line(source, name.start(), name.start() - _MOST_BEFORE_LABEL)
    ):
        return None
    if name["alone"] and mark is not None and not mark.strip(" ]】").endswith((":", "=")):
        return None  # 总是 is no label
    before = source[clause_start(source, name.start()) : name.start()]
    if has_guard_word(before) or (name[0].lower().endswith("answer") and _OWNER.search(before)):
        return None
    start = next_line.end() if next_line else after.end()
    if next_line:
        line_end = source.find("\n", start, start + _LOOK_AHEAD)
        limit = line_end if line_end >= 0 else min(len(source), start + _LOOK_AHEAD)
        written = _without_stop(written_from(source, start, limit, whole=True))
    else:
        written = written_from(source, start, min(len(source), start + _LOOK_AHEAD))
    scale = after["bracket"] or after["scale"]
    elsewhere = scale is not None and ends_elsewhere(scale, reader.gives.max_score)
    value = reader.read(written, elsewhere)
    return statement(text, (name.start(), written.end), value, "label", strength(name), name[0])


def _changed(text: EditedText, name: re.Match[str], labelled: Statement, reader: Reader) -> Statement | None:
    """Another number that the label's sentence changes the value to; which of the two counts is left open."""
    limit = sentence_end(text.text, name.end(), name.end() + _LOOK_AHEAD)
    match = _CHANGED_TO.search(text.text, name.end(), limit)
    if match is None:
        return None
    value = reader.read(Written(match[1], (), match.end(1)))
    place = text.original_span(*match.span(1))
    return None if value is None else Statement(value, *place, "label", labelled.strength)


def _without_stop(written: Written) -> Written:
    return Written(written.text.rstrip(".。 "), written.notes, written.end)
