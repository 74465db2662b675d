"""Statements of a value: in objects, in double brackets, in tags and after labels."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from datasets.core.kinds import PASS_FAIL, SCORE
from judging.core.reading.clauses import (
    CLAUSE_END,
    alternatives,
    begins_line,
    clause_end,
    clause_start,
    has_guard_word,
    is_correction,
    is_negated,
    is_provisional,
    search_of,
    short_clause_before,
)
from judging.core.reading.clean import plain_characters
from judging.core.reading.edits import EditedText
from judging.core.reading.gives import Gives, ReadValue, Value, unfit
from judging.core.reading.json_values import (
    MOST_FAILED,
    MOST_FAILED_CHARACTERS,
    JsonObject,
    Member,
    ObjectScanner,
    Text,
)
from judging.core.reading.labels import read_word
from judging.core.reading.names import MOST_NAMES, PLAIN, WEAK, names_of, strength
from judging.core.reading.numbers import ends_elsewhere, on_scale, read_number, value_of, whole_number
from judging.core.reading.reasons import AMBIGUOUS, OTHER_SCALE
from judging.core.reading.words import OPENING_WORDS, QUALIFIERS, TAKING_BACK

Form = Literal["json", "brackets", "tag", "label", "bare", "prose"]

_LOOK_AHEAD = 160
_MOST_BLANKS = 80  # before a label in its line
_COMMA = re.compile("[,，、]")
_TAKES_BACK = re.compile(
    rf"(?<![0-9])(?<![0-9]\s){alternatives(TAKING_BACK)}[,，]?(?:\san?)?\s?(?=[0-9])", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A stated value, or the reason why what stood there (`detail`) does not fit, and its place in the original reply
    (`evidence`); `strength` is that of its name."""

    value: ReadValue | None
    reason: str
    detail: str
    evidence: tuple[int, int]
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

    def read(self, written: Written, other_scale: bool = False, in_form: bool = True) -> Value | None:
        """The value that is written, if no note in brackets after it states another one."""
        if self.gives.kind == SCORE:
            value = read_number(written.text, written.notes, self.gives, self.other_scale or other_scale)
        else:
            value = read_word(written.text, self.gives, in_form)
        if value is None or all(self.restated(note) in (None, value) for note in written.notes):
            return value
        return unfit(AMBIGUOUS, " | ".join((written.text, *written.notes)))

    def restated(self, clause: str) -> Value | None:
        """The value that a further clause states: nothing but a value, or a number after words that take one back."""
        taken_back = _TAKES_BACK.search(clause) if self.gives.kind == SCORE else None
        if taken_back:
            value = read_number(clause[taken_back.end() :], (), self.gives, self.other_scale)
            return value if value is not None and value.reason != OTHER_SCALE else None  # 8/10, or 80%
        if self.gives.kind == SCORE:
            number = whole_number(_COMMA.split(clause)[-1])
            value = value_of(number, (), self.gives, self.other_scale) if number else None
        else:
            value = read_word(clause, self.gives)
        return value if value is not None and value.value is not None else None


# --- what is written to the clause's end -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Written:
    """A value's text without brackets, the notes in brackets after it, and where all of it ends."""

    text: str
    notes: tuple[str, ...]
    end: int


_BRACKETS_OF = {"(": ")", "[": "]", "【": "】", "「": "」"}
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
        closing = text.find(_BRACKETS_OF[opening], mark.end(), limit) if opening else -1
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
    at: int | None = None,
) -> list[Statement]:
    """The statement at `span`, as what its label and its clause, which holds `at`, make of it; none if it is negated
    there or states nothing."""
    if value is None:
        return []
    start, end = span
    at = start if at is None else at
    begin = clause_start(text.text, at)
    before = text.text[begin:at]
    if is_negated(before):
        return []
    after = text.text[start : clause_end(text.text, end, end + _LOOK_AHEAD)]
    provisional = is_provisional(f"{before} {label} {after}") is not None
    correction = bool(
        is_correction(f"{before} {label}")
        or (begin > 0 and is_correction(short_clause_before(text.text, begin)))
    )
    evidence = text.original_span(start, end)
    return [
        Statement(value.value, value.reason, value.detail, evidence, form, force, provisional, correction)
    ]


def further_values(
    text: EditedText, start: int, limit: int, reader: Reader, form: Form, force: int = PLAIN
) -> list[Statement]:
    """What further clauses from `start` to `limit` state (no, 6): the reply takes back what it stated before. What
    follows a colon has a name of its own."""
    statements: list[Statement] = []
    at, mark = start, ""
    for end in (*CLAUSE_END.finditer(text.text, start, limit), None):
        stop = end.start() if end else limit
        if mark != ":":
            value = reader.restated(text.text[at:stop].strip())
            statements += statement(text, (at, stop), value, form, force)
        at, mark = (end.end(), end[0]) if end else (stop, "")
    return statements


# --- objects -----------------------------------------------------------------------------------------------------

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
            inner = _stated(member.value, text, reader)
            named += [replace(stated, strength=max(stated.strength, force)) for stated in inner]
        else:
            span = (member.start, member.end)
            named += statement(text, span, _member_value(member, reader), "json", force, at=scanned.start)
    if any_name:
        return strongest(named)
    within = (member.value for member in scanned.members if isinstance(member.value, JsonObject))
    return [stated for value in within for stated in _stated(value, text, reader)]


def _member_value(member: Member, reader: Reader) -> Value | None:
    value = member.value
    if not isinstance(value, Text):
        return None
    if not value.quoted:
        word = value.text.lower()
        if word in _NOTHING:
            return None
        if word in ("true", "false") and reader.gives.kind != PASS_FAIL:
            return None
        if reader.gives.kind == SCORE and _JSON_NUMBER.fullmatch(word):
            return on_scale(float(word), word, reader.gives)
    line = plain_characters(value.text[: 2 * _LOOK_AHEAD]).strip(" \n*`\"'")
    return reader.read(written_from(line, 0, min(len(line), _LOOK_AHEAD)))


def strongest(statements: list[Statement]) -> list[Statement]:
    most = max((stated.strength for stated in statements), default=0)
    return [stated for stated in statements if stated.strength == most]


# --- double brackets ---------------------------------------------------------------------------------------------

_BRACKETS = re.compile(r"\[\[([^\[\]]{0,160})\]\](?!\()")
_SCALE_AFTER = re.compile(r"\s?(?:/|out of)\s?([0-9]{1,15}(?:\.[0-9]{1,15})?)(?![0-9])", re.IGNORECASE)


def read_brackets(text: EditedText, reader: Reader) -> list[Statement]:
    """What stands in `[[…]]`, unless it is a link."""
    statements: list[Statement] = []
    for brackets in islice(_BRACKETS.finditer(text.text), MOST_NAMES):
        scale = _SCALE_AFTER.match(text.text, brackets.end())
        value = reader.read(Written(brackets[1].strip(), (scale[0],) if scale else (), brackets.end()))
        statements += statement(text, brackets.span(), value, "brackets")
    return statements


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
# A weak name counts where its clause begins: "Image quality: 8" and "The assistant's answer: 8" are of something else.
_QUALIFIER = search_of(QUALIFIERS)
_OPENING = re.compile(rf"(?:\A|[^\w\s]|{alternatives(OPENING_WORDS)})\s*\Z", re.IGNORECASE)
_NEXT_LINE = re.compile(r"[ \t]{0,40}\n\s{0,40}")
_TAG_END = re.compile(r"\s{0,3}>([^<>]{1,160})</")


def read_names(text: EditedText, reader: Reader) -> list[Statement]:
    """What stands in tags and after labels."""
    statements: list[Statement] = []
    for name in islice(reader.names.find(text.text), MOST_NAMES):
        opening = text.text.rfind("<", max(0, name.start() - 4), name.start())
        tag = _TAG_END.match(text.text, name.end()) if opening >= 0 else None
        if tag is not None and not text.text[opening + 1 : name.start()].strip():
            value = reader.read(written_from(tag[1], 0, len(tag[1]), whole=True))
            statements += statement(text, (opening, tag.end(1)), value, "tag", strength(name))
        else:
            statements += _labelled(text, name, reader)
    return statements


def _is_label(line: str, reader: Reader) -> bool:
    """Whether a line begins with a label and its colon."""
    name = next(iter(reader.names.find(line)), None)
    after = _AFTER_NAME.match(line, name.end()) if name and not name.start() else None
    return after is not None and (after["mark"] or "").rstrip().endswith((":", "="))


def _labelled(text: EditedText, name: re.Match[str], reader: Reader) -> list[Statement]:
    """What stands after a label, and what the rest of its line states again."""
    source = text.text
    after = _AFTER_NAME.match(source, name.end())
    assert after is not None
    mark = after["mark"]
    next_line = _NEXT_LINE.match(source, after.end())
    if mark is None and not (next_line and begins_line(source, name.start(), name.start() - _MOST_BLANKS)):
        return []
    if mark is None and reader.restated(name[0]) is not None:
        return []  # "Passed", and the reason in the line below
    if name["alone"] and mark and not mark.strip(" ]】").endswith((":", "=")):
        return []  # 总是 is no label
    before = source[clause_start(source, name.start()) : name.start()]
    is_weak = strength(name) == WEAK
    if has_guard_word(before) or (is_weak and not _OPENING.search(_QUALIFIER.sub("", before))):
        return []
    start = next_line.end() if next_line else after.end()
    limit = min(len(source), start + _LOOK_AHEAD)
    line_end = source.find("\n", start, limit)
    line_end = line_end if line_end >= 0 else limit
    if next_line:
        if _is_label(source[start:line_end], reader):
            return []  # ## Verdict, with **Verdict:** PASS in the line below
        written = written_from(source, start, line_end, whole=True)
        written = replace(written, text=written.text.rstrip(".。 "))
    else:
        written = written_from(source, start, limit)
    scale = after["bracket"] or after["scale"]
    elsewhere = scale is not None and ends_elsewhere(scale, reader.gives.max_score)
    span = (name.start(), written.end)
    labelled = statement(text, span, reader.read(written, elsewhere), "label", strength(name), name[0])
    if not labelled:
        return []
    return labelled + further_values(text, written.end, line_end, reader, "label", strength(name))
